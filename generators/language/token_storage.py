"""Storage of tokens, so that captions are tagged once: a Parquet table (in memory see `packed_tokens`).

The table has one row for each pair and one list column for each field of its tokens. The text of a token is not stored:
it is the span of the caption from start to end.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import attrgetter
from pathlib import Path

import polars as pl
import pyarrow as pa

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.tokens import Token

SCHEMA = pl.Schema(
    {
        "key": pl.String(),
        "start": pl.List(pl.Int32),
        "end": pl.List(pl.Int32),
        "tag": pl.List(pl.String),
        "pos": pl.List(pl.String),
        "lemma": pl.List(pl.String),
    }
)
_FIELDS = {
    "start": pa.int32(),
    "end": pa.int32(),
    "tag": pa.large_string(),
    "pos": pa.large_string(),
    "lemma": pa.large_string(),
}


def write_tokens(keys: Sequence[str], tokens: Sequence[Sequence[Token]], path: Path) -> None:
    """Write the tokens of the captions with these pair keys atomically."""
    # Four times faster than lists of lists, of which polars looks at each.
    flat = list(chain.from_iterable(tokens))
    offsets = pa.array([0, *accumulate(map(len, tokens))], pa.int64())
    fields = {name: pa.array(map(attrgetter(name), flat), kind) for name, kind in _FIELDS.items()}
    columns = {name: pa.LargeListArray.from_arrays(offsets, field) for name, field in fields.items()}
    with replace_atomically(path) as temporary:
        pl.DataFrame(pa.table({"key": pa.array(keys, pa.large_string()), **columns})).write_parquet(temporary)


def read_tokens(path: Path, captions: Sequence[str]) -> list[list[Token]]:
    """Read the tokens that `write_tokens` stored, for the same captions in the same order.

    Raises:
        StorageError: the file is corrupt or belongs to other captions.
    """
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}). Delete it and build again.") from None
    if frame.schema != SCHEMA or frame.height != len(captions):
        raise StorageError(f"{path}: holds tokens of other captions. Delete it and build again.")
    rows = zip(captions, frame.drop("key").iter_rows(), strict=True)
    return [
        [
            Token(caption[start:end], start, end, tag, pos, lemma)
            for start, end, tag, pos, lemma in zip(*fields, strict=True)
        ]
        for caption, fields in rows
    ]
