"""The last step of the general refinement, where no round holds: what still tells leaves the nearest one row by row.

Balancing works on sums, an attack is judged by how often it is right. In a small type a few strong rows can outweigh many
weak ones, so that the sums are even and the counts are not. So of the part where an attack is beyond its limit, the rows
go on which it is surest, on the side that it prefers, until it is well within. Then all attacks are trained anew on
what is left, and so on. Whether the set holds is told by folds that trimmed nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pairwright.filters.attacks.accuracy import preference_rate
from pairwright.filters.attacks.subset_evaluation import (
    EvaluatedSubset,
    RoundResult,
    SubsetEvaluator,
    check_limits,
    tightened_limit,
)
from pairwright.generators.language.vocabulary import FloatArray, IntArray

MAX_TRIMS = 8
# How much of its limit an attack may use after a trim: what the next training finds is a little more. And what is left to
# spare at the end: from folds to folds an attack on some thousand rows moves by half a point.
_LIMIT_SHARE = 0.6
_MARGIN = 0.004


def trim_subset(
    arena: SubsetEvaluator, start: EvaluatedSubset, target: float, least: int, seed: int
) -> tuple[EvaluatedSubset, tuple[RoundResult, ...]]:
    """Trim a subset until every attack is within its limit, or as long as it stays large enough.

    Args:
        arena: where attacks are tried.
        start: the subset.
        target: folded accuracy that no attack may exceed, 0.5-1.
        least: rows below which it may not fall.
        seed: of the folds.

    Returns:
        The nearest that was found, and what each trim came to, first of all the subset as it was.
    """
    now, best, rounds = start, start, []
    for number in range(MAX_TRIMS + 1):
        tried = arena.gaps(now.kept, *(f"{seed} trim {number} {time}" for time in (0, 1)))
        now = EvaluatedSubset(now.kept, now.told_by, arena.leans(now.kept, tried))
        rounds.append(check_limits(now.leans, arena.names, target))
        if rounds[-1].over <= min(each.over for each in rounds):
            best = now
        left = _drop_most_confident(arena, now, tried, target)
        rows = int(left.kept.sum())
        if rows == now.kept.sum() or rows < max(least, 1) or not arena.tells(left.kept):
            break
        now = left
    return best, tuple(rounds)


def _drop_most_confident(
    arena: SubsetEvaluator, found: EvaluatedSubset, tried: Sequence[Mapping[str, FloatArray]], target: float
) -> EvaluatedSubset:
    rows = np.flatnonzero(found.kept)
    numbers = {name: number for number, name in enumerate(arena.evidence)}
    kept, told_by, left = found.kept.copy(), found.told_by.copy(), np.ones(len(rows), np.bool_)
    for name in tried[0]:
        gaps = [each[name] for each in tried]
        for label, part in zip(["", *arena.names], arena.parts(found.kept), strict=True):
            gone = _most_confident(gaps, np.flatnonzero(part & left), target, label)
            left[gone] = False
            kept[rows[gone]] = False
            # What is told by all there is together stays with the piece that speaks most.
            told_by[rows[gone]] = numbers.get(name, told_by[rows[gone]])
    return EvaluatedSubset(kept, told_by, found.leans)


def _most_confident(gaps: list[FloatArray], rows: IntArray, target: float, label: str) -> IntArray:
    # The fewest rows without which the attack is well within its limit; none where it is.
    found = float(np.mean([preference_rate(each[rows]) for each in gaps]))
    side, most = np.sign(found - 0.5), tightened_limit(target, len(rows), label)
    if abs(found - 0.5) <= most - min(_MARGIN, (1.0 - _LIMIT_SHARE) * most):
        return rows[:0]
    # Of n rows a share p is on the side, and q is aimed at: d rows less, (p n - d) / (n - d) = q.
    aim = 0.5 + _LIMIT_SHARE * most
    share = max(found, 1.0 - found)
    number = int(np.ceil((share - aim) * len(rows) / (1.0 - aim)))
    sure = np.round(np.mean([side * np.nan_to_num(each[rows]) for each in gaps], axis=0), 9)
    return rows[np.argsort(-sure, kind="stable")[:number]]
