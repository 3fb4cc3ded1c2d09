"""How many rows of each type a model is asked for: drawn pair by pair by ratio, or counted out over the whole set.

A ratio is a matter of one pair and its own chance, so it costs no second pass; the counts that come out differ from it
by chance. A count names the pairs beforehand, so that no answer is paid for and then thrown away: as many as are asked
for, chosen by a hash, each type on its own. What is given may be fewer, since answers are checked.

Templates cost nothing: they are made for all pairs, and `balance` keeps as many as are asked for.
"""

import heapq
import random
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import accumulate

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

PAPER_RATIOS: Mapping[str, float] = {"conversation": 58, "detail": 23, "reasoning": 77}  # LLaVA-Instruct-158K


def check_ratios(ratios: Mapping[str, float], types: Iterable[str]) -> None:
    """Refuse ratios that are negative, all zero, or of types that are not asked for.

    Raises:
        UsageError: likewise.
    """
    require_known("there is a ratio for what is not among the types:", ratios, types)
    if ratios and (min(ratios.values()) < 0 or not 0 < sum(ratios.values()) < float("inf")):
        raise UsageError(f"ratios are 0 or more, and one is above 0; these are {dict(ratios)}.")


def draw_type(ratios: Mapping[str, float], rng: random.Random) -> str:
    """Return one type, each as often as its part of all ratios."""
    sums = list(accumulate(ratios.values()))
    at = rng.random() * sums[-1]
    return next(name for name, upto in zip(ratios, sums, strict=True) if at < upto)


def assign_types(keys: Iterable[str], counts: Mapping[str, int], seed: int) -> dict[str, frozenset[str]]:
    """Return for each type the keys of the pairs to ask about, the same for any order of ``keys``.

    Args:
        keys: of all pairs.
        counts: type to how many pairs, 0 or more; all pairs when there are fewer.
        seed: another one chooses other pairs.
    """
    lowest: dict[str, list[tuple[int, str]]] = {kind: [] for kind in counts}
    for key in keys:
        for kind, count in counts.items():
            place = -int.from_bytes(blake2b(f"{seed} {kind} {key}".encode(), digest_size=8).digest())
            held = lowest[kind]
            if len(held) < count:
                heapq.heappush(held, (place, key))
            else:
                heapq.heappushpop(held, (place, key))
    return {kind: frozenset(key for _, key in held) for kind, held in lowest.items()}
