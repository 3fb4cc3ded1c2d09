"""Choice of the conversation types that a model is asked for: by ratio, drawn for each pair, or by count over all pairs.

A ratio is applied to each pair with the pair's own rng, so it needs no second pass; the resulting counts vary randomly
around it. A count selects the pairs beforehand by a hash, for each type separately, so that no answer is paid for and
discarded. Fewer rows may be kept, since answers are validated.

Template conversations cost nothing: they are made for all pairs, and `balance` keeps the requested number.
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
    """Validate ratios.

    Raises:
        UsageError: a ratio is negative, all are zero, or one is for a type that is not requested.
    """
    require_known("a ratio is given for a type that is not requested:", ratios, types)
    if ratios and (min(ratios.values()) < 0 or not 0 < sum(ratios.values()) < float("inf")):
        raise UsageError(f"ratios must be finite, 0 or more, and at least one above 0; these are {dict(ratios)}.")


def draw_type(ratios: Mapping[str, float], rng: random.Random) -> str:
    """Return a type drawn with probability proportional to its ratio."""
    sums = list(accumulate(ratios.values()))
    at = rng.random() * sums[-1]
    return next(name for name, upto in zip(ratios, sums, strict=True) if at < upto)


def assign_types(keys: Iterable[str], counts: Mapping[str, int], seed: int) -> dict[str, frozenset[str]]:
    """Return the keys of the pairs to ask about for each type; independent of the order of ``keys``.

    Args:
        keys: keys of all pairs.
        counts: type -> number of pairs, 0 or more; all pairs if there are fewer.
        seed: seed of the hash that selects the pairs.
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
