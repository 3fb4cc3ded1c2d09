"""How well a blind rule tells positives from negatives: the number that refinement has to bring to one half.

An *attack* picks one text of each row without seeing the image: the one that a fixed scorer likes better, or the one
that a classifier picks which was trained on other images' rows (`blind_classifier.py`); *combined* is a classifier
of all there is. Its accuracy is *folded*: a rule that is wrong in 70% of the rows is right in 70% when turned around, so
it counts as 0.7. A tie, or a row that the scorer could not score, is a coin toss and counts half.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.progress import track
from pairwright.filters.attacks.evidence import Evidence, RowTexts, collect_evidence
from pairwright.filters.attacks.registry import CLASSIFIERS, COMBINED, fixed_scorers
from pairwright.filters.attacks.text_classifier import held_out_gaps
from pairwright.filters.metrics.confidence_intervals import Z95, wilson_interval
from pairwright.filters.scorers.text_scorers import CaptionCorpus, GapScorer
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names

COMBINED_COST = 3.0


@dataclass(frozen=True, slots=True)
class AttackChange:
    """Folded accuracy of one scorer on all rows and on the kept ones, each in 0.5-1."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class AttackSummary:
    """Rows that came in, rows kept, and the attack of each scorer on them."""

    rows: int
    kept: int
    attacks: Mapping[str, AttackChange]

    def as_json(self) -> dict[str, object]:
        """Return this as JSON: ``in``, ``kept``, ``attacks`` (name to before and after)."""
        attacks = {name: {"before": each.before, "after": each.after} for name, each in self.attacks.items()}
        return {"in": self.rows, "kept": self.kept, "attacks": attacks}


@dataclass(frozen=True, slots=True)
class MeasuredAttack:
    """An attack on a number of rows, with its 95% interval (Wilson's, about the folded accuracy).

    Attributes:
        rows: how many.
        accuracy: folded, 0.5-1.
        low: lower end of the interval, 0-1; below 0.5 where the attack may be a coin's toss.
        high: upper end, 0-1.
        by_type: the same within each type of edit.
    """

    rows: int
    accuracy: float
    low: float
    high: float
    by_type: Mapping[str, "MeasuredAttack"]

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
    """Return how well each blind attack does on the rows, always on held-out folds.

    Args:
        rows: string columns ``group``, ``positive``, ``negative``, ``type``, as for refinement.
        corpus: captions to train the fixed scorers on; without, the positives of the rows.
        seed: of the folds.
        scorers: the fixed scorers; by default those that need no weights.
        classifiers: those that are trained on the rows.
    """
    texts = RowTexts(*(rows[name].to_list() for name in ("positive", "negative", "group", "type")))
    fixed = fixed_scorers(corpus) if scorers is None else scorers
    evidence = collect_evidence(texts, fixed, seed, classifiers)
    names, kind = encode_names(texts.types)
    found = {}
    for name, gap in attack_gaps(evidence, texts.groups, seed).items():
        by_type = {each: _measure(gap[kind == number], {}) for number, each in enumerate(names)}
        found[name] = _measure(gap, by_type)
    return found


def attack_gaps(evidence: Mapping[str, Evidence], groups: Sequence[str], seed: int | str) -> dict[str, FloatArray]:
    """Return by how much each attack prefers the positive of each row, float64 (n,) a name, *combined* last.

    Classifiers are trained on the rows given, each row being judged by one that saw no row of its group.
    """
    from scipy.sparse import hstack

    evidence = {name: each for name, each in evidence.items() if not each.balance_only}
    found = {
        name: held_out_gaps(each.features, groups, seed, cost=each.cost) if each.gaps is None else each.gaps
        for name, each in track(evidence.items(), "attacking", unit="attacks")
    }
    if len(evidence) > 1:
        together = hstack([each.features for each in evidence.values()], format="csr")
        found[COMBINED] = held_out_gaps(together, groups, seed, cost=COMBINED_COST)
    return found


def preference_rate(gaps: FloatArray) -> float:
    """Return the share of rows in which the positive is preferred, ties and missing scores counting half, in 0-1."""
    if not len(gaps):
        return 0.5
    wins, losses = int(np.count_nonzero(gaps > 0)), int(np.count_nonzero(gaps < 0))
    return 0.5 + (wins - losses) / (2 * len(gaps))


def attack_accuracy(gaps: FloatArray) -> float:
    """Return the folded accuracy of picking the text with the higher score, in 0.5-1; 0.5 for no rows.

    Args:
        gaps: float64 (n,), score of the positive minus score of the negative; NaN for no score.
    """
    return max(preference_rate(gaps), preference_rate(-gaps))


def summarize_attacks(gaps: Mapping[str, FloatArray], kept: npt.NDArray[np.bool_]) -> AttackSummary:
    """Return how the scorers fare on all rows and on the kept ones."""
    attacks = {name: AttackChange(attack_accuracy(gap), attack_accuracy(gap[kept])) for name, gap in gaps.items()}
    return AttackSummary(len(kept), int(np.count_nonzero(kept)), attacks)


def summarize_attacks_by_type(
    types: Sequence[str], gaps: Mapping[str, FloatArray], kept: npt.NDArray[np.bool_]
) -> dict[str, AttackSummary]:
    """Return the `standing` of the rows of each type, types in alphabetical order."""
    names, member = encode_names(types)
    return {
        name: summarize_attacks({scorer: gap[member == number] for scorer, gap in gaps.items()}, kept[member == number])
        for number, name in enumerate(names)
    }


def _measure(gaps: FloatArray, by_type: Mapping[str, MeasuredAttack]) -> MeasuredAttack:
    low, high = wilson_interval(attack_accuracy(gaps) * len(gaps), len(gaps))
    return MeasuredAttack(len(gaps), attack_accuracy(gaps), low, high, by_type)


_SMALL_SET = 5_000
_LIMIT_MARGIN = 0.002
MIN_GROUPS, MIN_ROWS = 10, 50

KeptMask = npt.NDArray[np.bool_]
PreferenceRates = Mapping[str, list[tuple[float, int]]]


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round came to.

    Attributes:
        kept: rows it kept.
        worst: the attack that did best on them, and in which type ("" for all rows).
        accuracy: of that attack, folded.
        over: how far it is beyond its limit, in accuracy; 0 or less: within.
        holds: whether every attack was within its limit.
    """

    kept: int
    worst: str
    accuracy: float
    over: float
    holds: bool


@dataclass(frozen=True, eq=False)
class EvaluatedSubset:
    """A subset.

    Attributes:
        kept: bool (n,).
        detected_by: int64 (n,), for each row the number of the piece of evidence that speaks for its positive most.
        rates: how the attacks stand on it.
    """

    kept: KeptMask
    detected_by: IntArray
    rates: PreferenceRates


@dataclass(frozen=True, eq=False)
class SubsetEvaluator:
    """Where attacks are tried on subsets of the rows.

    Attributes:
        evidence: of all rows.
        groups: one a row.
        kind: int64 (n,), the number of each row's type.
        names: of the types.
    """

    evidence: Mapping[str, Evidence]
    groups: Sequence[str]
    kind: IntArray
    names: Sequence[str]

    def gaps(self, kept: KeptMask, *seeds: str) -> list[dict[str, FloatArray]]:
        """Return by how much each attack prefers the positive of each kept row, for each set of folds tried."""
        rows = np.flatnonzero(kept)
        within = {name: each.of(kept) for name, each in self.evidence.items() if not each.balance_only}
        groups = [self.groups[row] for row in rows.tolist()]
        # How rows fall into folds moves the accuracy on a small set by a point or two: there, the mean of three.
        times = 3 if len(rows) < _SMALL_SET else 1
        return [attack_gaps(within, groups, f"{seed} {number}") for seed in seeds for number in range(times)]

    def parts(self, kept: KeptMask) -> list[KeptMask]:
        """Return which of the kept rows are in all of them, then in each type."""
        kinds = self.kind[kept]
        return [np.ones(len(kinds), np.bool_), *(kinds == number for number in range(len(self.names)))]

    def rates(self, kept: KeptMask, tried: Sequence[Mapping[str, FloatArray]]) -> PreferenceRates:
        """Return what each attack prefers: (share for the positive, rows) on all kept rows, then on each type.

        Args:
            kept: bool (n,).
            tried: the `gaps` on them.
        """
        return {
            name: [
                (float(np.mean([preference_rate(gaps[name][part]) for gaps in tried])), int(part.sum()))
                for part in self.parts(kept)
            ]
            for name in tried[0]
        }

    def is_large_enough(self, kept: KeptMask) -> bool:
        """Return whether attacks on so few rows tell anything: classifiers need some images to learn from."""
        rows = np.flatnonzero(kept).tolist()
        return len(rows) >= MIN_ROWS and len({self.groups[row] for row in rows}) >= MIN_GROUPS


def check_limits(rates: PreferenceRates, names: Sequence[str], target: float) -> RoundResult:
    """Return whether every attack is within its limit, by a margin for other folds, and which is furthest out."""
    labels = ["", *names]
    worst = ("", 0.5, -1.0)
    for attack, parts in rates.items():
        for label, (share, rows) in zip(labels, parts, strict=True):
            over = abs(share - 0.5) - tightened_limit(target, rows, label)
            if over > worst[2]:
                worst = (f"{attack} in {label}" if label else attack, 0.5 + abs(share - 0.5), over)
    rows = next(iter(rates.values()))[0][1]
    return RoundResult(rows, worst[0], worst[1], worst[2], holds=worst[2] <= 0)


def tightened_limit(target: float, rows: int, label: str) -> float:
    """Return how far from one half an attack may be found in a part, less a margin for other folds.

    Args:
        target: folded accuracy, 0.5-1.
        rows: of the part.
        label: its type; empty: all rows.
    """
    return (allowed_deviation(target, rows) if label else target - 0.5) - _LIMIT_MARGIN


def allowed_deviation(target: float, rows: int) -> float:
    """Return how far from one half an attack may stand in a type of so many rows: the target, or its 95% interval."""
    return max(target - 0.5, float(Z95 * 0.5 / np.sqrt(max(rows, 1))))
