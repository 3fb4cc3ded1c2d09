"""A random number generator that is cheap to seed, for rules.

Each caption has its own stream for each type of negative and draws few words from it; seeding a `random.Random` takes
longer than these draws. Here the seed is the state of a linear congruential generator (Knuth, The Art of Computer
Programming 2, section 3.3.4, MMIX), whose upper 31 of 64 bits are used: good enough to choose words, not for statistics.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log1p
from typing import NamedTuple, TypeVar

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_STATE_MASK = 2**64 - 1
_DISCARDED_BITS, _OUTPUT_BITS = 33, 31  # bits
_STEP = 2.0**-_OUTPUT_BITS
MAX_DRAWN_WORDS = 24  # words drawn at most for one place

Item = TypeVar("Item")


class WeightedWords(NamedTuple):
    """Words with the cumulative sums of their weights."""

    words: tuple[str, ...]
    sums: tuple[float, ...]

    @classmethod
    def of(cls, words: tuple[str, ...], weights: Iterator[float]) -> "WeightedWords":
        """Build from words and their weights."""
        return cls(words, tuple(accumulate(weights)))


class RandomStream:
    """A random stream.

    Args:
        seed: 64 random bits; consecutive seeds give similar streams.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, number: int) -> int:
        """Return an integer in [0, ``number``); ``number`` is at most 2**31."""
        self._state = state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        return (state >> _DISCARDED_BITS) * number >> _OUTPUT_BITS

    def share(self) -> float:
        """Return a float in [0, 1)."""
        self._state = state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        return (state >> _DISCARDED_BITS) * _STEP

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order."""
        drawn = list(items)
        for at in range(len(drawn) - 1, 0, -1):
            other = self.below(at + 1)
            drawn[at], drawn[other] = drawn[other], drawn[at]
        return drawn

    def weighted_shuffle(self, items: Sequence[Item], weights: Sequence[float]) -> list[Item]:
        """Return the items in random order, each next one drawn by weight (above 0)."""
        if len(items) <= 1:
            return list(items)
        # Exponential waiting times: the shortest is item i with probability weight_i / sum of weights.
        keys = [-log1p(-self.share()) / weight for weight in weights]
        return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__)]

    def weighted_sample(self, urn: WeightedWords, most: int) -> Iterator[str]:
        """Yield up to ``most`` distinct words drawn by weight, with at most twice as many draws."""
        words, sums = urn
        if len(words) <= 1:
            yield from words
            return
        seen: set[str] = set()
        whole, last = sums[-1], len(words) - 1
        for _ in range(2 * most):
            # `share`, inlined: the hot path.
            self._state = state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
            word = words[bisect(sums, (state >> _DISCARDED_BITS) * _STEP * whole, 0, last)]
            if word not in seen:
                yield word
                seen.add(word)
                if len(seen) == most:
                    return
