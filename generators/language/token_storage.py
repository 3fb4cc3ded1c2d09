"""Storage of tokens, so that captions are tagged once: a Parquet table (in memory see `packed_tokens`).

The table has one row for each pair and one list column for each field of its tokens. The text of a token is not stored:
it is the span of the caption from start to end.
"""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.datasets.record_tables import make_list_column
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


def write_tokens(keys: Sequence[str], tokens: Sequence[Sequence[Token]], path: Path) -> None:
    """Write the tokens of the captions with these pair keys atomically."""
    # Four times faster than lists of lists, of which polars looks at each.
    flat = list(chain.from_iterable(tokens))
    columns = [pl.Series("key", keys, pl.String())]
    for name, dtype in SCHEMA.items():
        if isinstance(dtype, pl.List):
            field = pl.Series(name, [*map(attrgetter(name), flat)], dtype.inner)
            columns.append(make_list_column(name, map(len, tokens), field))
    with replace_atomically(path) as temporary:
        pl.DataFrame(columns).write_parquet(temporary)


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
