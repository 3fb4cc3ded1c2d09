"""Where attacks are tried on what is left of a set: each on held-out folds, in all rows and within each type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairwright.filters.attacks.accuracy import attack_gaps, preference_rate
from pairwright.filters.attacks.evidence import Evidence
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.generators.language.vocabulary import FloatArray, IntArray

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
        told_by: int64 (n,), for each row the number of the piece of evidence that speaks for its positive most.
        leans: how the attacks stand on it.
    """

    kept: KeptMask
    told_by: IntArray
    leans: PreferenceRates


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
        within = {name: each.of(kept) for name, each in self.evidence.items() if not each.silent}
        groups = [self.groups[row] for row in rows.tolist()]
        # How rows fall into folds moves the accuracy on a small set by a point or two: there, the mean of three.
        times = 3 if len(rows) < _SMALL_SET else 1
        return [attack_gaps(within, groups, f"{seed} {number}") for seed in seeds for number in range(times)]

    def parts(self, kept: KeptMask) -> list[KeptMask]:
        """Return which of the kept rows are in all of them, then in each type."""
        kinds = self.kind[kept]
        return [np.ones(len(kinds), np.bool_), *(kinds == number for number in range(len(self.names)))]

    def leans(self, kept: KeptMask, tried: Sequence[Mapping[str, FloatArray]]) -> PreferenceRates:
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

    def tells(self, kept: KeptMask) -> bool:
        """Return whether attacks on so few rows tell anything: classifiers need some images to learn from."""
        rows = np.flatnonzero(kept).tolist()
        return len(rows) >= MIN_ROWS and len({self.groups[row] for row in rows}) >= MIN_GROUPS


def check_limits(leans: PreferenceRates, names: Sequence[str], target: float) -> RoundResult:
    """Return whether every attack is within its limit, by a margin for other folds, and which is furthest out."""
    labels = ["", *names]
    worst = ("", 0.5, -1.0)
    for attack, parts in leans.items():
        for label, (share, rows) in zip(labels, parts, strict=True):
            over = abs(share - 0.5) - tightened_limit(target, rows, label)
            if over > worst[2]:
                worst = (f"{attack} in {label}" if label else attack, 0.5 + abs(share - 0.5), over)
    rows = next(iter(leans.values()))[0][1]
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
