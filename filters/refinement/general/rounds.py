"""Rounds of the general method: a plan (`steps.py`) that selects rows until no attack exceeds the target.

Its steps (`round_steps.py`) choose the rows of one type, or train one attack, and leave the rows in files.

A loose target may hold on all rows. Then no round is needed, if the evidence with goals for held-out scorers meets its
goals in every type.

Types of which hardly any row can be kept (an added text is always longer) are dropped first: the few rows that a round
would keep of them exceed the limit of their type, so no round would hold.

Every round selects the largest subset whose evidence is balanced (`balanced_subset.py`), under a penalty on the
imbalance of each piece of evidence within each type. Then classifiers are trained on the selected rows, over new folds,
and the penalty of their features follows the preference on held-out rows: it rises where the classifier prefers the
positive and falls where it prefers the negative, in steps that shrink from round to round. It also falls in a type whose
features are more even than random signs would leave them: there a classifier of this type alone is wrong about held-out
rows, which one of all types need not show.

An attack can be *too* weak: when a set is balanced to the last row, a classifier of four fifths of it is wrong about
the other fifth, and right when inverted. A set whose positives were drawn at random is balanced no better than random
sums are. So the features of the fixed scorers, which are few and could be balanced exactly, are not brought to zero but
near the sums that random signs for the same rows give. The sums of a classifier's many features do not reach zero anyway.
Random signs differ in how much of them a classifier learns, and a balanced set leaves it little else: so where the combined
classifier detects more than its goal, the random sums get a lower weight in the next round, and where it is wrong more often
than right a higher one.

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

from pairwright.filters.attacks.accuracy import (
    MIN_GROUPS,
    MIN_ROWS,
    PreferenceRates,
    RoundResult,
    check_limits,
    compute_allowed_deviation,
)
from pairwright.filters.attacks.registry import COMBINED, TRANSFER
from pairwright.filters.refinement.defaults import DEFAULT_ROUNDS
from pairwright.filters.refinement.general.round_steps import (
    Subset,
    bound_rows,
    choose_rows,
    drop_type,
    keep_all_rows,
    measure_classifier,
    measure_scorers,
    name_chosen,
    stack_features,
    trim_rows,
)
from pairwright.filters.refinement.steps import Plan, Step

# Initial penalties of classifiers, of fixed scorers and of the transfer estimate.
_CLASSIFIER_PENALTY, _SCORER_PENALTY, _TRANSFER_PENALTY = 0.3, 0.2, 0.1
_PENALTY_STEP = 0.06
# Weight of random sums: at first above 1, as a finite penalty falls short.
_RANDOM_WEIGHT, _MIN_RANDOM_WEIGHT, _MAX_RANDOM_WEIGHT = 1.3, 0.03, 3.0
_TYPE_WEIGHT = 0.7
# What a perfectly even type takes off the logarithm of a classifier's penalty in a round.
_EVENNESS_STEP = 0.5
_TRANSFER_SLACK = 0.02
_MIN_HOLDING_ROUNDS = 3
LARGE_CORPUS = 100_000
_MIN_PENALTY, _MAX_PENALTY = 1e-4, 30.0
MAX_TRIMS = 8
ALL_ROWS: Subset = ("all-rows",)
_Rate = tuple[float, int]


@dataclass(frozen=True, slots=True)
class SubsetRequirements:
    """Requirements of a refined set.

    Attributes:
        target: folded accuracy that no attack may exceed, 0.5-1.
        min_rows: minimum number of rows.
        rounds: maximum number of rounds.
    """

    target: float
    min_rows: int = 0
    rounds: int = DEFAULT_ROUNDS


@dataclass(frozen=True)
class PlannedEvidence:
    """What the plan knows of the evidence of one attack (`attacks/evidence.py`).

    Attributes:
        name: of the attack.
        scorer: whether it is a fixed scorer, with gaps.
        balance_only: as in `Evidence`.
        within_goals: as in `Evidence`.
    """

    name: str
    scorer: bool
    balance_only: bool = False
    within_goals: bool = True


@dataclass(frozen=True)
class PlannedRows:
    """What the plan knows of the rows.

    Attributes:
        strata: names of the strata (`evidence_files.RowNumbers`).
        kinds: names of the types.
        number: how many there are.
        slots: whether several rows may be candidates for one place.
    """

    number: int
    strata: Sequence[str]
    kinds: Sequence[str]
    slots: bool = False


@dataclass(frozen=True)
class Measured:
    """What the attacks find in a subset.

    Attributes:
        subset: names of the files that hold it.
        rates: preferences of the attacks, in all rows and in each stratum.
        rows: number of rows.
        groups: number of their groups, of which mirrored ones are one.
        gaps: name of each attack, and the file with its gaps; empty if they were not stored.
    """

    subset: Subset
    rates: PreferenceRates
    rows: int
    groups: int
    gaps: tuple[tuple[str, str], ...] = ()

    @property
    def is_large_enough(self) -> bool:
        """Whether classifiers can be trained and tested on the rows."""
        return _is_large_enough(self.rows, self.groups)


@dataclass(frozen=True, eq=False)
class SelectedSubset:
    """The selected subset.

    Attributes:
        measured: the subset.
        rounds: all rounds in order, followed by the check of the selected subset.
        holds: whether the subset meets the requirements.
    """

    measured: Measured
    rounds: tuple[RoundResult, ...]
    holds: bool


@dataclass(frozen=True, eq=False)
class JudgedSubset:
    """The selected subset, and the preferences of the attacks in all rows and in each type.

    Attributes:
        selected: the subset.
        before: preferences on all rows.
        after: preferences on the subset.
        bounds: upper bound on the rows that are balanced for each fixed scorer; and for all of them, without a name.
    """

    selected: SelectedSubset
    before: PreferenceRates
    after: PreferenceRates
    bounds: Mapping[str, int]


def _is_large_enough(rows: int, groups: int) -> bool:
    return rows >= MIN_ROWS and groups >= MIN_GROUPS


@dataclass(frozen=True)
class SubsetSearch:
    """Finds a large subset on which no attack exceeds the target.

    Attributes:
        rows: what is known of the rows.
        evidence: of each attack; the transfer estimate comes last.
        requirements: of the subset.
        seed: of the folds.
    """

    rows: PlannedRows
    evidence: Sequence[PlannedEvidence]
    requirements: SubsetRequirements
    seed: int

    def judge(self) -> Plan[JudgedSubset]:
        """Plan the selection of a subset, and the measurement of all rows and of the subset."""
        scorers = tuple(each.name for each in self.evidence if each.scorer)
        _, found = yield [
            Step(ALL_ROWS[0], keep_all_rows, ALL_ROWS),
            Step("bounds", bound_rows, (scorers, self.requirements.target)),
        ]
        bounds, one_sided = found["rows"], [(stratum, scorer) for stratum, scorer in found["one_sided"]]
        before = yield from self.measure("before", ALL_ROWS, f"{self.seed} before", by="kinds")
        if not self.rows.number:
            return JudgedSubset(SelectedSubset(before, (), holds=False), before.rates, before.rates, bounds)
        # If all types are one-sided, the search shows how far the set is from being balanced.
        selected = yield from self.select(one_sided if len(one_sided) < len(self.rows.strata) else ())
        after = selected.measured.rates
        if len(self.rows.strata) != len(self.rows.kinds):  # balanced in total
            by_type = yield from self.measure("types", selected.measured.subset, f"{self.seed} types", by="kinds")
            after = by_type.rates
        return JudgedSubset(selected, before.rates, after, bounds)

    def select(self, one_sided: Sequence[tuple[int, str]] = ()) -> Plan[SelectedSubset]:
        """Plan the selection of the largest subset found on which no attack exceeds the target.

        Args:
            one_sided: strata of which no row is kept, each with the fixed scorer that detects them (`bound_rows`).
        """
        if not self.rows.slots and all(each.within_goals for each in self.evidence):
            whole = yield from self._check(ALL_ROWS, [], only_if_large=True)
            if whole.holds:
                return whole
        target, names = self.requirements.target, tuple(each.name for each in self.evidence)
        dropped = {stratum: f"dropped-{stratum}" for stratum, _ in one_sided}
        strata = [each for each in range(len(self.rows.strata)) if each not in dropped]
        yield [
            *(Step(dropped[each], drop_type, (each, dropped[each], names.index(scorer))) for each, scorer in one_sided),
            *(Step(f"stacked-{each}", stack_features, (each, names, self.seed)) for each in strata),
        ]
        penalties = {each: _Penalties.of(self.evidence) for each in strata}
        rounds: list[RoundResult] = []
        found: list[Measured] = []
        for number in range(self.requirements.rounds):
            subset = (*(name_chosen(number, each) for each in strata), *dropped.values())
            chosen = yield [
                Step(
                    name_chosen(number, each),
                    choose_rows,
                    (each, number, penalties[each].values, penalties[each].random_weight, target),
                )
                for each in strata
            ]
            found.append((yield from self.measure(f"round-{number}", subset, f"{self.seed} {number}")))
            rates = found[-1].rates
            rounds.append(check_limits(rates, self.rows.strata, target))
            if _enough_rounds_hold(rounds):
                break
            step = _PENALTY_STEP * float(np.sqrt(1.0 + number / 3.0))
            penalties = {
                stratum: penalties[stratum].update(
                    {name: (parts[0], parts[stratum + 1]) for name, parts in rates.items()},
                    facts["imbalance"],
                    target,
                    step,
                )
                for stratum, facts in zip(strata, chosen, strict=True)
            }
        return (yield from self._choose_best_round(rounds, found))

    def measure(
        self, name: str, subset: Subset, *seeds: str, by: str = "strata", keep_gaps: bool = False
    ) -> Plan[Measured]:
        """Plan the measurement of the attacks on a subset, on new folds.

        Args:
            name: of the measurement, unique in the folder.
            subset: of the rows.
            seeds: of sets of folds.
            by: ``strata`` or ``kinds``, in which preferences are counted too.
            keep_gaps: whether the gaps of classifiers are stored.
        """
        attacks = [each for each in self.evidence if not each.balance_only]
        trained: list[tuple[str, tuple[str, ...]]] = [(each.name, (each.name,)) for each in attacks if not each.scorer]
        if len(attacks) > 1:
            trained.append((COMBINED, tuple(each.name for each in attacks)))
        scorers = tuple(each.name for each in attacks if each.scorer)
        files = {attack: f"gaps-{name}-{attack}" if keep_gaps else "" for attack, _ in trained}
        # The combined classifier takes longest, so it begins first.
        facts = yield [
            *(
                Step(f"{name}-{attack}", measure_classifier, (subset, names, by, seeds, files[attack]))
                for attack, names in reversed(trained)
            ),
            Step(f"{name}-scorers", measure_scorers, (subset, scorers, by, seeds)),
        ]
        rates = {attack: parts for each in facts for attack, parts in each["rates"].items()}
        order = [*(each.name for each in attacks), *([COMBINED] if len(attacks) > 1 else [])]
        size = facts[-1]
        return Measured(
            subset,
            {attack: [(share, rows) for share, rows in rates[attack]] for attack in order},
            size["rows"],
            size["groups"],
            tuple((attack, files.get(attack, "")) for attack in order),
        )

    def _check(
        self, subset: Subset, rounds: Sequence[RoundResult], *, only_if_large: bool = False
    ) -> Plan[SelectedSubset]:
        # Measure a subset on folds that no penalty was fitted to.
        seeds = (f"{self.seed} check {time}" for time in (0, 1))
        found = yield from self.measure(f"check-{subset[0]}", subset, *seeds)
        if only_if_large and not found.is_large_enough:
            return SelectedSubset(found, (), holds=False)
        check = check_limits(found.rates, self.rows.strata, self.requirements.target)
        return SelectedSubset(found, (*rounds, check), holds=check.holds)

    def _choose_best_round(self, rounds: list[RoundResult], found: list[Measured]) -> Plan[SelectedSubset]:
        min_rows = self.requirements.min_rows
        order = sorted(range(len(rounds)), key=lambda number: -rounds[number].kept)
        for number in order:
            if rounds[number].holds and rounds[number].kept >= min_rows and found[number].is_large_enough:
                checked = yield from self._check(found[number].subset, rounds)
                if checked.holds:
                    return checked
        # No round holds: take the nearest one of those that are large enough, and trim it.
        large = [number for number in order if rounds[number].kept >= min_rows] or order[:1]
        one = found[min(large, key=lambda number: rounds[number].over)]
        if not one.is_large_enough:
            return SelectedSubset(one, tuple(rounds), holds=False)
        last, trims = yield from self.trim(one)
        holds = bool(
            check_limits(last.rates, self.rows.strata, self.requirements.target).holds and last.rows >= min_rows
        )
        end = last if holds else one  # a subset that does not hold is not trimmed
        return SelectedSubset(end, (*rounds, *trims), holds=holds)

    def trim(self, start: Measured) -> Plan[tuple[Measured, tuple[RoundResult, ...]]]:
        """Plan to trim a subset until every attack is within its limit, as long as it stays large enough.

        Args:
            start: the subset.

        Returns:
            The nearest subset found, and the result of each trim, beginning with that of ``start``.
        """
        target, subset, best = self.requirements.target, start.subset, start
        rounds: list[RoundResult] = []
        for number in range(MAX_TRIMS + 1):
            seeds = tuple(f"{self.seed} trim {number} {time}" for time in (0, 1))
            now = yield from self.measure(f"trim-{number}", subset, *seeds, keep_gaps=True)
            rounds.append(check_limits(now.rates, self.rows.strata, target))
            if rounds[-1].over <= min(each.over for each in rounds):
                best = now
            name = f"trimmed-{number}"
            (left,) = yield [Step(name, trim_rows, (subset, name, now.gaps, target, seeds))]
            large = left["rows"] >= max(self.requirements.min_rows, 1) and _is_large_enough(
                left["rows"], left["groups"]
            )
            if left["rows"] == now.rows or not large:
                break
            subset = (name,)
        return best, tuple(rounds)


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


@dataclass(frozen=True)
class _Penalties:
    """The penalty on each piece of evidence in one stratum, and the weight of the random sums of its scorers."""

    evidence: Sequence[PlannedEvidence]
    values: tuple[float, ...]
    random_weight: float = _RANDOM_WEIGHT

    @classmethod
    def of(cls, evidence: Sequence[PlannedEvidence]) -> "_Penalties":
        return cls(evidence, tuple(_choose_initial_penalty(each) for each in evidence))

    def update(
        self, rates: Mapping[str, tuple[_Rate, _Rate]], imbalance: Sequence[float], target: float, step: float
    ) -> "_Penalties":
        """Raise the penalty of evidence that detects more than its goal, and lower that of evidence that detects less.

        The weight of the random sums follows the combined classifier, the other way round.

        Args:
            rates: of each attack, in all rows and in those of this stratum, with the number of rows.
            imbalance: of each piece of evidence in this stratum, as a multiple of what random signs give
                (`round_steps.choose_rows`).
            target: as in `SubsetRequirements`.
            step: distance from the goal at which a penalty is multiplied by e.
        """
        goal = max(target - _TRANSFER_SLACK, 0.5)
        scorers = [each.name for each in self.evidence if each.scorer]
        tried = {
            name: (1.0 - _TYPE_WEIGHT) * total + _TYPE_WEIGHT * own
            for name, ((total, _), (own, _)) in rates.items()
            if name not in scorers
        }
        # Classifiers overlap: what one detects, and what one is wrong about, applies to the others in part.
        shared = max(tried.values(), default=goal) - goal + min([0.0, *(each - 1.0 + goal for each in tried.values())])
        # The transfer estimate moves all scorers towards the negative: no further than the target allows in all rows,
        # and the limit of the stratum in its own.
        near = _TRANSFER_SLACK / 8
        far = 0.0
        for (total, _), (own, rows) in (rates[name] for name in scorers):
            far = max(far, 1.0 - target + near - total, 0.5 - compute_allowed_deviation(target, rows) + near - own)
        values = np.array(self.values)
        for number, each in enumerate(self.evidence):
            if each.name in tried:
                too_even = _EVENNESS_STEP * max(1.0 - imbalance[number], 0.0)
                above = (tried[each.name] - goal + shared) / 2.0 / step
                values[number] *= np.exp(np.clip(above - too_even, -1.0, 1.0))
            elif each.name == TRANSFER:
                values[number] *= np.exp(-min(far / _TRANSFER_SLACK, 1.0))
        together = tried.get(COMBINED, 0.5)
        beyond = max(together - goal, 0.0) + min(together - 1.0 + goal, 0.0)
        weight = self.random_weight * np.exp(-np.clip(beyond / 2.0 / step, -1.0, 1.0))
        return _Penalties(
            self.evidence,
            tuple(np.clip(values, _MIN_PENALTY, _MAX_PENALTY).tolist()),
            float(np.clip(weight, _MIN_RANDOM_WEIGHT, _MAX_RANDOM_WEIGHT)),
        )


def _choose_initial_penalty(evidence: PlannedEvidence) -> float:
    if evidence.balance_only:
        return _TRANSFER_PENALTY
    return _SCORER_PENALTY if evidence.scorer else _CLASSIFIER_PENALTY


def _enough_rounds_hold(rounds: list[RoundResult]) -> bool:
    # Enough rounds hold, and the last one regained hardly a row.
    holding = [each.kept for each in rounds if each.holds]
    return len(holding) >= _MIN_HOLDING_ROUNDS and rounds[-1].holds and holding[-1] <= 1.005 * max(holding[:-1])
