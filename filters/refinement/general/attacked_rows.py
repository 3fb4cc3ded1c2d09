"""Rows and captions of the general method in files, one pair of files for each part.

1. `store_texts`: the rows and the captions of a part.
2. `order_rows`: over all parts, which rows are under attack, in which order, and their numbers. It reads no texts, but
   ids, names of groups and types, and 64-bit hashes of texts.
3. `read_reasons`: the reasons of the rows of a part, once a subset is selected.

Under attack are rows whose texts differ, of types with enough rows, sorted by id. Texts stay on disk, mapped into memory:
`StoredTexts` reads those that are asked for.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.filters.attacks.accuracy import MIN_ROWS
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.attacks.fold_groups import merge_mirrored_numbers
from pairwright.filters.refinement.general.evidence_files import RowNumbers
from pairwright.filters.refinement.general.round_steps import SubsetRows
from pairwright.filters.refinement.general.stored_words import CaptionSource, store_words
from pairwright.filters.refinement.part_arrays import Array, map_array, map_table, save_array
from pairwright.filters.refinement.rows import check_columns, hash_ids
from pairwright.filters.refinement.steps import StepResult
from pairwright.generators.language.vocabulary import IntArray

TOO_FEW, IDENTICAL = "too_few_of_type", "identical"
_CHUNK = 10_000  # texts that are read at a time
_NOT_ATTACKED = -1
_TEXT = ("positive", "negative")
Kind = Literal["rows", "captions"]
Halves: TypeAlias = npt.NDArray[np.int8]


class StoredTexts(Sequence[str]):
    """Strings of a column on disk, in a given order; a slice is a list."""

    def __init__(self, column: pl.Series, places: IntArray | None = None) -> None:
        self._column, self._places = column, places

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._column) if self._places is None else len(self._places)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a text, or the texts of a slice."""
        if isinstance(place, int):
            return str(self._column[place if self._places is None else int(self._places[place])])
        found = self._column[place] if self._places is None else self._column.gather(self._places[place])
        return found.to_list()

    def __iter__(self) -> Iterator[str]:
        """Yield all texts."""
        for start in range(0, len(self), _CHUNK):
            yield from self[start : start + _CHUNK]

    def take(self, places: IntArray) -> list[str]:
        """Return the texts at these places."""
        return self._column.gather(places if self._places is None else self._places[places]).to_list()


def store_texts(folder: Path, part: str, captions: pl.DataFrame, rows: pl.DataFrame) -> list[Path]:
    """Store the captions and the rows of a part; return the files.

    Args:
        folder: of all steps.
        part: its name.
        captions: string columns ``group`` and ``caption``.
        rows: with the columns of `refine.refine_against_all_attacks`.

    Raises:
        UsageError: a column is missing or not of strings.
    """
    check_columns(rows)
    words, differs = store_words(folder, part, captions, rows)
    stored = rows.with_columns(
        pl.Series("differs", differs),
        _hash_columns("texts", rows, _TEXT),
        _hash_columns("mirrored", rows, _TEXT[::-1]),
        _hash_columns("name", rows, ("group", "positive")),
    )
    named = captions.select("group", "caption").with_columns(_hash_columns("name", captions, ("group", "caption")))
    return [_write(folder, f"rows-{part}", stored), _write(folder, f"captions-{part}", named), words]


def order_rows(folder: Path, parts: Sequence[str], by_type: bool, source: CaptionSource) -> StepResult:  # noqa: FBT001 - a step's
    """Store which rows are under attack and their numbers; and which captions train scorers, and in which half they are.

    A caption counts once per group; captions from elsewhere count as often as they are there. Every other group is in
    one half.

    Args:
        folder: of all steps.
        parts: names of all parts.
        by_type: whether rows are balanced within each type.
        source: where the captions are from.

    Returns:
        The files; and the facts ``rows`` (of each part), ``groups``, ``captions``, ``few`` (types with too few rows),
        ``number``, ``slots`` (whether there are any), ``max_kept``, ``strata`` and ``kinds``.

    Raises:
        UsageError: ids repeat.
    """
    tables = [read_part(folder, "rows", part) for part in parts]
    rows = pl.concat([each.drop(_TEXT) for each in tables], rechunk=False)
    _refuse_repeated(rows["id"])
    rows = rows.with_row_index("row").filter("differs")
    slot = "slot" if "slot" in rows.columns else "id"
    few = _find_small_types(rows, slot) if by_type else set()
    rows = rows.filter(~pl.col("type").is_in(sorted(few))).sort("id")
    max_kept = rows[slot].n_unique()
    groups = rows["group"].rank("dense").to_numpy().astype(np.int64)
    numbers = RowNumbers.of(
        rows["type"] if by_type else pl.Series([""] * len(rows), dtype=pl.String),
        rows["type"],
        merge_mirrored_numbers(groups, rows["texts"].to_numpy(), rows["mirrored"].to_numpy()),
        rows[slot] if max_kept < len(rows) else None,
    )
    order = rows["row"].to_numpy().astype(np.int64)
    places = np.full(sum(map(len, tables)), _NOT_ATTACKED, np.int64)
    places[order] = np.arange(len(order))
    if source == "rows":
        first, halves = _choose_first(rows["name"], groups)
        corpus = order[first]
    else:
        corpus, halves = _choose_captions(folder, parts, source)
    ascending = np.argsort(corpus)
    arrays: dict[str, Array] = {
        "order": order,
        "places": places,
        "text-groups": groups,
        "corpus": corpus[ascending],
        "corpus-halves": halves[ascending],
    }
    facts = {
        "rows": list(map(len, tables)),
        "groups": len(np.unique(groups)),
        "captions": len(corpus),
        "few": sorted(few),
        "number": len(order),
        "slots": bool(len(numbers.slot)),
        "max_kept": max_kept,
        "strata": list(numbers.strata),
        "kinds": list(numbers.kinds),
    }
    return [numbers.save(folder), *(save_array(folder, name, array) for name, array in arrays.items())], facts


def _choose_captions(folder: Path, parts: Sequence[str], source: CaptionSource) -> tuple[IntArray, Halves]:
    # Numbers of the captions that train scorers, and the half of each.
    captions = pl.concat([read_part(folder, "captions", part).drop("caption") for part in parts], rechunk=False)
    ranks = captions["group"].rank("dense").to_numpy()
    return _choose_first(captions["name"], ranks) if source == "pool" else (np.arange(len(ranks)), _halve(ranks))


def _choose_first(names: pl.Series, ranks: npt.NDArray[Any]) -> tuple[IntArray, Halves]:
    # Each name once. Ranks are those of the groups, from 1.
    first = np.unique(names.to_numpy(), return_index=True)[1]
    return first, _halve(ranks[first])


def _halve(ranks: npt.NDArray[Any]) -> Halves:
    return np.asarray(1 - ranks % 2, np.int8)


def load_texts(folder: Path, parts: Sequence[str]) -> RowTexts:
    """Return the rows under attack; their texts stay on disk."""
    rows = pl.concat([read_part(folder, "rows", part) for part in parts], rechunk=False)
    order = map_array(folder, "order")
    return RowTexts(*(StoredTexts(rows[name], order) for name in (*_TEXT, "group", "type")))


def load_captions(folder: Path, parts: Sequence[str]) -> StoredTexts:
    """Return the captions that train scorers but those of rows; they stay on disk."""
    columns = [read_part(folder, "captions", part)["caption"] for part in parts]
    return StoredTexts(pl.concat(columns, rechunk=False), map_array(folder, "corpus"))


def read_reasons(  # noqa: PLR0913, PLR0917 - the part, and what decides
    folder: Path, types: pl.Series, start: int, few: Sequence[str], subset: SubsetRows, names: Sequence[str]
) -> tuple[IntArray, list[str]]:
    """Return the place of each row of a part among those under attack, -1 for others; and its reason, empty if it is kept.

    Args:
        folder: of all steps.
        types: type of each row of the part.
        start: number of the rows of the parts before it.
        few: types with too few rows.
        subset: that is kept.
        names: of the evidence.
    """
    places = map_array(folder, "places")[start : start + len(types)]
    labels = [f"detected_by_{name}" for name in names]
    reasons = [
        (TOO_FEW if kind in few else IDENTICAL)
        if place == _NOT_ATTACKED
        else ""
        if subset.kept[place]
        else labels[subset.detected_by[place]]
        for place, kind in zip(places.tolist(), types, strict=True)
    ]
    return places, reasons


def read_ids(folder: Path, part: str) -> pl.DataFrame:
    """Return ``id`` and ``type`` of the rows of a part."""
    return read_part(folder, "rows", part).select("id", "type")


def _find_small_types(rows: pl.DataFrame, slot: str) -> set[str]:
    # Types with too few rows to train and test an attack; none if they hold most rows, since the others would stand for
    # little of the set (of 50 captions, additions alone would be left, which length detects).
    sizes = rows.group_by("type").agg(size=pl.col(slot).n_unique())
    few = sizes.filter(pl.col("size") < MIN_ROWS)
    return set(few["type"]) if 2 * int(few["size"].sum()) < int(sizes["size"].sum()) else set()


def _refuse_repeated(ids: pl.Series) -> None:
    if ids.n_unique() < len(ids):
        raise UsageError(f"row id {ids.filter(ids.is_duplicated())[0]!r} occurs twice; ids must be unique")


def _write(folder: Path, name: str, table: pl.DataFrame) -> Path:
    path = folder / f"{name}.arrow"
    with replace_atomically(path) as temporary:
        table.rechunk().write_ipc(temporary, compression="uncompressed")
    return path


def _hash_columns(name: str, table: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    return pl.Series(name, hash_ids(table.select(pl.concat_str(*columns, separator="\0")).to_series()))


def read_part(folder: Path, kind: Kind, part: str) -> pl.DataFrame:
    """Return the rows or the captions of a part, which stay on disk."""
    table = map_table(folder / f"{kind}-{part}.arrow")
    found = pl.from_arrow(table, rechunk=False)  # polars wrote it, so it needs no copy
    assert isinstance(found, pl.DataFrame)
    return found
