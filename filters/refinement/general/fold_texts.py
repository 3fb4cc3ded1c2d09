"""Texts of one fold of a refinement: the captions that its scorers are trained on, and the rows that these score.

Both are read part by part and some thousand at a time, so that a job needs memory for the different n-grams of the captions
(the models), about 60 bytes for each row under attack and 4 for each caption.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.filters.refinement.general.attacked_rows import Kind, StoredTexts, read_part
from pairwright.filters.refinement.general.stored_words import CaptionSource, Side, StoredWords
from pairwright.filters.refinement.part_arrays import map_array
from pairwright.filters.refinement.rows import Hashes
from pairwright.filters.scorers.shared_texts import CHUNK_SIZE, CountedTexts, SharedTexts, SplitTexts, WordTable
from pairwright.generators.language.vocabulary import IntArray, lookup_sorted

_COLUMNS: dict[Side, tuple[Kind, str]] = {
    "caption": ("captions", "caption"),
    "positive": ("rows", "positive"),
    "negative": ("rows", "negative"),
}


@dataclass(frozen=True, eq=False)
class StoredCaptions(CountedTexts):
    """Captions in the parts; as strings, they are read when they are asked for.

    Attributes:
        stored: words of all parts.
        side: which texts of the parts they are.
        wanted: int32, for each part the places of the captions.
    """

    stored: StoredWords
    side: Side
    wanted: Sequence[IntArray]

    @property
    def table(self) -> WordTable:
        """The table of the words of all parts."""
        return self.stored.table

    def chunks(self) -> Iterator[SplitTexts]:
        """Yield all captions as words, some thousand at a time."""
        for number, wanted in enumerate(self.wanted):
            part = self.stored.part(number)
            for start in range(0, len(wanted), CHUNK_SIZE):
                yield part.split(self.side, wanted[start : start + CHUNK_SIZE])

    def __len__(self) -> int:
        """Return the number of captions."""
        return sum(map(len, self.wanted))

    def __getitem__(self, place: Any) -> Any:
        """Return a caption, or the captions of a slice."""
        return self._texts[place]

    def __iter__(self) -> Iterator[str]:
        """Yield all captions."""
        return iter(self._texts)

    @cached_property
    def _texts(self) -> StoredTexts:
        kind, column = _COLUMNS[self.side]
        columns = [read_part(self.stored.folder, kind, part)[column] for part in self.stored.parts]
        starts = np.cumsum([0, *map(len, columns)])
        places = [wanted + start for wanted, start in zip(self.wanted, starts[:-1], strict=True)]
        return StoredTexts(pl.concat(columns, rechunk=False), np.concatenate(places))


@dataclass(frozen=True, eq=False)
class FoldTexts:
    """The texts of a fold.

    Attributes:
        words: of all parts.
        source: where the captions are from.
        rows: int64, for each part the places of the rows of the fold in it.
        places: int64, for each part the places of these rows in the fold.
    """

    words: StoredWords
    source: CaptionSource
    rows: Sequence[IntArray]
    places: Sequence[IntArray]

    @classmethod
    def load(cls, folder: Path, parts: Sequence[str], source: CaptionSource, places: IntArray) -> "FoldTexts":
        """Return the texts of the rows at ``places`` among those under attack."""
        numbers = map_array(folder, "order")[places]
        order = np.argsort(numbers)
        ends = np.cumsum([0, *(len(read_part(folder, "rows", part)) for part in parts)])
        cuts = np.searchsorted(numbers[order], ends)
        of_parts = [order[start:end] for start, end in pairwise(cuts.tolist())]
        rows = [numbers[each] - start for each, start in zip(of_parts, ends.tolist(), strict=False)]
        return cls(StoredWords.load(folder, parts), source, rows, of_parts)

    @property
    def number(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.rows))

    def batches(self) -> Iterator[tuple[IntArray, SharedTexts]]:
        """Yield some thousand rows at a time: their places in the fold; and all positives, then all negatives."""
        folder = self.words.folder
        for number, (rows, places) in enumerate(zip(self.rows, self.places, strict=True)):
            part, table = self.words.part(number), read_part(folder, "rows", self.words.parts[number])
            for start in range(0, len(rows), CHUNK_SIZE):
                some = rows[start : start + CHUNK_SIZE]
                sides = [part.split(side, some) for side in ("positive", "negative")]
                flat, lengths = (
                    np.concatenate([getattr(each, name) for each in sides]) for name in ("flat", "lengths")
                )
                texts = StoredTexts(pl.concat([table[side].gather(some) for side in ("positive", "negative")]))
                yield (
                    places[start : start + CHUNK_SIZE],
                    SharedTexts(texts, SplitTexts(self.words.table, flat, lengths)),
                )

    def training(self, half: int | None) -> StoredCaptions:
        """Return the captions, or one half of them, without the groups and forms of the rows.

        Raises:
            InputError: no caption from elsewhere is left.
        """
        side, folder = self._side, self.words.folder
        corpus, halves = map_array(folder, "corpus"), map_array(folder, "corpus-halves")
        forms, groups = self._tested
        wanted, end = [], 0
        for number in range(len(self.words.parts)):
            part, start = self.words.part(number), end
            end += part.count(side)
            first, last = np.searchsorted(corpus, (start, end)).tolist()
            places = corpus[first:last] - start
            if half is not None:
                places = places[halves[first:last] == half]
            tested = _is_among(part.forms(side, places), forms) | _is_among(part.groups(side, places), groups)
            wanted.append(places[~tested].astype(np.int32))
        captions = StoredCaptions(self.words, side, wanted)
        if not captions and half is None and self.source == "elsewhere":
            raise InputError(
                "no caption is left without the images and texts under test",
                where="corpus",
                fix="Give captions of other images, or no corpus to train on the rows themselves.",
            )
        return captions

    @property
    def _side(self) -> Side:
        return "positive" if self.source == "rows" else "caption"

    @cached_property
    def _tested(self) -> tuple[Hashes, Hashes]:
        # Ascending hashes of the forms and of the groups of the rows.
        forms, groups = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        for number, rows in enumerate(self.rows):
            part = self.words.part(number)
            forms += [np.unique(part.forms(side, rows)) for side in ("positive", "negative")]
            groups.append(np.unique(part.groups("positive", rows)))
        return np.unique(np.concatenate(forms)), np.unique(np.concatenate(groups))


def _is_among(hashes: Hashes, known: Hashes) -> Any:
    return lookup_sorted(known, np.ones(len(known), np.bool_), hashes, otherwise=False)
