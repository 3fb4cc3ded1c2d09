"""A language model as an attack on the texts alone: ``--add-attacks llm`` of ``refine`` and ``audit``.

There are two requests for each distinct (positive, negative) (`filters.scorers.llm`). Answers are in the cache; a row
without an answer is a failed row and counts as a tie.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.filters.scorers.llm import NAME, LLMScorer, PrecomputedGaps, TextPair, pair_for_row
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import collect_rows
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot


def distinct_texts(frame: pl.DataFrame) -> list[TextPair]:
    """Return the distinct (positive, negative) of the candidate rows that are not rejected, in order."""
    rows = frame.filter(pl.col("status") == "kept")
    positive = pl.when(pl.col("positive") != "").then("positive").otherwise("caption")
    return list(dict.fromkeys(rows.select(positive.alias("positive"), "negative").iter_rows()))


def score_with_model(
    rows: Sequence[TextPair],
    access: ModelAccess,
    out: Path,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
) -> tuple[PrecomputedGaps, dict[str, Any]]:
    """Score all rows with the model.

    Args:
        rows: distinct texts (`distinct_texts`).
        access: the model.
        out: output next to which failed rows are written.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        The scorer, and the bill (`ModelAccess.bill_facts`, with ``rows`` and ``scored``).

    Raises:
        PairwrightError: what stopped the run; answers are in the cache.
    """
    access.check()
    task = _scoring_task(access, rows)
    pairs = task.rows(map(pair_for_row, rows))
    found, run = collect_rows(access, task, pairs, len(rows), out=out, note=note, watch=watch)
    gaps = {row: made[0].scores[NAME] for row, (_, made) in zip(rows, found, strict=True) if NAME in made[0].scores}
    return PrecomputedGaps(gaps), {**run.bill(), "rows": len(rows), "scored": len(gaps)}


def plan_scoring(rows: Sequence[TextPair], access: ModelAccess, out: Path) -> StagePlan:
    """Return an estimate of `score_with_model`.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work
    return _scoring_task(access, rows).estimate(map(pair_for_row, rows), out)


def _scoring_task(access: ModelAccess, rows: Sequence[TextPair]) -> PairTask:
    return PairTask(LLMScorer(access.prompts(), access.model, rows), access, access.seed)
