"""``--add-attacks``: text-only attacks that ``refine`` and ``audit`` add to those that need nothing but captions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pairwright.cli.options.input import split_list
from pairwright.cli.options.model import ModelOptions
from pairwright.cli.options.model_runs import cancel_plan_or_run
from pairwright.cli.output.console import note
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.scorers.neural import NeuralScorer
    from pairwright.filters.scorers.text_scorers import GapScorer


def _load_cola(*folder: str) -> "NeuralScorer":
    from pairwright.filters.scorers.neural import load_cola

    return load_cola(*folder)


def _load_vera(*folder: str) -> "NeuralScorer":
    from pairwright.filters.scorers.neural import load_vera

    return load_vera(*folder)


class ExtraAttack(NamedTuple):
    """An attack that can be added: what the help says about it, and the loader of its scorer, if it is one."""

    about: str = ""
    load: "Callable[..., NeuralScorer] | None" = None


MEANING, LLM = "meaning", "llm"
EXTRA_ATTACKS: Mapping[str, ExtraAttack] = {
    MEANING: ExtraAttack("MiniLM"),
    LLM: ExtraAttack("uses --model"),
    "cola": ExtraAttack(load=_load_cola),
    "vera": ExtraAttack("or =DIR", _load_vera),
}

AddAttacksOption = Annotated[
    str,
    typer.Option(
        "--add-attacks",
        help=f"Add {', '.join(name + (f' ({each.about})' if each.about else '') for name, each in EXTRA_ATTACKS.items())}.",
    ),
]


@dataclass(frozen=True)
class ExtraAttacks:
    """The attacks that ``--add-attacks`` names.

    Attributes:
        folders: name of each attack to its folder; empty: the default one.
    """

    folders: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, asked: ModelOptions) -> "ExtraAttacks":
        """Return the attacks of ``meaning,cola=DIR``.

        Raises:
            UsageError: for an unknown attack, a folder of one that takes none, or model options without ``llm``.
        """
        parts = [item.partition("=") for item in split_list(text)]
        folders = {name: folder for name, _, folder in parts}
        require_known("--add-attacks: no such attack:", folders, EXTRA_ATTACKS)
        if folders.get(MEANING):
            raise UsageError("--add-attacks meaning takes no folder; cola and vera do.")
        if folders.get(LLM):
            raise UsageError(f"--add-attacks llm takes no value. Name the model with --model {folders[LLM]}.")
        if LLM not in folders:
            asked.refuse("without --add-attacks llm")
        elif not asked.model:
            raise UsageError("--add-attacks llm requires --model.")
        return cls(folders)

    @property
    def meaning(self) -> bool:
        """Whether the classifier of sentence embeddings is one of them."""
        return MEANING in self.folders

    def scorers(
        self, asked: ModelOptions, frame: "pl.DataFrame", out: Path, seed: int, *, as_json: bool
    ) -> "tuple[list[GapScorer], dict[str, Any]]":
        """Return the fixed scorers that are named, the language model's last, and the bill of the model.

        Args:
            asked: options of the model.
            frame: candidate rows in the format in which they are attacked; rejected ones are not sent to a model.
            out: file next to which answers and failed rows are kept.
            seed: of the run.
            as_json: how a plan is printed.

        Raises:
            MissingResourceError: torch, transformers or a checkpoint is not installed.
            PairwrightError: the run with the model stopped; its answers are kept.
            typer.Exit: only a plan or the cancellation of batches was wanted; it is printed.
        """
        scorers: list[GapScorer] = []
        bill: dict[str, Any] = {}
        if LLM in self.folders:
            from pairwright.flows.commands.llm_attack import distinct_texts, plan_scoring, score_with_model

            rows, access = distinct_texts(frame), asked.asking(out, seed)
            scored = cancel_plan_or_run(
                asked,
                access,
                "rows",
                plan=lambda: plan_scoring(rows, access),
                run=lambda bar: score_with_model(rows, access, out, note, bar),
                as_json=as_json,
            )
            if scored is None:
                raise typer.Exit(0)
            scorers, bill = [scored[0]], scored[1]
        loaders = ((EXTRA_ATTACKS[name].load, folder) for name, folder in self.folders.items())
        return [*(load(*filter(None, [folder])) for load, folder in loaders if load), *scorers], bill
