"""How many rows of each type: drawn pair by pair by ratio, or cut to counts over a finished set.

A ratio is a matter of one pair and its own chance, so it costs nothing and needs no second pass; the counts that come
out differ from it by chance. Counts are exact, and a matter of the whole set: everything is made, and the surplus is
rejected as ``over_count``, in the order of keys, so the order in which rows were made changes nothing.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation

PAPER: Mapping[str, float] = {"conversation": 58, "detail": 23, "reasoning": 77}  # LLaVA-Instruct-158K


def check_ratios(ratios: Mapping[str, float], types: Iterable[str]) -> None:
    """Refuse ratios that are negative, all zero, or of types that are not asked for.

    Raises:
        UsageError: likewise.
    """
    unknown = sorted(set(ratios) - set(types))
    if unknown:
        raise UsageError(f"there is a ratio for {', '.join(unknown)}, which is not among the types {', '.join(types)}.")
    if ratios and (min(ratios.values()) < 0 or not 0 < sum(ratios.values()) < float("inf")):
        raise UsageError(f"ratios are 0 or more, and one is above 0; these are {dict(ratios)}.")


def drawn_type(ratios: Mapping[str, float], rng: random.Random) -> str:
    """Return one type, each as often as its part of all ratios."""
    sums = list(accumulate(ratios.values()))
    at = rng.random() * sums[-1]
    return next(name for name, upto in zip(ratios, sums, strict=True) if at < upto)


def cut_to_counts(rows: Iterable[Annotation], counts: Mapping[str, int]) -> list[Annotation]:
    """Return all rows in their order, of the kept ones at most ``counts[kind]`` of a kind: those of the lowest keys.

    Args:
        rows: annotations of a whole set.
        counts: kind -> how many; kinds that it does not name are not cut.

    Raises:
        UsageError: when a count is negative.
    """
    if any(count < 0 for count in counts.values()):
        raise UsageError(f"counts are 0 or more; these are {dict(counts)}.")
    given = list(rows)
    room = Counter(counts)
    surplus: set[int] = set()
    for at in sorted(range(len(given)), key=lambda at: (given[at].key, given[at].id)):
        row = given[at]
        if row.status != "kept" or row.kind not in counts:
            continue
        room[row.kind] -= 1
        if room[row.kind] < 0:
            surplus.add(at)
    return [
        replace(row, status="rejected", reason="over_count") if at in surplus else row for at, row in enumerate(given)
    ]
