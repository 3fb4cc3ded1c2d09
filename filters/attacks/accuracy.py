"""Accuracy of text-only attacks on rows of a positive and a negative text.

An *attack* picks one text of each row without seeing the image: the text that a fixed scorer prefers, or the text that
a classifier picks which was trained on the rows of other images (`text_classifier.py`); *combined* is one classifier
of all features. The accuracy is *folded*, max(a, 1 - a): a rule that is wrong in 70% of the rows is right in 70% when
inverted, so it counts as 0.7. A tie, or a row without a score, counts half.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.progress import track
from pairwright.filters.attacks.evidence import Evidence, RowTexts, collect_evidence
from pairwright.filters.attacks.fold_groups import merge_mirrored_groups
from pairwright.filters.attacks.registry import CLASSIFIERS, COMBINED, build_fixed_scorers
from pairwright.filters.attacks.text_classifier import compute_repeated_gaps
from pairwright.filters.metrics.confidence_intervals import Z95, wilson_interval
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, encode_names

COMBINED_COST = 3.0


@dataclass(frozen=True, slots=True)
class AttackChange:
    """Folded accuracy of one attack on all rows and on the kept rows, each in 0.5-1."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class AttackSummary:
    """Numbers of all rows and of kept rows, and the accuracy of each attack on them."""

    rows: int
    kept: int
    attacks: Mapping[str, AttackChange]

    def as_json(self) -> dict[str, object]:
        """Return ``in``, ``kept`` and ``attacks`` (name to before and after)."""
        attacks = {name: {"before": each.before, "after": each.after} for name, each in self.attacks.items()}
        return {"in": self.rows, "kept": self.kept, "attacks": attacks}


@dataclass(frozen=True, slots=True)
class MeasuredAttack:
    """Accuracy of an attack on a number of rows, with its 95% Wilson interval.

    Attributes:
        rows: number of rows.
        accuracy: folded, 0.5-1.
        low: lower end of the interval, 0-1; below 0.5 where the attack may be at chance level.
        high: upper end, 0-1.
        by_type: the same for the rows of each edit type.
    """

    rows: int
    accuracy: float
    low: float
    high: float
    by_type: Mapping[str, "MeasuredAttack"]

    @property
    def p_value(self) -> float:
        """Two-sided p-value of chance level, 0-1, by the normal approximation: the accuracy is folded."""
        return math.erfc((2 * self.accuracy - 1) * math.sqrt(self.rows / 2))

    def as_json(self) -> dict[str, object]:
        """Return ``accuracy``, ``low``, ``high`` and ``rows``, without the types."""
        return {"accuracy": self.accuracy, "low": self.low, "high": self.high, "rows": self.rows}


def measure_attacks(
    rows: pl.DataFrame,
    corpus: CaptionCorpus | None = None,
    seed: int = 0,
    scorers: Sequence[GapScorer] | None = None,
    classifiers: Sequence[str] = CLASSIFIERS,
) -> dict[str, MeasuredAttack]:
    """Return the accuracy of each attack on the rows, always on held-out folds.

    Args:
        rows: string columns ``group``, ``positive``, ``negative``, ``type``, as for refinement.
        corpus: captions to train the fixed scorers on; without, the positives of the rows.
        seed: of the folds.
        scorers: fixed scorers; by default `build_fixed_scorers`.
        classifiers: names of the classifiers to train on the rows.
    """
    texts = RowTexts(*(rows[name].to_list() for name in ("positive", "negative", "group", "type")))
    fixed = build_fixed_scorers(corpus) if scorers is None else scorers
    evidence = collect_evidence(texts, fixed, seed, classifiers)
    names, kind = encode_names(texts.types)
    found = {}
    groups = merge_mirrored_groups(texts.groups, texts.positives, texts.negatives)
    for name, gap in compute_attack_gaps(evidence, groups, seed)[0].items():
        by_type = {each: _measure(gap[kind == number], {}) for number, each in enumerate(names)}
        found[name] = _measure(gap, by_type)
    return found


def compute_attack_gaps(
    evidence: Mapping[str, Evidence], groups: Sequence[str], *seeds: int | str
) -> list[dict[str, FloatArray]]:
    """Return how much each attack prefers the positive of each row, float64 (n,) by name, *combined* last.

    A row is judged by classifiers that were trained on the given rows of other groups.

    Args:
        evidence: of each attack, by name.
        groups: group of each row.
        seeds: of sets of folds; the result has one mapping for each.
    """
    attacks = [each for each in evidence.values() if not each.balance_only]
    found: dict[str, list[FloatArray]] = {}
    for each in track(attacks, "attacking", unit="attacks"):
        found[each.name] = (
            compute_repeated_gaps(each.trained_on(slice(None)), groups, seeds, cost=each.cost)
            if each.gaps is None
            else [each.gaps] * len(seeds)
        )
    if len(attacks) > 1:
        together = [each.trained_on(slice(None)) for each in attacks]
        found[COMBINED] = compute_repeated_gaps(together, groups, seeds, cost=COMBINED_COST)
    return [{name: gaps[number] for name, gaps in found.items()} for number in range(len(seeds))]


def compute_preference_rate(gaps: FloatArray) -> float:
    """Return the share of rows in which the positive is preferred, ties and missing scores counting half, in 0-1."""
    return 0.5 + count_lead(gaps) / (2 * len(gaps)) if len(gaps) else 0.5


def count_lead(gaps: FloatArray) -> int:
    """Return in how many more rows the positive is preferred than the negative; negative for fewer."""
    return int(np.count_nonzero(gaps > 0)) - int(np.count_nonzero(gaps < 0))


def fold_accuracy(lead: int, rows: int) -> float:
    """Return the folded accuracy of an attack in 0.5-1, given `count_lead` and the number of rows; 0.5 without rows."""
    return 0.5 + abs(lead) / (2 * rows) if rows else 0.5


def compute_attack_accuracy(gaps: FloatArray) -> float:
    """Return the folded accuracy of picking the text with the higher score, in 0.5-1; 0.5 without rows.

    Args:
        gaps: float64 (n,), score of the positive minus score of the negative; NaN without a score.
    """
    return fold_accuracy(count_lead(gaps), len(gaps))


def summarize_attacks(gaps: Mapping[str, FloatArray], kept: npt.NDArray[np.bool_]) -> AttackSummary:
    """Return the accuracy of the scorers on all rows and on the kept rows."""
    attacks = {
        name: AttackChange(compute_attack_accuracy(gap), compute_attack_accuracy(gap[kept]))
        for name, gap in gaps.items()
    }
    return AttackSummary(len(kept), int(np.count_nonzero(kept)), attacks)


def summarize_attacks_by_type(
    names: Sequence[str],
    kind: npt.NDArray[np.integer[Any]],
    gaps: Mapping[str, FloatArray],
    kept: npt.NDArray[np.bool_],
) -> dict[str, AttackSummary]:
    """Return `summarize_attacks` for the rows of each type; ``kind`` is the place of each row's type among ``names``."""
    found = {}
    for number, name in enumerate(names):
        own = kind == number
        found[name] = summarize_attacks({scorer: gap[own] for scorer, gap in gaps.items()}, kept[own])
    return found


def _measure(gaps: FloatArray, by_type: Mapping[str, MeasuredAttack]) -> MeasuredAttack:
    low, high = wilson_interval(compute_attack_accuracy(gaps) * len(gaps), len(gaps))
    return MeasuredAttack(len(gaps), compute_attack_accuracy(gaps), low, high, by_type)


_LIMIT_MARGIN = 0.002
MIN_GROUPS, MIN_ROWS = 10, 50

KeptMask = npt.NDArray[np.bool_]
PreferenceRates = Mapping[str, list[tuple[float, int]]]


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Result of one round of a selection.

    Attributes:
        kept: number of rows kept.
        worst: the attack that is furthest beyond its limit, with the type unless it is that of all rows.
        accuracy: of that attack, folded.
        over: accuracy by which it exceeds its limit; 0 or less: it does not.
        holds: whether every attack is within its limit.
    """

    kept: int
    worst: str
    accuracy: float
    over: float
    holds: bool


def check_limits(rates: PreferenceRates, names: Sequence[str], target: float) -> RoundResult:
    """Return whether every attack is within its limit, and which attack is furthest beyond it."""
    labels = ["", *names]
    worst = ("", 0.5, -1.0)
    for attack, parts in rates.items():
        for label, (share, rows) in zip(labels, parts, strict=True):
            over = abs(share - 0.5) - tighten_limit(target, rows, label)
            if over > worst[2]:
                worst = (f"{attack} in {label}" if label else attack, 0.5 + abs(share - 0.5), over)
    rows = next(iter(rates.values()))[0][1]
    return RoundResult(rows, worst[0], worst[1], worst[2], holds=worst[2] <= 0)


def tighten_limit(target: float, rows: int, label: str) -> float:
    """Return how far from one half an attack may be in a part of the rows, less a margin for other folds.

    Args:
        target: folded accuracy, 0.5-1.
        rows: number of rows of the part.
        label: type of the part; empty: all rows.
    """
    return (compute_allowed_deviation(target, rows) if label else target - 0.5) - _LIMIT_MARGIN


def compute_allowed_deviation(target: float, rows: int) -> float:
    """Return how far from one half an attack may be in a type of ``rows`` rows: the target or the 95% interval."""
    return max(target - 0.5, float(Z95 * 0.5 / np.sqrt(max(rows, 1))))
