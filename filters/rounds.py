"""The general refinement: choose, attack what is left afresh, choose again with what the attack has shown.

Every round takes the largest subset whose evidence is balanced (`selection.py`), at a price of imbalance for each
piece of evidence, in all rows and within each type. Then classifiers are trained anew on the rows that are left, over
fresh folds, and each piece of evidence that still tells more than it may costs more in the next round; one that tells
less than it may costs less, so that rows come back. An attack can be *too* weak: when a set is balanced to the last
row, a classifier of four fifths of it is wrong about the other fifth, and turned around it is right. So prices are
steered to a goal on both sides.

Of the rounds in which every attack is within the target in total, and within each type no further from one half than
the target or its 95% interval, the one with most rows is taken that still
holds when its attacks are averaged with those under folds that steered nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.datasets.chance import array_stream
from pairwright.filters.attacks import attack_gaps, lean
from pairwright.filters.evidence import Evidence
from pairwright.filters.intervals import Z95
from pairwright.filters.selection import Balancer
from pairwright.generators.language.vocabulary import FloatArray, IntArray, coded

if TYPE_CHECKING:
    from pairwright.filters.text_features import Differences

_PRICE = 0.1
_RESPONSE = 0.10
_WHIM = 0.3
_EASE = 0.02
_SMALL = 5_000
_MARGIN = 0.016
_CHEAPEST, _DEAREST = 1e-4, 30.0

Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a refined set has to meet.

    Attributes:
        target: folded accuracy that no attack may exceed, 0.5-1.
        least: rows below which the set may not fall.
        rounds: how many are tried at most.
    """

    target: float = 0.52
    least: int = 0
    rounds: int = 12


@dataclass(frozen=True, slots=True)
class Round:
    """What one round came to.

    Attributes:
        kept: rows it kept.
        worst: the attack that did best on them, and in which type ("" for all rows).
        accuracy: of that attack, folded.
        holds: whether every attack was within its limit.
    """

    kept: int
    worst: str
    accuracy: float
    holds: bool


@dataclass(frozen=True, eq=False)
class Selection:
    """The subset taken.

    Attributes:
        kept: bool (n,).
        told_by: for each row the number of the piece of evidence that speaks for its positive most.
        rounds: all of them, in order; last the check of the one taken.
        leans: how the attacks stand on the subset.
        holds: whether the subset met the demand.
    """

    kept: Kept
    told_by: IntArray
    rounds: tuple[Round, ...]
    leans: "Leans"
    holds: bool


def select(
    evidence: Mapping[str, Evidence], groups: Sequence[str], types: Sequence[str], demand: Demand, seed: int
) -> Selection:
    """Return the largest subset found on which no attack exceeds the target.

    Args:
        evidence: of all rows, by name.
        groups: one a row, for the folds.
        types: one a row; rows are balanced within each. All equal: in total alone.
        demand: what has to be met.
        seed: of the folds.
    """
    names, kind = coded(types)
    # Of rows with like evidence chance decides; were it the smallest trace of a word, that trace would be all gone.
    luck = array_stream(seed, "worth").standard_normal(len(kind))
    arena = Arena(evidence, groups, kind, names)
    parts = [_Part.of(evidence, np.flatnonzero(kind == number), luck) for number in range(len(names))]
    rounds, found = [], []
    for number in range(demand.rounds):
        kept, told_by = np.zeros(len(kind), np.bool_), np.zeros(len(kind), np.int64)
        for part in parts:
            kept[part.rows], told_by[part.rows] = part.choose()
        leans = arena.leans(kept, f"{seed} {number}")
        rounds.append(verdict(leans, names, demand.target))
        found.append(_Found(kept, told_by, leans))
        for place, part in enumerate(parts, 1):
            part.answer({name: (each[0][0], each[place][0]) for name, each in leans.items()}, demand.target)
    return _best(rounds, found, demand, lambda kept: arena.leans(kept, f"{seed} check"), names)


Leans = Mapping[str, list[tuple[float, int]]]


@dataclass(frozen=True, eq=False)
class Arena:
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

    def leans(self, kept: Kept, seed: str) -> Leans:
        """Return what each attack prefers: (share for the positive, rows) on all kept rows, then on each type."""
        rows = np.flatnonzero(kept)
        within = {name: each.of(kept) for name, each in self.evidence.items()}
        groups = [self.groups[row] for row in rows.tolist()]
        parts = [np.ones(len(rows), np.bool_), *(self.kind[rows] == number for number in range(len(self.names)))]
        # How rows fall into folds moves the accuracy on a small set by a point or two: there, the mean of three.
        times = 3 if len(rows) < _SMALL else 1
        tried = [attack_gaps(within, groups, f"{seed} {number}") for number in range(times)]
        return {
            name: [(float(np.mean([lean(gaps[name][part]) for gaps in tried])), int(part.sum())) for part in parts]
            for name in tried[0]
        }


def verdict(leans: Leans, names: Sequence[str], target: float) -> Round:
    """Return whether every attack is within its limit, and which is furthest out."""
    labels = ["", *names]
    worst = ("", 0.5, -1.0)
    for attack, parts in leans.items():
        for label, (share, rows) in zip(labels, parts, strict=True):
            over = abs(share - 0.5) - (allowed(target, rows) if label else target - 0.5)
            if over > worst[2]:
                worst = (f"{attack} in {label}" if label else attack, 0.5 + abs(share - 0.5), over)
    rows = next(iter(leans.values()))[0][1]
    return Round(rows, worst[0], worst[1], holds=worst[2] <= 0)


def allowed(target: float, rows: int) -> float:
    """Return how far from one half an attack may stand in a type of so many rows: the target, or its 95% interval."""
    return max(target - 0.5, float(Z95 * 0.5 / np.sqrt(max(rows, 1))))


def fixed_goal(target: float) -> float:
    """Return the share of rows in which a fixed scorer shall prefer the positive.

    A little under one half where the target allows it: another scorer of the same kind, trained on other captions,
    prefers the positive more often than the one that the rows were chosen by.
    """
    return max(target - 0.035, 1.002 - target)


class _Part:
    """The rows of one type, and what imbalance of each piece of evidence costs among them."""

    def __init__(
        self,
        rows: IntArray,
        luck: FloatArray,
        features: Sequence["Differences"],
        names: Sequence[str],
        scorers: Sequence[str],
    ) -> None:
        from scipy.sparse import hstack

        self.rows = rows
        self.luck = luck
        self.whim = _WHIM
        self.names = names
        self.scorers = scorers
        self.owner = np.repeat(np.arange(len(features)), [block.shape[1] for block in features])
        self.balancer = Balancer(hstack(features, format="csr"))
        self.shares: FloatArray | None = None
        self.prices = np.full(len(names), _PRICE)

    @classmethod
    def of(cls, evidence: Mapping[str, Evidence], rows: IntArray, luck: FloatArray) -> "_Part":
        from scipy.sparse import hstack

        features = [
            each.features[rows] if each.beside is None else hstack([each.features, each.beside], format="csr")[rows]
            for each in evidence.values()
        ]
        return cls(
            rows,
            luck[rows],
            features,
            list(evidence),
            [name for name, each in evidence.items() if each.gaps is not None],
        )

    def choose(self) -> tuple[Kept, IntArray]:
        """Return which rows are kept, and the number of the piece of evidence that speaks most for each positive."""
        weights = self.prices[self.owner]
        self.shares = self.balancer.shares(weights, 1.0 + self.whim * self.luck, self.shares)
        voice = weights * (self.balancer.features.T @ self.shares)
        by_name = [
            self.balancer.features @ np.where(self.owner == number, voice, 0.0) for number in range(len(self.names))
        ]
        told_by = np.argmax(np.round(np.stack(by_name, axis=1), 9), axis=1).astype(np.int64)
        return self.shares > 0.5, told_by

    def answer(self, leans: Mapping[str, tuple[float, float]], target: float) -> None:
        """Raise the price of what tells more than its goal, in total or here; lower that of what tells less."""
        goal = max(target - _MARGIN, 0.502)
        here = 0.5 + allowed(target, int((self.shares > 0.5).sum())) - _MARGIN if self.shares is not None else goal
        tried = {name: each for name, each in leans.items() if name not in self.scorers}
        over = {name: max((total + own) / 2 - goal, own - here) for name, (total, own) in tried.items()}
        wrong = max([0.0, *(1 - goal - (total + own) / 2 for total, own in tried.values())])
        # What one classifier still finds, others find in part; what one is wrong about, others are.
        most = max(over.values(), default=0.0)
        furthest, whim = (-wrong, wrong) if wrong > most else (most, -max(most, _EASE))
        for number, name in enumerate(self.names):
            if name in over:  # a scorer's features hold its goal: any price that is high enough meets it
                error = (over[name] + furthest) / 2
                self.prices[number] *= np.exp(np.clip(error / _RESPONSE, -1.0, 1.0))
        # Only of a set that is balanced too well do rows go by chance.
        self.whim = float(np.clip(self.whim * np.exp(whim / _RESPONSE), _WHIM, 2.0))
        self.prices = np.clip(self.prices, _CHEAPEST, _DEAREST)


@dataclass(frozen=True, eq=False)
class _Found:
    kept: Kept
    told_by: IntArray
    leans: Leans


def _best(
    rounds: list[Round],
    found: list[_Found],
    demand: Demand,
    again: Callable[[Kept], Leans],
    names: Sequence[str],
) -> Selection:
    order = sorted(range(len(rounds)), key=lambda number: -rounds[number].kept)
    for number in order:
        if rounds[number].holds and rounds[number].kept >= demand.least:
            one = found[number]
            leans = _mean(one.leans, again(one.kept))
            check = verdict(leans, names, demand.target)
            if check.holds:
                return Selection(one.kept, one.told_by, (*rounds, check), leans, holds=True)
    # None holds: of those that are large enough, the one that betrays least.
    large = [number for number in order if rounds[number].kept >= demand.least] or order[:1]
    one = found[min(large, key=lambda number: rounds[number].accuracy)]
    return Selection(one.kept, one.told_by, tuple(rounds), one.leans, holds=False)


def _mean(one: Leans, other: Leans) -> Leans:
    return {
        name: [((share + again) / 2, rows) for (share, rows), (again, _) in zip(parts, other[name], strict=True)]
        for name, parts in one.items()
    }
