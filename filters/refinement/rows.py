"""Rows of a refinement: their columns, checks of them, and hashes of their ids."""

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.generators.language.vocabulary import normalize_text

ROW_COLUMNS = ("id", "positive", "negative", "group", "type")

Hashes = npt.NDArray[np.uint64]


def check_rows(rows: pl.DataFrame) -> None:
    """Check that rows can be refined.

    Raises:
        UsageError: a column is missing or not of strings, or ids repeat.
    """
    check_columns(rows)
    if rows["id"].n_unique() < len(rows):
        twice = rows["id"].filter(rows["id"].is_duplicated())[0]
        raise UsageError(f"row id {twice!r} occurs twice; ids must be unique")


def check_columns(rows: pl.DataFrame) -> None:
    """Check the columns of rows.

    Raises:
        UsageError: a column is missing or not of strings.
    """
    bad = [name for name in ROW_COLUMNS if rows.schema.get(name) != pl.String or rows[name].has_nulls()]
    if bad:
        raise UsageError(f"refinement needs columns of strings without nulls; wrong or missing: {', '.join(bad)}")


def find_equal_texts(rows: RowTexts) -> npt.NDArray[np.bool_]:
    """Return whether both texts of a row are equal except for case and spacing, bool (n,)."""
    pairs = zip(rows.positives, rows.negatives, strict=True)
    same = (normalize_text(positive) == normalize_text(negative) for positive, negative in pairs)
    return np.fromiter(same, np.bool_, len(rows.positives))


def hash_ids(ids: Iterable[str]) -> Hashes:
    """Return 64 bits of the hash of each id, uint64 (n,): what decides which rows of a cell are kept."""
    digests = (hashlib.blake2b(each.encode("utf-8", "surrogatepass"), digest_size=8).digest() for each in ids)
    return np.frombuffer(b"".join(digests), "<u8")


def refuse_repeated(hashes: Hashes, id_of: Callable[[int], str]) -> None:
    """Raise an error if an id occurs twice.

    Args:
        hashes: of the ids.
        id_of: returns the id of a row.

    Raises:
        UsageError: an id repeats.
    """
    ordered = np.sort(hashes)
    for twice in ordered[1:][ordered[1:] == ordered[:-1]].tolist():
        first, second = map(id_of, np.flatnonzero(hashes == twice)[:2].tolist())
        if first == second:
            raise UsageError(f"row id {first!r} occurs twice; ids must be unique")
