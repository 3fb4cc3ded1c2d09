"""Which answers a run has met already: a hash of each key, in a table that is never more than two thirds full.

A run of a million rows meets millions of answers, for which a set of Python's takes five times the memory; they come one by
one, where `datasets.seen` is for batches.
"""

from array import array

_BITS = 2**64 - 1
_FIRST = 2**10  # places to begin with


class SeenCacheKeys:
    """Keys that were added. Of two with the same hash of 64 bits, which no run will meet, it knows one."""

    def __init__(self) -> None:
        self._places, self._count = array("Q", bytes(8 * _FIRST)), 0

    def add(self, key: str) -> bool:
        """Add a key; return whether it is new."""
        word = hash(key) & _BITS or 1  # 0 is a free place
        at = _find(self._places, word)
        if self._places[at] == word:
            return False
        self._places[at] = word
        self._count += 1
        if 3 * self._count > 2 * len(self._places):
            self._grow()
        return True

    def _grow(self) -> None:
        larger = array("Q", bytes(16 * len(self._places)))
        for word in self._places:
            if word:
                larger[_find(larger, word)] = word
        self._places = larger


def _find(places: "array[int]", word: int) -> int:
    """Return where a word stands, or may be put."""
    last = len(places) - 1
    at = word & last
    while places[at] not in {0, word}:
        at = (at + 1) & last
    return at
