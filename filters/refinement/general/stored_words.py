"""Words of the texts of a part, stored once so that scorers do not split the texts again.

A part has one table of words, of which its texts are numbers; and 64-bit hashes of forms (`forms.py`) and groups.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.refinement.forms import PartForms
from pairwright.filters.refinement.part_arrays import map_columns, save_mapped
from pairwright.filters.refinement.rows import Hashes, hash_ids
from pairwright.filters.scorers.shared_texts import SplitTexts, WordTable, find_offsets, gather_runs
from pairwright.generators.language.vocabulary import IntArray

Side = Literal["caption", "positive", "negative"]
CaptionSource = Literal["pool", "elsewhere", "rows"]
"""Captions to train scorers on: those that the rows were made from, others, or the positives of the rows."""


def store_words(
    folder: Path, part: str, captions: pl.DataFrame, rows: pl.DataFrame
) -> tuple[Path, npt.NDArray[np.bool_]]:
    """Store the words of the captions and rows of a part.

    Args:
        folder: of all steps.
        part: its name.
        captions: string columns ``group`` and ``caption``.
        rows: string columns ``group``, ``positive`` and ``negative``.

    Returns:
        The file; and of each row whether its texts have different forms, bool (n,).
    """
    forms = PartForms.of(captions["caption"], rows["positive"], rows["negative"])
    arrays: dict[str, npt.NDArray[Any] | pl.Series] = {
        "caption": forms.captions,
        "positive": forms.positives,
        "negative": forms.negatives,
        "forms": forms.hashes,
        "lengths": forms.lengths,
        "flat": forms.flat,
        "words": forms.words,
        "caption_group": hash_ids(captions["group"]),
        "row_group": hash_ids(rows["group"]),
    }
    return save_mapped(_path(folder, part), arrays), forms.positives != forms.negatives


@dataclass(frozen=True, eq=False)
class PartWords:
    """The words of a part, which stay on disk.

    Attributes:
        table: of all parts.
        places: int32, the place in it of each word of the part.
        columns: arrays by name.
    """

    table: WordTable
    places: npt.NDArray[np.int32]
    columns: Mapping[str, Any]

    def split(self, side: Side, places: IntArray) -> SplitTexts:
        """Return the texts at these places as words."""
        flat, sizes = gather_runs(self._array("flat"), self._offsets, self._array(side)[places])
        return SplitTexts(self.table, self.places[flat], sizes)

    def count(self, side: Side) -> int:
        """Return the number of texts."""
        return len(self.columns[side])

    def forms(self, side: Side, places: IntArray) -> Hashes:
        """Return the hashes of the forms of the texts at these places, uint64."""
        found: Hashes = self._array("forms")[self._array(side)[places]]
        return found

    def groups(self, side: Side, places: IntArray) -> Hashes:
        """Return the hashes of the groups of the texts at these places, uint64."""
        return self._array("caption_group" if side == "caption" else "row_group")[places]

    @cached_property
    def _offsets(self) -> IntArray:
        return find_offsets(self._array("lengths").astype(np.int64))

    def _array(self, name: str) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.columns[name].to_numpy()
        return found


@dataclass(frozen=True, eq=False)
class StoredWords:
    """The words of all parts, one of which is mapped into memory at a time.

    Attributes:
        folder: of all steps.
        parts: names of the parts.
        table: the words of all of them.
        places: int32, for each part the place in the table of each of its words.
    """

    folder: Path
    parts: tuple[str, ...]
    table: WordTable
    places: tuple[npt.NDArray[np.int32], ...]

    @classmethod
    def load(cls, folder: Path, parts: Iterable[str]) -> Self:
        """Read the tables of words of parts."""
        names = tuple(parts)
        known: dict[str, int] = {}
        places = [
            np.array(
                [known.setdefault(word, len(known)) for word in map_columns(_path(folder, part))["words"].to_pylist()],
                np.int32,
            )
            for part in names
        ]
        return cls(folder, names, WordTable(list(known)), tuple(places))

    def part(self, number: int) -> PartWords:
        """Return the part with this number."""
        return PartWords(self.table, self.places[number], map_columns(_path(self.folder, self.parts[number])))


def _path(folder: Path, part: str) -> Path:
    return folder / f"words-{part}.arrow"
