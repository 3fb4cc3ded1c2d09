"""Selection of rows in rounds, for the refinement against all attacks.

A loose target may hold on all rows. Then no round is needed, if the evidence with goals for held-out scorers meets its
goals in every type.

Every round selects the largest subset whose evidence is balanced (`balanced_subset.py`), under a penalty on the
imbalance of each piece of evidence within each type. Then classifiers are trained on the selected rows, over new folds,
and the penalty of their features follows the preference on held-out rows: it rises where the classifier prefers the
positive and falls where it prefers the negative, in steps that shrink from round to round.

An attack can be *too* weak: when a set is balanced to the last row, a classifier of four fifths of it is wrong about
the other fifth, and right when inverted. A set whose positives were drawn at random is balanced no better than random
sums are. So the features of the fixed scorers, which are few and could be balanced exactly, are not brought to zero but
near the sums that random signs for the same rows give: slightly further, as a finite penalty falls short. The sums of a
classifier's many features do not reach zero anyway.

Of the rounds in which every attack is within the target in total, and in each type within the target or its 95%
interval of one half, the one with most rows is taken that also holds under folds that no penalty was fitted to (the
mean of two sets of them). If no round holds, the nearest is trimmed until it holds, or stays unchanged.

Trimming: balancing works on sums, an attack is measured by how often it is right. In a small type a few rows with large
    gaps can outweigh many rows with small ones, so that the sums are even and the counts are not. So of each part where
    an attack is beyond its limit, the rows that it is most confident about are dropped on the side that it prefers,
    until it is well within its limit. Then all attacks are trained on the remaining rows, and so on. Whether the set
    holds is measured on folds that trimmed nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pairwright.datasets.progress import track
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.accuracy import (
    EvaluatedSubset,
    KeptMask,
    PreferenceRates,
    RoundResult,
    SubsetEvaluator,
    check_limits,
    compute_preference_rate,
    tighten_limit,
)
from pairwright.filters.attacks.evidence import Evidence
from pairwright.filters.attacks.registry import TRANSFER
from pairwright.filters.refinement.balanced_subset import SubsetBalancer
from pairwright.generators.language.vocabulary import FloatArray, IntArray, encode_names

# Initial penalties of classifiers, of fixed scorers and of the transfer estimate.
_CLASSIFIER_PENALTY, _SCORER_PENALTY, _TRANSFER_PENALTY = 0.3, 0.2, 0.1
_PENALTY_STEP = 0.06
_NOISE = 0.3
_INITIAL_SHARE = 0.4
# Weight of the random sums; how far they may move a scorer, as a share of what the target allows; and the maximum.
_RANDOM_SUM_WEIGHT, _RANDOM_SUM_SHARE, _RANDOM_SUM_LIMIT = 1.3, 0.45, 0.015
_LOOSE_TARGET = 0.045
_TYPE_WEIGHT = 0.7
_TRANSFER_SLACK = 0.02
_MIN_HOLDING_ROUNDS = 3
LARGE_CORPUS = 100_000
_MIN_PENALTY, _MAX_PENALTY = 1e-4, 30.0


@dataclass(frozen=True, slots=True)
class SubsetRequirements:
    """Requirements of a refined set.

    Attributes:
        target: folded accuracy that no attack may exceed, 0.5-1.
        min_rows: minimum number of rows.
        rounds: maximum number of rounds.
        slots: equal for rows of which at most one may be kept, all of one type; None: each row by itself.
    """

    target: float = 0.52
    min_rows: int = 0
    rounds: int = 12
    slots: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class SelectedSubset:
    """The selected subset.

    Attributes:
        kept: bool (n,).
        detected_by: for each row the number of the evidence that most favours its positive.
        rounds: all rounds in order, followed by the check of the selected subset.
        rates: preferences of the attacks on the subset.
        holds: whether the subset meets the requirements.
        conclusive: whether there are enough rows to measure that.
    """

    kept: KeptMask
    detected_by: IntArray
    rounds: tuple[RoundResult, ...]
    rates: PreferenceRates
    holds: bool
    conclusive: bool


def select_subset(
    evidence: Mapping[str, Evidence],
    groups: Sequence[str],
    types: Sequence[str],
    requirements: SubsetRequirements,
    seed: int,
) -> SelectedSubset:
    """Return the largest subset found on which no attack exceeds the target.

    Args:
        evidence: evidence on all rows, by name.
        groups: group of each row, for the folds.
        types: type of each row; rows are balanced within each type. All equal: in total only.
        requirements: of the subset.
        seed: of the folds.
    """
    names, kind = encode_names(types)
    slot = None if requirements.slots is None else encode_names(requirements.slots)[1]
    # Random values decide between rows of nearly equal evidence; otherwise every row with the smallest trace of a
    # word would be dropped.
    noise = make_numpy_rng(seed, "worth").standard_normal(len(kind))
    random_signs = np.where(make_numpy_rng(seed, "coins").random(len(kind)) < 0.5, -1.0, 1.0)
    evaluator = SubsetEvaluator(evidence, groups, kind, names)
    if slot is None and all(each.within_goals for each in evidence.values()):
        whole = _select_all_rows(requirements, evaluator, seed)
        if whole.holds:
            return whole
    parts = [
        _TypePart(evidence, np.flatnonzero(kind == number), noise, random_signs, slot) for number in range(len(names))
    ]
    rounds, found = [], []
    for number in track(range(requirements.rounds), "refining", unit="rounds at most"):
        kept, detected_by = np.zeros(len(kind), np.bool_), np.zeros(len(kind), np.int64)
        for part in parts:
            kept[part.rows], detected_by[part.rows] = part.choose(requirements.target)
        rates = evaluator.rates(kept, evaluator.gaps(kept, f"{seed} {number}"))
        rounds.append(check_limits(rates, names, requirements.target))
        found.append(EvaluatedSubset(kept, detected_by, rates))
        if _enough_rounds_hold(rounds):
            break
        step = _PENALTY_STEP * float(np.sqrt(1.0 + number / 3.0))
        for place, part in enumerate(parts, 1):
            part.update_penalties(
                {name: (each[0][0], each[place][0]) for name, each in rates.items()}, requirements.target, step
            )
    return _choose_best_round(rounds, found, requirements, evaluator, seed)


def compute_scorer_goal(target: float) -> float:
    """Return the share of rows in which a fixed scorer is to prefer the positive.

    Slightly below one half where the target allows it: another scorer of the same kind, trained on other captions,
    prefers the positive more often than the scorer that the rows were selected by.
    """
    return max(target - 0.06, 1.01 - target)


def compute_transfer_goal(target: float, captions: int) -> float:
    """Return the share of rows in which held-out scorers are to be expected to prefer the positive.

    Below the target by a margin for the error of the estimate; by more where the scorers at hand have read fewer
    captions than others may have: each doubling of the captions adds about a point to the accuracy of a scorer.

    Args:
        target: folded accuracy, 0.5-1.
        captions: number of captions that the scorers at hand were trained on.
    """
    doublings = max(float(np.log2(LARGE_CORPUS / max(captions, 1))), 0.0)
    return target - 0.0275 - 0.005 * min(doublings, 8.0)


class _TypePart:
    """The rows of one type, and the penalty on each piece of evidence among them."""

    def __init__(
        self,
        evidence: Mapping[str, Evidence],
        rows: IntArray,
        noise: FloatArray,
        random_signs: FloatArray,
        slot: IntArray | None,
    ) -> None:
        from scipy.sparse import hstack

        features = [each.features[rows] for each in evidence.values()]
        self.rows = rows
        self.noise = noise[rows]
        self.random_signs = random_signs[rows]
        self.names = list(evidence)
        self.scorers = [name for name, each in evidence.items() if each.gaps is not None]
        self.owner = np.repeat(np.arange(len(features)), [block.shape[1] for block in features])
        slots = None if slot is None else np.unique(slot[rows], return_inverse=True)[1]
        self.balancer = SubsetBalancer(hstack(features, format="csr"), slots)
        self.shares: FloatArray | None = None
        self.penalties = np.array([_choose_initial_penalty(each) for each in evidence.values()])

    def choose(self, target: float) -> tuple[KeptMask, IntArray]:
        """Return which rows are kept, and for each row the number of the evidence that most favours its positive."""
        features, weights = self.balancer.features, self.penalties[self.owner]
        goal = self._random_sums(target)
        worth = 1.0 + _NOISE * self.noise + features @ (weights * goal)
        # With slots, each round starts from 0.5: the choice of a candidate would otherwise persist.
        self.shares = self.balancer.shares(weights, worth, self.shares if self.balancer.slots is None else None)
        pull = weights * (features.T @ self.shares - goal)
        by_name = [features @ np.where(self.owner == number, pull, 0.0) for number in range(len(self.names))]
        detected_by = np.argmax(np.round(np.stack(by_name, axis=1), 9), axis=1).astype(np.int64)
        return self.balancer.whole(self.shares), detected_by

    def _random_sums(self, target: float) -> FloatArray:
        # Sums of the scorers' features over the kept rows if the positives were drawn at random.
        shares = np.full(len(self.rows), _INITIAL_SHARE) if self.shares is None else self.shares
        # A loose target keeps all scorers on one side, so that none is balanced too well.
        weight = _RANDOM_SUM_WEIGHT * min(1.0, _LOOSE_TARGET / max(target - 0.5, 1e-3))
        sums = weight * (self.balancer.features.T @ (self.random_signs * shares))
        goal = np.zeros(len(self.owner))
        for number, name in enumerate(self.names):
            if name in self.scorers:
                block = np.flatnonzero(self.owner == number)
                size = float(np.abs(self.balancer.features[:, block[:1]].data).max(initial=0.0))
                limit = 2.0 * min(_RANDOM_SUM_SHARE * (target - 0.5), _RANDOM_SUM_LIMIT) * float(shares.sum()) * size
                # The first sum is that of all bands: it may not exceed what the target allows.
                beyond = sums[block[0]] - np.clip(sums[block[0]], -limit, limit)
                goal[block] = sums[block] - beyond * np.where(np.arange(len(block)) == 0, 1.0, 1.0 / (len(block) - 1))
        return goal

    def update_penalties(self, rates: Mapping[str, tuple[float, float]], target: float, step: float) -> None:
        """Raise the penalty of evidence that detects more than its goal, and lower that of evidence that detects less.

        Args:
            rates: of each attack, in all rows and in those of this type.
            target: as in `SubsetRequirements`.
            step: distance from the goal at which a penalty is multiplied by e.
        """
        goal = max(target - _TRANSFER_SLACK, 0.5)
        tried = {
            name: (1.0 - _TYPE_WEIGHT) * total + _TYPE_WEIGHT * own
            for name, (total, own) in rates.items()
            if name not in self.scorers
        }
        # Classifiers overlap: what one detects, and what one is wrong about, applies to the others in part.
        shared = max(tried.values(), default=goal) - goal + min([0.0, *(each - 1.0 + goal for each in tried.values())])
        for number, name in enumerate(self.names):
            if name in tried:
                self.penalties[number] *= np.exp(np.clip((tried[name] - goal + shared) / 2.0 / step, -1.0, 1.0))
        # The transfer estimate moves all scorers towards the negative: no further than the target allows.
        far = max([0.0, *(1.0 - target + _TRANSFER_SLACK / 8 - rates[name][0] for name in self.scorers)])
        if TRANSFER in self.names:
            self.penalties[self.names.index(TRANSFER)] *= np.exp(-min(far / _TRANSFER_SLACK, 1.0))
        self.penalties = np.clip(self.penalties, _MIN_PENALTY, _MAX_PENALTY)


def _choose_initial_penalty(evidence: Evidence) -> float:
    if evidence.balance_only:
        return _TRANSFER_PENALTY
    return _CLASSIFIER_PENALTY if evidence.gaps is None else _SCORER_PENALTY


def _enough_rounds_hold(rounds: list[RoundResult]) -> bool:
    # Enough rounds hold, and the last one regained hardly a row.
    holding = [each.kept for each in rounds if each.holds]
    return len(holding) >= _MIN_HOLDING_ROUNDS and rounds[-1].holds and holding[-1] <= 1.005 * max(holding[:-1])


def _select_all_rows(requirements: SubsetRequirements, evaluator: SubsetEvaluator, seed: int) -> SelectedSubset:
    kept, detected_by = np.ones(len(evaluator.kind), np.bool_), np.zeros(len(evaluator.kind), np.int64)
    if not evaluator.is_large_enough(kept):
        return SelectedSubset(kept, detected_by, (), {}, holds=False, conclusive=False)
    return _check_subset(EvaluatedSubset(kept, detected_by, {}), [], requirements, evaluator, seed)


def _check_subset(
    one: EvaluatedSubset,
    rounds: Sequence[RoundResult],
    requirements: SubsetRequirements,
    evaluator: SubsetEvaluator,
    seed: int,
) -> SelectedSubset:
    # Measure a subset on folds that no penalty was fitted to.
    rates = evaluator.rates(one.kept, evaluator.gaps(one.kept, *(f"{seed} check {time}" for time in (0, 1))))
    check = check_limits(rates, evaluator.names, requirements.target)
    return SelectedSubset(one.kept, one.detected_by, (*rounds, check), rates, holds=check.holds, conclusive=True)


def _choose_best_round(
    rounds: list[RoundResult],
    found: list[EvaluatedSubset],
    requirements: SubsetRequirements,
    evaluator: SubsetEvaluator,
    seed: int,
) -> SelectedSubset:
    order = sorted(range(len(rounds)), key=lambda number: -rounds[number].kept)
    for number in order:
        if (
            rounds[number].holds
            and rounds[number].kept >= requirements.min_rows
            and evaluator.is_large_enough(found[number].kept)
        ):
            checked = _check_subset(found[number], rounds, requirements, evaluator, seed)
            if checked.holds:
                return checked
    # No round holds: take the nearest one of those that are large enough, and trim it.
    large = [number for number in order if rounds[number].kept >= requirements.min_rows] or order[:1]
    one = found[min(large, key=lambda number: rounds[number].over)]
    if not evaluator.is_large_enough(one.kept):
        return SelectedSubset(one.kept, one.detected_by, tuple(rounds), one.rates, holds=False, conclusive=False)
    last, trims = trim_subset(evaluator, one, requirements.target, requirements.min_rows, seed)
    holds = bool(
        check_limits(last.rates, evaluator.names, requirements.target).holds
        and last.kept.sum() >= requirements.min_rows
    )
    end = last if holds else one  # a subset that does not hold is not trimmed
    return SelectedSubset(end.kept, end.detected_by, (*rounds, *trims), end.rates, holds=holds, conclusive=True)


MAX_TRIMS = 8
# After a trim an attack may use this share of its limit, as the next training detects slightly more; and this margin
# is left, as other folds move an attack on some thousand rows by half a point.
_LIMIT_SHARE = 0.6
_MARGIN = 0.004


def trim_subset(
    evaluator: SubsetEvaluator, start: EvaluatedSubset, target: float, min_rows: int, seed: int
) -> tuple[EvaluatedSubset, tuple[RoundResult, ...]]:
    """Trim a subset until every attack is within its limit, as long as it stays large enough.

    Args:
        evaluator: measures the attacks.
        start: the subset.
        target: folded accuracy that no attack may exceed, 0.5-1.
        min_rows: minimum number of rows.
        seed: of the folds.

    Returns:
        The nearest subset found, and the result of each trim, beginning with that of ``start``.
    """
    now, best, rounds = start, start, []
    for number in range(MAX_TRIMS + 1):
        tried = evaluator.gaps(now.kept, *(f"{seed} trim {number} {time}" for time in (0, 1)))
        now = EvaluatedSubset(now.kept, now.detected_by, evaluator.rates(now.kept, tried))
        rounds.append(check_limits(now.rates, evaluator.names, target))
        if rounds[-1].over <= min(each.over for each in rounds):
            best = now
        left = _drop_most_confident(evaluator, now, tried, target)
        rows = int(left.kept.sum())
        if rows == now.kept.sum() or rows < max(min_rows, 1) or not evaluator.is_large_enough(left.kept):
            break
        now = left
    return best, tuple(rounds)


def _drop_most_confident(
    evaluator: SubsetEvaluator, found: EvaluatedSubset, tried: Sequence[Mapping[str, FloatArray]], target: float
) -> EvaluatedSubset:
    rows = np.flatnonzero(found.kept)
    numbers = {name: number for number, name in enumerate(evaluator.evidence)}
    kept, detected_by, left = found.kept.copy(), found.detected_by.copy(), np.ones(len(rows), np.bool_)
    for name in tried[0]:
        gaps = [each[name] for each in tried]
        for label, part in zip(["", *evaluator.names], evaluator.parts(found.kept), strict=True):
            dropped = _find_most_confident(gaps, np.flatnonzero(part & left), target, label)
            left[dropped] = False
            kept[rows[dropped]] = False
            # Rows that only the combined classifier detects keep the evidence they had.
            detected_by[rows[dropped]] = numbers.get(name, detected_by[rows[dropped]])
    return EvaluatedSubset(kept, detected_by, found.rates)


def _find_most_confident(gaps: list[FloatArray], rows: IntArray, target: float, label: str) -> IntArray:
    # The fewest rows without which the attack is well within its limit; none where it is already.
    rate = float(np.mean([compute_preference_rate(each[rows]) for each in gaps]))
    side, limit = np.sign(rate - 0.5), tighten_limit(target, len(rows), label)
    if abs(rate - 0.5) <= limit - min(_MARGIN, (1.0 - _LIMIT_SHARE) * limit):
        return rows[:0]
    # With d of n rows dropped from the preferred side, its share p falls to q: (p n - d) / (n - d) = q.
    aim = 0.5 + _LIMIT_SHARE * limit
    share = max(rate, 1.0 - rate)
    number = int(np.ceil((share - aim) * len(rows) / (1.0 - aim)))
    confidence = np.round(np.mean([side * np.nan_to_num(each[rows]) for each in gaps], axis=0), 9)
    return rows[np.argsort(-confidence, kind="stable")[:number]]
