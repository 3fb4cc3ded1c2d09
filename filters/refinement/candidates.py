"""Refinement of candidate rows (`filters/candidates/rows.py`), by either method."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from pairwright.datasets.record_tables import make_column
from pairwright.filters.candidates.attack_input import attack_frame
from pairwright.filters.candidates.rows import SCHEMA
from pairwright.filters.refinement.general.refine import AllAttacksOptions, refine_against_all_attacks
from pairwright.filters.refinement.one_per_caption import build_slot_keys
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_rows
from pairwright.filters.refinement.result import Refinement
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer


def refine_candidates(
    frame: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    options: RefineOptions | AllAttacksOptions | None = None,
    scorers: Sequence[GapScorer] = (),
    *,
    choose: bool = False,
) -> tuple[pl.DataFrame, Refinement]:
    """Refine the rows of a candidate frame that are not rejected.

    Args:
        frame: with ``SCHEMA``.
        corpus: captions to train the scorers on; without, the positives of the rows.
        options: `RefineOptions` for Algorithm 1 over two scorers, `AllAttacksOptions` for all attacks.
        scorers: additional scorers; for Algorithm 1 its two, instead of grammar and plausibility.
        choose: whether to keep at most one row per caption and type, with `AllAttacksOptions` (`one_per_caption.py`).

    Returns:
        All rows in the same order, with ``status``, ``reason`` and the gap of each scorer in ``scores``
        (``grammar_gap``, ...); and the refinement of the rows that were not rejected.
    """
    entering = frame.filter(pl.col("status") == "kept")
    rows = attack_frame(entering)
    if choose:
        rows = rows.with_columns(slot=pl.Series(build_slot_keys(entering), dtype=pl.String))
    if isinstance(options, AllAttacksOptions):
        outcome = refine_against_all_attacks(rows, corpus, options, scorers)
    else:
        outcome = refine_rows(rows, corpus, options, scorers or None)
    verdict = pl.DataFrame(
        [
            entering["id"],
            _column("status", ["kept" if kept else "rejected" for kept in outcome.kept]),
            _column("reason", list(outcome.reasons)),
            _column("scores", _with_gaps(entering["scores"].to_list(), outcome.gaps)),
        ]
    )
    joined = frame.join(verdict, on="id", how="left", suffix="_new", maintain_order="left")
    changed = [pl.coalesce(f"{name}_new", name).alias(name) for name in ("status", "reason", "scores")]
    return joined.with_columns(changed).select(list(SCHEMA)), outcome


def _with_gaps(scores: list[list[dict[str, Any]]], gaps: pl.DataFrame) -> list[list[dict[str, Any]]]:
    # Rows without a score get no gap: files contain no NaN.
    named = gaps.drop("id").rename(lambda name: f"{name}_gap")
    return [
        [score for score in before if score["name"] not in row]
        + [{"name": name, "value": value} for name, value in row.items() if not math.isnan(value)]
        for before, row in zip(scores, named.iter_rows(named=True), strict=True)
    ]


def _column(name: str, values: list[Any]) -> pl.Series:
    return make_column(name, values, SCHEMA[name])
