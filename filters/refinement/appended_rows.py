"""Refinement of rows that are appended to a refined set: by what is frozen, among themselves.

The set that stands is balanced, and its rows cannot be taken back. So a union of both is balanced when what is appended is.

*reference*: Algorithm 1 over the two frozen language models. Cells are a fixed grid and the set has as many rows in a cell
as in its mirror image, so the union has as well.

*general*: rows go until each frozen scorer and classifier prefers the positive as often as the negative, within the target,
in each type of edit. It is reckoned over all rows that were appended since the set was refined (`Carried`): were
each small batch let off with one row too many, always on the side of what gives negatives away, the union would lean.
Of all rows the one goes first that speaks most for what is over the target; chance decides between equals. Classifiers
are not trained anew; whether a fresh one finds something in the union is for an audit to say.
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
from pairwright.filters.refinement.all_attacks import AllAttacksOptions
from pairwright.filters.refinement.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.grid_balancing import BalancingStep
from pairwright.filters.refinement.two_scorers import (
    ROW_COLUMNS,
    Refinement,
    RefineOptions,
    check_rows,
    equal_texts,
    refine_scored_rows,
)
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names

ROWS = "rows"
_EXCESS_PER_STEP = 8  # rows that are too many, for each that goes at a time

CarriedPreferences = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, eq=False)
class AppendedRefinement:
    """What came of appended rows.

    Attributes:
        refinement: as of `refine_rows`.
        carried: type to ``rows`` kept since the set was refined, and scorer to rows in which it prefers the positive less
            those in which it prefers the negative.
    """

    refinement: Refinement
    carried: CarriedPreferences = field(default_factory=dict)


def refine_appended_with_two_scorers(
    rows: pl.DataFrame, frozen: FrozenScorers, corpus: CaptionCorpus, options: RefineOptions
) -> AppendedRefinement:
    """Refine appended rows by Algorithm 1; arguments as of `refine_appended_against_all`."""
    texts = _texts(rows)
    found = frozen.gaps(texts, corpus)
    gaps = {name: found[name] for name in ("grammar", "plausibility")}
    return AppendedRefinement(refine_scored_rows(rows["id"], texts.types, gaps, equal_texts(texts), options))


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
        frozen: of the set.
        corpus: the captions that it was fitted on.
        options: of the set's refinement; target, type and seed are used.
        carried: preferences over the rows that were appended before.
        scorers: more scorers, pretrained or of other packages.

    Raises:
        UsageError: when a column is missing or ids repeat.
    """
    check_rows(rows)
    texts = _texts(rows)
    same = equal_texts(texts)
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
        mine = np.flatnonzero((kind == number) & ~same)
        mine = mine[np.argsort(noise[mine])]
        account = _PreferenceBalance.of(before.get(name, {}), list(gaps))
        for row, by in _excess_rows(signs[mine], account, options.target):
            reasons[mine[row]] = f"detected_by_{list(gaps)[by]}"
        left = [row for row in mine.tolist() if not reasons[row]]
        after[name] = account.told(list(gaps), signs[left])
    kept = np.array([not reason for reason in reasons], bool)
    fixed = {name: gap for name, gap in gaps.items() if name not in frozen.weights}
    entering = int(np.count_nonzero(~same))
    return AppendedRefinement(
        Refinement(
            kept=kept,
            reasons=tuple(reasons),
            gaps=pl.DataFrame({"id": rows["id"], **fixed}),
            total=summarize_attacks(gaps, kept),
            by_type=summarize_attacks_by_type(texts.types, gaps, kept),
            ledger=_ledger(reasons, texts.types),
            holds=int(kept.sum()) >= options.min_keep * entering,
        ),
        after,
    )


@dataclass(frozen=True, eq=False)
class _PreferenceBalance:
    # Rows appended before, and how far each scorer leans over them.
    rows: int
    leans: IntArray

    @classmethod
    def of(cls, told: Mapping[str, int], names: Sequence[str]) -> "_PreferenceBalance":
        return cls(told.get(ROWS, 0), np.array([told.get(name, 0) for name in names], np.int64))

    def told(self, names: Sequence[str], signs: IntArray) -> dict[str, int]:
        leans = (self.leans + signs.sum(axis=0)).tolist()
        return {ROWS: self.rows + len(signs), **dict(zip(names, leans, strict=True))}


def _excess_rows(signs: IntArray, account: _PreferenceBalance, target: float) -> list[tuple[int, int]]:
    """Return the rows that have to go, each with the number of the scorer that tells it; rows stand in order of chance."""
    left: npt.NDArray[np.bool_] = np.ones(len(signs), bool)
    gone: list[tuple[int, int]] = []
    while left.any():
        lean = account.leans + signs[left].sum(axis=0)
        allowed = max(1.0, (2.0 * target - 1.0) * (account.rows + int(left.sum())))
        over: FloatArray = np.sign(lean) * np.maximum(np.abs(lean) - allowed, 0.0)
        voices = signs * over
        speaks = np.where(left, voices.sum(axis=1), 0.0)
        if not over.any() or speaks.max() <= 0:  # what is over comes from before, and nothing here adds to it
            break
        some = max(1, int(np.abs(over).max()) // _EXCESS_PER_STEP)
        going = np.argsort(-speaks, kind="stable")[:some]
        going = going[speaks[going] > 0]
        gone += zip(going.tolist(), np.argmax(voices[going], axis=1).tolist(), strict=True)
        left[going] = False
    return gone


def _ledger(reasons: Sequence[str], types: Sequence[str]) -> tuple[BalancingStep, ...]:
    counts = Counter(zip(types, reasons, strict=True))
    return tuple(
        BalancingStep(reason or "kept", kind, number, 0 if reason else number)
        for (kind, reason), number in sorted(counts.items())
    )


def _texts(rows: pl.DataFrame) -> RowTexts:
    check_rows(rows)
    return RowTexts(*(rows[name].to_list() for name in ROW_COLUMNS[1:]))
