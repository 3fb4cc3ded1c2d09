"""Which rows of each source a mixture takes, and in which order: decided over numbers, without the rows.

Each row is four numbers of 64 bits. *place* is a hash of where its image lies and of its turns, *key* one of the key of
its image's pair and of its turns, where the source has keys: rows that are equal in either are the same row. *choice* and *order* are chance, a function of seed and row (its turns and what its source calls its image):
a source gives the rows with the smallest *choice*, and the mixture is sorted by *order*. So

- adding, removing or renaming a source changes nothing in what another gives, as long as they share no row;
- asking a source for more rows adds to those that it gave before;
- the order in which sources are listed decides one thing only: a row that several hold belongs to the first of them
  (taken or not), and is counted as a duplicate of the others.

Memory: about 50 bytes a row, and 32 a row that is taken. Two different rows with one *place* or *key* are taken for the
same: the chance that this happens at all is n²/2⁶⁴ (5e-8 for a million rows).
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.rng import hash_to_int

VERSION = 1
_LOW_64_BITS = 2**64 - 1

Uint64Array = NDArray[np.uint64]
RankArray = NDArray[np.int64]


def draw_sampling_keys(talk: Conversation, seed: int) -> tuple[int, int]:
    """Return *choice* and *order* of a row, 64 bits each."""
    drawn = hash_to_int(seed, 0, "mixture", VERSION, talk.name, *talk.texts)
    return drawn >> 64, drawn & _LOW_64_BITS


@dataclass
class RowHashes:
    """The rows of one source as numbers, in the order in which it was read."""

    place: "array[int]" = field(default_factory=lambda: array("Q"))
    key: "array[int]" = field(default_factory=lambda: array("Q"))
    choice: "array[int]" = field(default_factory=lambda: array("Q"))
    order: "array[int]" = field(default_factory=lambda: array("Q"))
    usable: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.place)

    def add(self, talk: Conversation, seed: int, *, usable: bool) -> None:
        """Add a row; one that is not usable (its image is missing) keeps its place, and is never taken."""
        choice, order = draw_sampling_keys(talk, seed)
        place = hash_to_int("place", talk.image, *talk.texts) & _LOW_64_BITS
        self.place.append(place)
        self.key.append(hash_to_int("key", talk.key, *talk.texts) & _LOW_64_BITS if talk.key else place)
        self.choice.append(choice)
        self.order.append(order)
        self.usable.append(usable)


@dataclass(frozen=True)
class DistinctRows:
    """What a source has that no source before it has: places of its rows, and its duplicates by who holds them.

    Attributes:
        places: of the distinct rows, rising.
        duplicates: source to the number of rows that it, or this source itself, holds already.
    """

    places: NDArray[np.intp]
    duplicates: dict[str, int]


def find_distinct_rows(sources: Mapping[str, RowHashes]) -> dict[str, DistinctRows]:
    """Return the distinct rows of each source, the first listed going first."""
    found: dict[str, DistinctRows] = {}
    held: dict[str, tuple[Uint64Array, ...]] = {}
    for name, rows in sources.items():
        usable = np.flatnonzero(np.frombuffer(rows.usable, dtype=np.bool_))
        hashes = [_as_array(rows.place)[usable], _as_array(rows.key)[usable]]
        left = np.arange(len(usable))
        duplicates = {}
        for other, theirs in held.items():
            repeated = np.logical_or(*[_contains(own[left], known) for own, known in zip(hashes, theirs, strict=True)])
            duplicates[other] = int(np.count_nonzero(repeated))
            left = left[~repeated]
        again = len(left)
        for own in hashes:
            left = left[np.sort(np.unique(own[left], return_index=True)[1])]
        duplicates[name] = again - len(left)
        held[name] = tuple(np.unique(own) for own in hashes)
        found[name] = DistinctRows(usable[left], {each: number for each, number in duplicates.items() if number})
    return found


def _contains(values: Uint64Array, ordered: Uint64Array) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[places] == values)


def _as_array(values: "array[int]") -> Uint64Array:
    return np.frombuffer(values, dtype=np.uint64) if values else np.zeros(0, dtype=np.uint64)


def assign_ranks(
    sources: Mapping[str, RowHashes], distinct: Mapping[str, DistinctRows], take: Mapping[str, int]
) -> dict[str, RankArray]:
    """Return the place in the mixture of each row of each source; -1 for a row that is not taken."""
    taken = {name: _select_smallest(rows, distinct[name].places, take[name]) for name, rows in sources.items()}
    by_name = sorted(sources)  # rows that share all their chance are ordered by name, not by who was listed first
    order = np.concatenate([_as_array(sources[name].order)[taken[name]] for name in by_name])
    owner = np.repeat(np.arange(len(by_name)), [len(taken[name]) for name in by_name])
    place = np.empty(len(order), dtype=np.int64)
    place[np.lexsort((owner, order))] = np.arange(len(order))
    given = {name: np.full(len(rows), -1, dtype=np.int64) for name, rows in sources.items()}
    for name, places in zip(by_name, np.split(place, _rank_boundaries(by_name, taken)), strict=True):
        given[name][taken[name]] = places
    return given


def _rank_boundaries(names: Sequence[str], taken: Mapping[str, NDArray[np.intp]]) -> list[int]:
    return [int(end) for end in np.cumsum([len(taken[name]) for name in names])[:-1]]


def _select_smallest(rows: RowHashes, places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    choice = _as_array(rows.choice)[places]
    return np.sort(places[np.argsort(choice, kind="stable")[:count]])
