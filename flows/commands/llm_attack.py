"""A language model as one of the blind attacks: what ``refine`` and ``audit`` ask with ``--add-attacks llm``.

Each distinct (positive, negative) is asked about twice (`filters.llm_scorer`). Answers are kept in the cache; what got
none is noted as failed and counts as a tie.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.errors import PairwrightError
from pairwright.filters.scorers.llm import NAME, LLMScorer, PrecomputedGaps, TextPair, pair_for_row
from pairwright.flows.commands.generate_with_model import failed_rows_path
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.planning import plan_generator
from pairwright.flows.llm.steps import PairSteps
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.cost_estimate import StagePlan, sample_rows
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.prompts.book import PromptBook


def distinct_texts(frame: pl.DataFrame) -> list[TextPair]:
    """Return the distinct (positive, negative) of the candidate rows that are not rejected, in their order."""
    rows = frame.filter(pl.col("status") == "kept")
    positive = pl.when(pl.col("positive") != "").then("positive").otherwise("caption")
    return list(dict.fromkeys(rows.select(positive.alias("positive"), "negative").iter_rows()))


def score_with_model(
    rows: Sequence[TextPair],
    asking: ModelAccess,
    out: Path,
    note: Callable[[str], None],
    watch: Callable[[Snapshot], None],
) -> tuple[PrecomputedGaps, dict[str, Any]]:
    """Ask the model about all rows.

    Args:
        rows: distinct texts (`distinct_texts`).
        asking: how it is asked.
        out: file beside which failed rows are named.
        note: told in one line what concerns the whole run.
        watch: told how far it is.

    Returns:
        The scorer, and what was paid (`Asking.told`, and ``rows``, ``scored``).

    Raises:
        PairwrightError: what stopped the run, in one line; answers are kept.
    """
    asking.check()
    maker = _scoring_generator(asking, rows)
    at_key = {pair_for_row(row).key: row for row in rows}
    found: dict[TextPair, float] = {}
    done = 0
    with FailedRows(
        failed_rows_path(out), run=asking.identity(maker, {}, asking.seed), retry=asking.retry_failed
    ) as failed:
        talks = PairSteps(maker, asking.seed, failed)
        pairs = ((pair_for_row(row), ()) for row in rows)
        with asking.session(watch=watch, say=note) as session:
            try:
                for pair, [row] in talks.hold(session, pairs, of=len(rows)):
                    done += 1
                    if NAME in row.scores:
                        found[at_key[pair.key]] = row.scores[NAME]
            except (PairwrightError, KeyboardInterrupt):
                note(f"{done:,} of {len(rows):,} rows are rated. The same command goes on from there.")
                raise
    if summary := failed.summary(len(rows)):
        note(summary)
    return PrecomputedGaps(found), {**asking.told(session.totals().spent), "rows": len(rows), "scored": len(found)}


def plan_scoring(rows: Sequence[TextPair], asking: ModelAccess) -> StagePlan:
    """Return what `score_with_model` would ask and cost.

    Raises:
        PairwrightError: when it could not begin.
    """
    asking.settings()  # what cannot work is told first
    sample = sample_rows(map(pair_for_row, rows), seed=asking.seed)
    return plan_generator(_scoring_generator(asking, rows), sample, load_tagger(), asking, asking.seed)


def _scoring_generator(asking: ModelAccess, rows: Sequence[TextPair]) -> LLMScorer:
    prompts = asking.section.prompts
    return LLMScorer(PromptBook(Path(prompts) if prompts else None), asking.model, rows)
