"""``--also``: attacks that ``refine`` and ``audit`` add to those that need nothing but captions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairwright.cli.options.model import ModelOptions, ModelRunBar, cancelled_lines, plan_lines
from pairwright.cli.output.console import emit, note
from pairwright.datasets.suggestions import require_known

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.scorers.text_scorers import GapScorer

EXTRA_ATTACKS_HELP = "Attacks to add: meaning (MiniLM), llm (asks --model), cola, vera, or from a folder: cola=DIR."


@dataclass(frozen=True)
class ExtraAttacks:
    """What ``--also`` names.

    Attributes:
        folders: name of each attack to its folder, empty where none is given.
    """

    folders: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, written: str, asked: ModelOptions) -> "ExtraAttacks":
        """Return what ``meaning,cola=DIR`` names.

        Raises:
            UsageError: there is no such attack, it takes no folder, or options about a model would do nothing.
        """
        from pairwright.datasets.errors import UsageError
        from pairwright.filters.attacks.registry import LLM, list_optional_attacks, takes_folder

        parts = [part.strip().partition("=") for part in written.split(",") if part.strip()]
        folders = {name: folder for name, _, folder in parts}
        require_known("--also: no such attack:", folders, list_optional_attacks())
        if folders.get(LLM):
            raise UsageError(f"--also llm takes no value: name the model with --model {folders[LLM]}.")
        if refusing := [name for name, folder in folders.items() if folder and not takes_folder(name)]:
            raise UsageError(f"--also {refusing[0]} takes no folder; cola and vera do.")
        if LLM not in folders:
            asked.refuse("without --also llm")
        elif not asked.model:
            raise UsageError("--also llm needs a model. Name it with --model.")
        return cls(folders)

    @property
    def meaning(self) -> bool:
        """Whether a classifier of sentence embeddings takes part."""
        return "meaning" in self.folders

    @property
    def llm(self) -> bool:
        """Whether a language model is asked."""
        return "llm" in self.folders

    def scorers(self) -> "list[GapScorer]":
        """Return the scorers that are named, except ``meaning`` (a classifier) and ``llm`` (asks a model).

        Raises:
            UsageError: a scorer of another package cannot be loaded.
            MissingResourceError: torch, transformers or a checkpoint is missing.
        """
        from pairwright.filters.attacks.registry import load_scorer

        return [load_scorer(name, folder) for name, folder in self.folders.items() if name not in {"meaning", "llm"}]


@dataclass(frozen=True)
class AttackScorers:
    """The scorers that ``--also`` adds, ready to score.

    Attributes:
        scorers: fixed ones, the language model's last.
        bill: what the language model took, as results tell it; empty where none was asked.
    """

    scorers: "list[GapScorer]"
    bill: dict[str, Any]


def load_attack_scorers(
    also: ExtraAttacks, asked: ModelOptions, frame: "pl.DataFrame", out: Path, seed: int, *, as_json: bool
) -> AttackScorers:
    """Return the scorers that are named; a language model is asked about the candidate rows that are not rejected.

    Args:
        also: what was named.
        asked: the options about the model.
        frame: candidate rows, mended as they will be attacked.
        out: file beside which answers and failed rows are kept.
        seed: of the run.
        as_json: how a plan is told.

    Raises:
        UsageError: no model is named, or options about one would do nothing.
        PairwrightError: what stopped the asking; answers are kept.
        typer.Exit: only a plan was asked for, or batches to cancel; it is told.
    """
    scorers: list[GapScorer] = []
    bill: dict[str, Any] = {}
    if also.llm:
        rated, bill = _score_with_model(asked, frame, out, seed, as_json=as_json)
        scorers.append(rated)
    return AttackScorers([*also.scorers(), *scorers], bill)


def _score_with_model(
    asked: ModelOptions, frame: "pl.DataFrame", out: Path, seed: int, *, as_json: bool
) -> "tuple[GapScorer, dict[str, Any]]":
    from pairwright.flows.commands.llm_attack import distinct_texts, plan_scoring, score_with_model

    asking = asked.asking(out, seed)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
        raise typer.Exit(0)
    rows = distinct_texts(frame)
    if asked.dry_run:
        plan = plan_scoring(rows, asking)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
        raise typer.Exit(0)
    watching = ModelRunBar("rows", asked.max_cost)
    rated, bill = score_with_model(rows, asking, out, note, watching)
    watching.end()
    return rated, bill
