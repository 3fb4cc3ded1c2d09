"""``--add-attacks``: text-only attacks that ``refine`` and ``audit`` add to those that need nothing but captions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.options.input import split_list
from pairwright.cli.options.model import ModelOptions
from pairwright.cli.options.model_runs import cancel_plan_or_run
from pairwright.cli.output.console import note
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.scorers.text_scorers import GapScorer

MEANING, LLM = "meaning", "llm"
AddAttacksOption = Annotated[
    str,
    typer.Option(
        "--add-attacks",
        help="Add cloze, meaning (MiniLM), llm (uses --model), cola, vera (or =DIR), or an installed scorer.",
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
    def parse(cls, text: str, model_options: ModelOptions) -> "ExtraAttacks":
        """Return the attacks of ``meaning,cola=DIR``.

        Raises:
            UsageError: for an unknown attack, a folder of one that takes none, or model options without ``llm``.
        """
        from pairwright.filters.attacks.registry import list_optional_attacks, takes_folder

        parts = [item.partition("=") for item in split_list(text)]
        folders = {name: folder for name, _, folder in parts}
        require_known("--add-attacks: no such attack:", folders, list_optional_attacks())
        if folders.get(LLM):
            raise UsageError(f"--add-attacks llm takes no value. Name the model with --model {folders[LLM]}.")
        if refusing := [name for name, folder in folders.items() if folder and not takes_folder(name)]:
            raise UsageError(f"--add-attacks {refusing[0]} takes no folder; cola and vera do.")
        if LLM not in folders:
            model_options.refuse("without --add-attacks llm")
        elif not model_options.model:
            raise UsageError("--add-attacks llm requires --model.")
        return cls(folders)

    @property
    def without_model(self) -> str:
        """The attacks that ask no model, as ``--add-attacks`` names them."""
        return ",".join(f"{name}={folder}" if folder else name for name, folder in self.folders.items() if name != LLM)

    @property
    def meaning(self) -> bool:
        """Whether the classifier of sentence embeddings is one of them."""
        return MEANING in self.folders

    def scorers(
        self, model_options: ModelOptions, frame: "pl.DataFrame", out: Path, seed: int, *, as_json: bool
    ) -> "tuple[list[GapScorer], dict[str, Any]]":
        """Return the fixed scorers that are named, the language model's last, and the bill of the model.

        Args:
            model_options: options of the model.
            frame: candidate rows in the format in which they are attacked; rejected ones are not sent to a model.
            out: file next to which answers and failed rows are kept.
            seed: of the run.
            as_json: how a plan is printed.

        Raises:
            UsageError: a scorer of another package cannot be loaded.
            MissingResourceError: torch, transformers or a checkpoint is not installed.
            PairwrightError: the run with the model stopped; its answers are kept.
            typer.Exit: only a plan or the cancellation of batches was wanted; it is printed.
        """
        from pairwright.filters.attacks.registry import load_scorer

        scorers: list[GapScorer] = []
        bill: dict[str, Any] = {}
        if LLM in self.folders:
            from pairwright.flows.commands.llm_attack import distinct_texts, plan_scoring, score_with_model

            rows, access = distinct_texts(frame), model_options.access(out, seed)
            scored = cancel_plan_or_run(
                model_options,
                access,
                "rows",
                plan=lambda: plan_scoring(rows, access, out),
                run=lambda bar: score_with_model(rows, access, out, note, bar),
                as_json=as_json,
            )
            if scored is None:
                raise typer.Exit(0)
            scorers, bill = [scored[0]], scored[1]
        named = [(name, folder) for name, folder in self.folders.items() if name not in {MEANING, LLM}]
        return [*(load_scorer(name, folder) for name, folder in named), *scorers], bill
