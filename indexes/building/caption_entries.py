"""Entries of a text index: the captions of an image, each with a vector of its own.

All captions of a pair are entries of it, so that a query finds the image by whichever says it best. Pairs that were exploded
(one a caption, each with the others beside it) would list every caption of an image under each of its pairs. Such pairs are
*siblings*, known by the same image and the same set of captions, and each has one entry, its own caption.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.records import Pair

MAX_OTHER_CAPTIONS = 2**16 - 1  # other captions of a pair that are entries

Siblings = NDArray[np.uint64]
NO_SIBLINGS: Siblings = np.empty(0, np.uint64)


@dataclass(frozen=True)
class CaptionEntries:
    """What gets a vector.

    Attributes:
        pairs: one an entry; its ``caption`` is the text of the entry.
        captions: which caption of its pair each is, uint16 (n,): 0 its own, n the n-th other one.
    """

    pairs: Sequence[Pair]
    captions: NDArray[np.uint16]


def expand_captions(pairs: Sequence[Pair], siblings: Siblings) -> CaptionEntries:
    """Return the entries of ``pairs``, in order: the pair's own caption, then the others."""
    found: list[Pair] = []
    captions: list[int] = []
    for pair, others in zip(pairs, _indexed_captions(pairs, siblings), strict=True):
        found.append(pair)
        captions.append(0)
        for number, text in enumerate(others, start=1):
            found.append(replace(pair, caption=text, captions=()))
            captions.append(number)
    return CaptionEntries(found, np.array(captions, np.uint16))


def one_entry_per_pair(pairs: Sequence[Pair]) -> CaptionEntries:
    """Return one entry a pair: its own caption, or its image."""
    return CaptionEntries(pairs, np.zeros(len(pairs), np.uint16))


class EntryCounter:
    """Counts entries as pairs pass, and finds the siblings among them; 10 bytes a pair that has other captions."""

    def __init__(self) -> None:
        """Begin with no pairs."""
        self._pairs = 0
        self._groups = array("Q")
        self._others = array("H")

    def see(self, pair: Pair) -> tuple[str, ...]:
        """Count a pair; return its captions, without those that the pair before it, a sibling, had."""
        self._pairs += 1
        if not pair.captions:
            return (pair.caption,)
        group = _sibling_group(pair)
        known = bool(self._groups) and self._groups[-1] == group
        self._groups.append(group)
        self._others.append(min(len(pair.captions), MAX_OTHER_CAPTIONS))
        return () if known else (pair.caption, *pair.captions)

    def result(self) -> tuple[int, Siblings]:
        """Return how many entries there are, and the groups of siblings, ascending."""
        groups = np.array(self._groups, np.uint64)
        ordered, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
        alone = counts[places] == 1
        return self._pairs + int(np.array(self._others, np.int64)[alone].sum()), ordered[counts > 1]


def _indexed_captions(pairs: Sequence[Pair], siblings: Siblings) -> list[Sequence[str]]:
    """Return the other captions of each pair that are entries of it."""
    if not len(siblings):
        return [pair.captions[:MAX_OTHER_CAPTIONS] for pair in pairs]
    groups = np.array([_sibling_group(pair) if pair.captions else 0 for pair in pairs], np.uint64)
    alone = ~np.isin(groups, siblings)
    return [
        pair.captions[:MAX_OTHER_CAPTIONS] if single else () for pair, single in zip(pairs, alone.tolist(), strict=True)
    ]


def _sibling_group(pair: Pair) -> int:
    said = "\0".join((pair.source, pair.source_id, pair.image, *sorted((pair.caption, *pair.captions))))
    return int.from_bytes(blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
