"""Words of the texts of a part, stored once so that scorers do not split the texts again.

A part has one table of words, of which its texts are numbers; and 64-bit hashes of texts and groups. Texts with equal words
are one *form*, whatever their case and spacing.
"""

import hashlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.refinement.part_arrays import map_columns, save_mapped
from pairwright.filters.refinement.rows import Hashes, hash_ids
from pairwright.filters.scorers.shared_texts import SplitTexts, WordTable, gather_runs
from pairwright.generators.language.vocabulary import IntArray, tokenize

Side = Literal["caption", "positive", "negative"]
CaptionSource = Literal["pool", "elsewhere", "rows"]
"""Captions to train scorers on: those that the rows were made from, others, or the positives of the rows."""
_FLAT, _OFFSETS, _FORMS, _GROUPS = "flat", "offsets", "forms", "groups"


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
    words: dict[str, int] = {}
    arrays: dict[str, npt.NDArray[Any] | pl.Series] = {
        f"caption-{_GROUPS}": hash_ids(captions["group"]),
        f"row-{_GROUPS}": hash_ids(rows["group"]),
    }
    for side, texts in (
        ("caption", captions["caption"]),
        ("positive", rows["positive"]),
        ("negative", rows["negative"]),
    ):
        arrays |= {f"{side}-{name}": values for name, values in _split(texts, words).items()}
    arrays["words"] = pl.Series(list(words), dtype=pl.String)
    differs = np.asarray(arrays[f"positive-{_FORMS}"] != arrays[f"negative-{_FORMS}"], np.bool_)
    return save_mapped(_path(folder, part), arrays), differs


def _split(texts: Iterable[str], words: dict[str, int]) -> dict[str, npt.NDArray[Any]]:
    flat, offsets, forms = array("i"), array("q", [0]), bytearray()
    for text in texts:
        tokens = tokenize(text)
        flat.extend(words.setdefault(word, len(words)) for word in tokens)
        offsets.append(len(flat))
        forms += hashlib.blake2b(" ".join(tokens).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return {
        _FLAT: np.frombuffer(flat, np.int32) if flat else np.zeros(0, np.int32),
        _OFFSETS: np.frombuffer(offsets, np.int64),
        _FORMS: np.frombuffer(bytes(forms), "<u8"),
    }


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
        flat, sizes = gather_runs(self._of(side, _FLAT), self._of(side, _OFFSETS), places)
        return SplitTexts(self.table, self.places[flat], sizes)

    def forms(self, side: Side) -> Hashes:
        """Return the hashes of the forms of all texts, uint64."""
        return self._of(side, _FORMS)

    def groups(self, side: Side) -> Hashes:
        """Return the hashes of the groups of all texts, uint64."""
        return self._of("caption" if side == "caption" else "row", _GROUPS)

    def _of(self, side: str, name: str) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.columns[f"{side}-{name}"].to_numpy()
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
