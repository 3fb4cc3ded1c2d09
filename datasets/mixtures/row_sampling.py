"""Selection and order of a mixture's rows, computed on hashes without the rows.

Each row is four 64-bit numbers. *place* is a hash of its images' locators and its turns, *key* a hash of the key of its
images' pair and its turns, if the source has keys: rows that are equal in either are the same row. *choice* and *order*
are pseudo-random, a function of seed and row (its turns and the images' names in the source): a source gives the rows with
the smallest *choice*, and the mixture is sorted by *order*. Hence:

- adding, removing or renaming a source does not change the rows of another, unless they share rows;
- requesting more rows from a source extends its previous rows;
- the order of sources decides only to which source a shared row belongs: the first one (selected or not); it is counted as
  a duplicate of the others.

Memory: about 50 bytes per row, and 32 per selected row. Two different rows with equal *place* or *key* count as one: the
probability of any is n²/2⁶⁴ (5e-8 for a million rows).
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


def draw_sampling_keys(conversation: Conversation, seed: int) -> tuple[int, int]:
    """Return *choice* and *order* of a row, 64 bits each."""
    drawn = hash_to_int(seed, 0, "mixture", VERSION, conversation.name, *conversation.texts)
    return drawn >> 64, drawn & _LOW_64_BITS


@dataclass
class RowHashes:
    """The rows of one source as numbers, in reading order."""

    place: "array[int]" = field(default_factory=lambda: array("Q"))
    key: "array[int]" = field(default_factory=lambda: array("Q"))
    choice: "array[int]" = field(default_factory=lambda: array("Q"))
    order: "array[int]" = field(default_factory=lambda: array("Q"))
    usable: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.place)

    def add(self, conversation: Conversation, seed: int, *, usable: bool) -> None:
        """Add a row; an unusable one (its image is missing) keeps its position, and is never selected."""
        choice, order = draw_sampling_keys(conversation, seed)
        place = hash_to_int("place", "\0".join(conversation.images), *conversation.texts) & _LOW_64_BITS
        self.place.append(place)
        self.key.append(
            hash_to_int("key", conversation.key, *conversation.texts) & _LOW_64_BITS if conversation.key else place
        )
        self.choice.append(choice)
        self.order.append(order)
        self.usable.append(usable)


@dataclass(frozen=True)
class DistinctRows:
    """Rows of a source that no earlier source has, and counts of its duplicates.

    Attributes:
        places: positions of the distinct rows, ascending.
        duplicates: source to the number of rows that it, or this source itself, has already.
    """

    places: NDArray[np.intp]
    duplicates: dict[str, int]


def find_distinct_rows(sources: Mapping[str, RowHashes]) -> dict[str, DistinctRows]:
    """Return the distinct rows of each source, earlier sources first."""
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
    """Return the rank in the mixture of each row of each source; -1 for a row that is not selected."""
    taken = {name: _select_smallest(rows, distinct[name].places, take[name]) for name, rows in sources.items()}
    by_name = sorted(sources)  # ties are ordered by name, not by the order of sources
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
