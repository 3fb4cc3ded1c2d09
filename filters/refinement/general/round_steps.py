"""Steps of the rounds of a refinement (`rounds.py`), on files of one folder (`evidence_files.py`).

1. `bound_rows`: how many rows can be kept at most. `drop_type`: no row of a type of which hardly any can be kept.
   `stack_features`: the features of the rows of one of the other strata in one matrix.
2. `choose_rows`: the rows of one stratum that are kept in a round.
3. `measure_scorers`, `measure_classifier`: preferences of the attacks on a subset. One step trains one classifier.
4. `trim_rows`: a smaller subset, without the rows that attacks beyond their limits are most confident about.

A *subset* is named by files that hold it, one for each stratum or one for all rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.accuracy import (
    COMBINED_COST,
    MIN_GROUPS,
    KeptMask,
    compute_allowed_deviation,
    compute_preference_rate,
    tighten_limit,
)
from pairwright.filters.attacks.registry import COMBINED
from pairwright.filters.attacks.text_classifier import compute_repeated_gaps
from pairwright.filters.refinement.general.balanced_subset import SubsetBalancer, bound_balanced_rows
from pairwright.filters.refinement.general.evidence_files import (
    RowNumbers,
    load_evidence,
    load_gaps,
    restore_matrix,
    store_matrix,
)
from pairwright.filters.refinement.part_arrays import map_array, map_arrays, save_array, save_mapped
from pairwright.filters.refinement.steps import StepResult
from pairwright.generators.language.vocabulary import FloatArray, IntArray

_NOISE = 0.3
_INITIAL_SHARE = 0.4
# How far random sums may move a scorer, as a share of what the target allows, of which its goal takes half; and the maximum.
_RANDOM_SUM_SHARE, _RANDOM_SUM_LIMIT = 0.3, 0.015
_LOOSE_TARGET = 0.045
_SMALL_SET = 5_000
# After a trim an attack may use this share of its limit, as the next training detects slightly more; and this margin
# is left, as other folds move an attack on some thousand rows by half a point.
_LIMIT_SHARE = 0.6
_MARGIN = 0.004
_BOUNDED_AT = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_500)  # rows of a type at which its limit is taken

Subset = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SubsetRows:
    """A subset of the rows.

    Attributes:
        kept: bool (n,).
        detected_by: int64 (n,), for each row the number of the evidence that most favours its positive.
    """

    kept: KeptMask
    detected_by: IntArray

    def save(self, folder: Path, name: str) -> Path:
        """Write the subset, in one file."""
        rows = np.arange(len(self.kept))
        return _save_chosen(folder, name, rows, self)


def load_subset(folder: Path, subset: Subset) -> SubsetRows:
    """Return a subset."""
    files = [map_arrays(folder / f"{name}.arrow") for name in subset]
    rows = np.concatenate([each["rows"] for each in files])
    kept, detected_by = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64)
    for each in files:
        kept[each["rows"]], detected_by[each["rows"]] = each["kept"] != 0, each["detected_by"]
    return SubsetRows(kept, detected_by)


def keep_all_rows(folder: Path, name: str) -> StepResult:
    """Store the subset of all rows."""
    rows = len(RowNumbers.load(folder).stratum)
    subset = SubsetRows(np.ones(rows, np.bool_), np.zeros(rows, np.int64))
    return [subset.save(folder, name)], {}


def bound_rows(folder: Path, names: Sequence[str], target: float) -> StepResult:
    """Return upper bounds on the rows that are balanced for fixed scorers (`balanced_subset.bound_balanced_rows`).

    A type is *one-sided* if fewer than `MIN_GROUPS` of its rows can be balanced: an added text is always longer.

    Args:
        folder: of all steps.
        names: of the fixed scorers.
        target: folded accuracy that no attack may exceed, 0.5-1.

    Returns:
        No files; and the facts ``rows``, the bound of each scorer and, without a name, that of all of them in all types
        together; and ``one_sided``, the numbers of such types, each with the name of the scorer that allows fewest rows.
    """
    gaps = {name: load_gaps(folder, name) for name in names}
    bounds = {name: bound_balanced_rows({name: gap}, target) for name, gap in gaps.items()}
    numbers = RowNumbers.load(folder)
    if not gaps:
        return [], {"rows": {"": len(numbers.stratum)}, "one_sided": []}
    of_types, one_sided = [], []
    for stratum, name in enumerate(numbers.strata):
        rows = np.flatnonzero(numbers.stratum == stratum)
        own = {scorer: gap[rows] for scorer, gap in gaps.items()}
        places = len(np.unique(numbers.slot[rows])) if len(numbers.slot) else len(rows)
        of_types.append(min(_bound_type(own, target, name), places))
        if of_types[-1] < MIN_GROUPS:
            one_sided.append((stratum, min(own, key=lambda scorer: _bound_type({scorer: own[scorer]}, target, name))))
    together = min(bound_balanced_rows(gaps, target), sum(of_types))
    return [], {"rows": bounds | {"": together}, "one_sided": one_sided}


def _bound_type(gaps: Mapping[str, FloatArray], target: float, label: str) -> int:
    """Return the bound of one type, whose limit is wider the fewer rows are kept (`compute_allowed_deviation`).

    With at least n rows the limit is at most that of n rows; so fewer than n are kept, or at most their bound.
    """
    if not label:
        return bound_balanced_rows(gaps, target)
    return min(
        max(rows - 1, bound_balanced_rows(gaps, min(0.5 + compute_allowed_deviation(target, rows), 1.0)))
        for rows in _BOUNDED_AT
    )


def drop_type(folder: Path, stratum: int, name: str, detected_by: int) -> StepResult:
    """Store that no row of a stratum is kept, and which evidence detects all of them."""
    rows = np.flatnonzero(RowNumbers.load(folder).stratum == stratum)
    none = SubsetRows(np.zeros(len(rows), np.bool_), np.full(len(rows), detected_by, np.int64))
    return [_save_chosen(folder, name, rows, none)], {}


def stack_features(folder: Path, stratum: int, names: Sequence[str], seed: int) -> StepResult:
    """Store all features of the rows of one stratum, and its random numbers.

    Args:
        folder: of all steps.
        stratum: its number.
        names: of the evidence.
        seed: of the random numbers.
    """
    from scipy.sparse import hstack

    numbers = RowNumbers.load(folder)
    rows = np.flatnonzero(numbers.stratum == stratum)
    evidence = [load_evidence(folder, name) for name in names]
    features = [each.features[rows] for each in evidence]
    # Random values decide between rows of nearly equal evidence; otherwise every row with the smallest trace of a
    # word would be dropped.
    noise = make_numpy_rng(seed, "worth").standard_normal(len(numbers.stratum))[rows]
    signs = np.where(make_numpy_rng(seed, "coins").random(len(numbers.stratum)) < 0.5, -1.0, 1.0)[rows]
    slot = numbers.slot
    arrays = {
        "rows": rows,
        "owner": np.repeat(np.arange(len(features)), [block.shape[1] for block in features]),
        "noise": noise,
        "signs": signs,
        "slots": slot if not len(slot) else np.unique(slot[rows], return_inverse=True)[1].astype(np.int64),
        "scorers": np.flatnonzero([each.gaps is not None for each in evidence]),
    }
    stacked = store_matrix(hstack(features, format="csr"))
    return [save_mapped(folder / f"stacked-{stratum}.arrow", arrays | stacked)], {}


def choose_rows(  # noqa: PLR0913, PLR0917 - a step's arguments
    folder: Path, stratum: int, number: int, penalties: tuple[float, ...], random_weight: float, target: float
) -> StepResult:
    """Store which rows of a stratum are kept in a round.

    Args:
        folder: of all steps.
        stratum: its number.
        number: of the round, from 0.
        penalties: on the imbalance of each piece of evidence.
        random_weight: of the random sums that the scorers' features are brought near to.
        target: folded accuracy that no attack may exceed, 0.5-1.

    Returns:
        The file, and the fact ``imbalance``, of each piece of evidence (`_compare_with_random_signs`).
    """
    array = map_arrays(folder / f"stacked-{stratum}.arrow")
    slots = array["slots"] if len(array["slots"]) else None
    balancer, owner = SubsetBalancer(restore_matrix(array), slots), array["owner"]
    before = map_arrays(folder / f"{name_chosen(number - 1, stratum)}.arrow")["shares"] if number else None
    features, weights = balancer.features, np.array(penalties)[owner]
    goal = _sum_random_signs(balancer, array, before, random_weight, target)
    worth = 1.0 + _NOISE * array["noise"] + features @ (weights * goal)
    shares = balancer.shares(weights, worth)
    pull = weights * (features.T @ shares - goal)
    by_name = [features @ np.where(owner == place, pull, 0.0) for place in range(len(penalties))]
    detected_by = np.argmax(np.round(np.stack(by_name, axis=1), 9), axis=1).astype(np.int64)
    name = name_chosen(number, stratum)
    chosen = SubsetRows(balancer.whole(shares), detected_by)
    imbalance = _compare_with_random_signs(balancer, chosen.kept, owner, len(penalties))
    return [_save_chosen(folder, name, array["rows"], chosen, shares)], {"imbalance": imbalance}


def name_chosen(number: int, stratum: int) -> str:
    """Return the name of the file with the choice of a round in a stratum."""
    return f"chosen-{number}-{stratum}"


def measure_scorers(folder: Path, subset: Subset, names: Sequence[str], by: str, seeds: tuple[str, ...]) -> StepResult:
    """Return the preferences of fixed scorers on a subset, and how many rows and groups it has."""
    numbers, kept = RowNumbers.load(folder), load_subset(folder, subset).kept
    parts = _parts(numbers, kept, by)
    sets = _count_sets(kept, seeds)
    rates = {}
    for name in names:
        rates[name] = _rates([load_gaps(folder, name)[kept]] * sets, parts)
    size = {"rows": int(np.count_nonzero(kept)), "groups": len(np.unique(numbers.group[kept]))}
    return [], {"rates": rates, **size}


def measure_classifier(  # noqa: PLR0913, PLR0917 - a step's arguments
    folder: Path, subset: Subset, names: tuple[str, ...], by: str, seeds: tuple[str, ...], stored: str = ""
) -> StepResult:
    """Train a classifier on a subset; return its preferences on held-out rows of it.

    Args:
        folder: of all steps.
        subset: of the rows.
        names: of the evidence whose features it reads; several: the combined classifier.
        by: ``strata`` or ``kinds``, in which preferences are counted too.
        seeds: of sets of folds.
        stored: file to store the held-out gaps in, float64 (sets of folds, rows); empty: they are not stored.
    """
    numbers, kept = RowNumbers.load(folder), load_subset(folder, subset).kept
    evidence = [load_evidence(folder, name) for name in names]
    combined = len(evidence) > 1
    features = [each.trained_on(kept) for each in evidence]
    # The folds move the accuracy on a small set by one or two points, so there the mean of three sets of folds is used.
    times = _count_sets(kept, ("",))
    sets = [f"{seed} {number}" for seed in seeds for number in range(times)]
    cost = COMBINED_COST if combined else evidence[0].cost
    gaps = compute_repeated_gaps(features, numbers.group[kept], sets, cost=cost)
    files = [save_array(folder, stored, np.stack(gaps))] if stored else []
    name = COMBINED if combined else names[0]
    return files, {"rates": {name: _rates(gaps, _parts(numbers, kept, by))}}


def trim_rows(  # noqa: PLR0913, PLR0917 - a step's arguments
    folder: Path,
    subset: Subset,
    name: str,
    measured: tuple[tuple[str, str], ...],
    target: float,
    seeds: tuple[str, ...],
) -> StepResult:
    """Store a subset without the rows that attacks beyond their limits are most confident about.

    Args:
        folder: of all steps.
        subset: to trim.
        name: of the trimmed one.
        measured: name of each attack, and the file with its gaps on the subset; empty for a fixed scorer.
        target: folded accuracy that no attack may exceed, 0.5-1.
        seeds: of the sets of folds of the gaps.
    """
    numbers, found = RowNumbers.load(folder), load_subset(folder, subset)
    rows = np.flatnonzero(found.kept)
    kept, detected_by, left = found.kept.copy(), found.detected_by.copy(), np.ones(len(rows), np.bool_)
    parts, sets = _parts(numbers, found.kept, "strata"), _count_sets(found.kept, seeds)
    for place, (attack, file) in enumerate(measured):
        gaps = list(map_array(folder, file)) if file else [load_gaps(folder, attack)[found.kept]] * sets
        for label, part in zip(["", *numbers.strata], parts, strict=True):
            dropped = _find_most_confident(gaps, np.flatnonzero(part & left), target, label)
            left[dropped] = False
            kept[rows[dropped]] = False
            # Rows that only the combined classifier detects keep the evidence they had.
            if attack != COMBINED:
                detected_by[rows[dropped]] = place
    trimmed = SubsetRows(kept, detected_by)
    size = {"rows": int(np.count_nonzero(kept)), "groups": len(np.unique(numbers.group[kept]))}
    return [trimmed.save(folder, name)], size


def _save_chosen(folder: Path, name: str, rows: IntArray, subset: SubsetRows, shares: FloatArray | None = None) -> Path:
    arrays: dict[str, npt.NDArray[Any]] = {
        "rows": rows,
        "kept": subset.kept.astype(np.int8),
        "detected_by": subset.detected_by,
    }
    return save_mapped(folder / f"{name}.arrow", arrays | ({} if shares is None else {"shares": shares}))


def _count_sets(kept: KeptMask, seeds: Sequence[str]) -> int:
    return len(seeds) * (3 if np.count_nonzero(kept) < _SMALL_SET else 1)


def _parts(numbers: RowNumbers, kept: KeptMask, by: str) -> list[KeptMask]:
    # Masks over the kept rows: all of them, then those of each stratum or type.
    kind, names = (numbers.kind, numbers.kinds) if by == "kinds" else (numbers.stratum, numbers.strata)
    of_kept = kind[kept]
    return [np.ones(len(of_kept), np.bool_), *(of_kept == number for number in range(len(names)))]


def _rates(sets: Sequence[FloatArray], parts: Sequence[KeptMask]) -> list[tuple[float, int]]:
    # (preference rate, rows) in each part, the mean over the sets of folds.
    return [
        (float(np.mean([compute_preference_rate(gaps[part]) for gaps in sets])), int(np.count_nonzero(part)))
        for part in parts
    ]


def _sum_random_signs(
    balancer: SubsetBalancer,
    array: Mapping[str, npt.NDArray[Any]],
    before: FloatArray | None,
    weight: float,
    target: float,
) -> FloatArray:
    # Sums of the scorers' features over the kept rows if the positives were drawn at random.
    owner, signs = array["owner"], array["signs"]
    shares = np.full(len(signs), _INITIAL_SHARE) if before is None else before
    # A loose target keeps all scorers on one side, so that none is balanced too well.
    weight *= min(1.0, _LOOSE_TARGET / max(target - 0.5, 1e-3))
    sums = weight * (balancer.features.T @ (signs * shares))
    goal = np.zeros(len(owner))
    for number in array["scorers"].tolist():
        block = np.flatnonzero(owner == number)
        size = float(np.abs(balancer.features[:, block[:1]].data).max(initial=0.0))
        limit = 2.0 * min(_RANDOM_SUM_SHARE * (target - 0.5), _RANDOM_SUM_LIMIT) * float(shares.sum()) * size
        # The first sum is that of all bands: it may not exceed what the target allows.
        beyond = sums[block[0]] - np.clip(sums[block[0]], -limit, limit)
        goal[block] = sums[block] - beyond * np.where(np.arange(len(block)) == 0, 1.0, 1.0 / (len(block) - 1))
    return goal


def _compare_with_random_signs(balancer: SubsetBalancer, kept: KeptMask, owner: IntArray, pieces: int) -> list[float]:
    # Squared sums of each piece's features over the kept rows, as a multiple of their mean under random signs: the sum
    # of the squared features. At 1, a row and the sum over the others have a mean product of 0. Below 1 it is negative:
    # a classifier that is trained on the others is wrong about the row. 1 without features.
    rows = kept.astype(np.float64)
    squared = np.bincount(owner, (balancer.features.T @ rows) ** 2, pieces)
    expected = np.bincount(owner, balancer.squares.T @ rows, pieces)
    imbalance: list[float] = np.round(np.divide(squared, expected, np.ones(pieces), where=expected > 0), 6).tolist()
    return imbalance


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
