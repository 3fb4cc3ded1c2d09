"""Refinement of rows that are appended to a refined set, with frozen scorers.

The refined set is balanced and its rows are final, so the union is balanced when the appended rows are.

*reference*: Algorithm 1 over the two frozen language models. Cells are a fixed grid, and both sets have as many rows in
a cell as in its mirror image, so the union has too.

*general*: rows are dropped until each frozen scorer and classifier prefers the positive as often as the negative,
within the target, in each edit type. It is computed over all rows appended since the set was refined
(`CarriedPreferences`): if each small batch were allowed one row too many, always on the detectable side, the union
would become unbalanced. The row that contributes most to the excess is dropped first; equal rows in random order.
Classifiers are not trained again; whether a new one detects something in the union is measured by an audit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.accuracy import summarize_attacks, summarize_attacks_by_type
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.general.refine import AllAttacksOptions
from pairwright.filters.refinement.reference.refine import RefineOptions, refine_scored_rows
from pairwright.filters.refinement.result import Refinement, build_reason_ledger
from pairwright.filters.refinement.rows import ROW_COLUMNS, check_rows, find_equal_texts
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names

ROWS = "rows"
_EXCESS_PER_STEP = 8  # excess rows per row dropped in one step

CarriedPreferences = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, eq=False)
class AppendedRefinement:
    """Result for appended rows.

    Attributes:
        refinement: as of `refine_rows`.
        carried: type to ``rows`` kept since the set was refined, and scorer to the rows in which it prefers the
            positive
            minus those in which it prefers the negative.
    """

    refinement: Refinement
    carried: CarriedPreferences = field(default_factory=dict)


def refine_appended_with_two_scorers(
    rows: pl.DataFrame, frozen: FrozenScorers, corpus: CaptionCorpus, options: RefineOptions
) -> AppendedRefinement:
    """Refine appended rows by Algorithm 1; arguments as of `refine_appended_against_all`."""
    texts = _read_texts(rows)
    found = frozen.gaps(texts, corpus)
    gaps = {name: found[name] for name in ("grammar", "plausibility")}
    return AppendedRefinement(refine_scored_rows(rows["id"], texts.types, gaps, find_equal_texts(texts), options))


def refine_appended_against_all(  # noqa: PLR0913 - the set, the rows, and what judges them
    rows: pl.DataFrame,
    frozen: FrozenScorers,
    corpus: CaptionCorpus,
    options: AllAttacksOptions,
    carried: CarriedPreferences | None = None,
    *,
    scorers: Sequence[GapScorer] = (),
) -> AppendedRefinement:
    """Refine appended rows against all frozen scorers and classifiers.

    Args:
        rows: as of `refine_rows`.
        frozen: scorers of the set.
        corpus: the captions that they were fitted on.
        options: of the set's refinement; target, types and seed are used.
        carried: preferences over the rows that were appended before.
        scorers: more scorers, pretrained or of other packages.

    Raises:
        UsageError: a column is missing or ids repeat.
    """
    texts = _read_texts(rows)
    same = find_equal_texts(texts)
    gaps = frozen.gaps(texts, corpus)
    for scorer in scorers:
        gaps[scorer.name] = scorer.gaps(texts.positives, texts.negatives, texts.groups, options.seed)
    signs = np.column_stack([np.sign(np.nan_to_num(gap)) for gap in gaps.values()]).astype(np.int64)
    names, kind = encode_names(texts.types if options.by_type else [""] * len(rows))
    noise = np.zeros(len(rows), np.int64)
    noise[np.argsort(np.array(rows["id"].to_list(), dtype=object))] = make_numpy_rng(
        options.seed, "appended"
    ).permutation(len(rows))
    before = carried or {}
    after = {name: dict(each) for name, each in before.items()}
    reasons = ["identical" if each else "" for each in same]
    for number, name in enumerate(names):
        members = np.flatnonzero((kind == number) & ~same)
        members = members[np.argsort(noise[members])]
        balance = _PreferenceBalance.of(before.get(name, {}), list(gaps))
        for row, by in _find_excess_rows(signs[members], balance, options.target):
            reasons[members[row]] = f"detected_by_{list(gaps)[by]}"
        left = [row for row in members.tolist() if not reasons[row]]
        after[name] = balance.with_rows(list(gaps), signs[left])
    kept = np.array([not reason for reason in reasons], bool)
    fixed = {name: gap for name, gap in gaps.items() if name not in frozen.weights}
    entering = int(np.count_nonzero(~same))
    return AppendedRefinement(
        Refinement(
            kept=kept,
            reasons=tuple(reasons),
            gaps=pl.DataFrame({"id": rows["id"], **fixed}),
            total=summarize_attacks(gaps, kept),
            by_type=summarize_attacks_by_type(*encode_names(texts.types), gaps, kept),
            ledger=build_reason_ledger(Counter(zip(texts.types, reasons, strict=True))),
            holds=int(kept.sum()) >= options.min_keep * entering,
        ),
        after,
    )


@dataclass(frozen=True, eq=False)
class _PreferenceBalance:
    # Number of rows appended before, and the preference of each scorer over them.
    rows: int
    preferences: IntArray

    @classmethod
    def of(cls, counts: Mapping[str, int], names: Sequence[str]) -> "_PreferenceBalance":
        return cls(counts.get(ROWS, 0), np.array([counts.get(name, 0) for name in names], np.int64))

    def with_rows(self, names: Sequence[str], signs: IntArray) -> dict[str, int]:
        preferences = (self.preferences + signs.sum(axis=0)).tolist()
        return {ROWS: self.rows + len(signs), **dict(zip(names, preferences, strict=True))}


def _find_excess_rows(signs: IntArray, balance: _PreferenceBalance, target: float) -> list[tuple[int, int]]:
    """Return the rows to drop, each with the number of the scorer that detects it; rows are in random order."""
    left: npt.NDArray[np.bool_] = np.ones(len(signs), bool)
    dropped: list[tuple[int, int]] = []
    while left.any():
        preference = balance.preferences + signs[left].sum(axis=0)
        allowed = max(1.0, (2.0 * target - 1.0) * (balance.rows + int(left.sum())))
        over: FloatArray = np.sign(preference) * np.maximum(np.abs(preference) - allowed, 0.0)
        contributions = signs * over
        contribution = np.where(left, contributions.sum(axis=1), 0.0)
        if not over.any() or contribution.max() <= 0:  # the excess comes from earlier rows, and no row here adds to it
            break
        some = max(1, int(np.abs(over).max()) // _EXCESS_PER_STEP)
        dropping = np.argsort(-contribution, kind="stable")[:some]
        dropping = dropping[contribution[dropping] > 0]
        dropped += zip(dropping.tolist(), np.argmax(contributions[dropping], axis=1).tolist(), strict=True)
        left[dropping] = False
    return dropped


def _read_texts(rows: pl.DataFrame) -> RowTexts:
    check_rows(rows)
    return RowTexts(*(rows[name].to_list() for name in ROW_COLUMNS[1:]))
