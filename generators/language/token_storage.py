"""Storage of tokens, so that captions are tagged once: a Parquet table on disk, and a compact form in memory.

The table has one row for each pair and one list column for each field of its tokens. The text of a token is not stored:
it is the span of the caption from start to end. `PackedTokens` hold spans and tags only, some 200 bytes instead of 2 KB
for each caption; `unpack` recomputes the rest.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.lemmas import build_tokens
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
    columns = {
        "key": list(keys),
        "start": [[token.start for token in row] for row in tokens],
        "end": [[token.end for token in row] for row in tokens],
        "tag": [[token.tag for token in row] for row in tokens],
        "pos": [[token.pos for token in row] for row in tokens],
        "lemma": [[token.lemma for token in row] for row in tokens],
    }
    with replace_atomically(path) as temporary:
        pl.DataFrame(columns, schema=SCHEMA).write_parquet(temporary)


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


class PackedTokens(NamedTuple):
    """Packed tokens of a text.

    Attributes:
        spans: alternating start and end of each token in code points, as bytes of an ``array("I")``.
        tags: Penn Treebank tags, separated by spaces.
    """

    spans: bytes
    tags: str


def pack(tokens: Sequence[Token]) -> PackedTokens:
    """Return the packed tokens of a text."""
    spans = array("I", [edge for token in tokens for edge in (token.start, token.end)])
    return PackedTokens(spans.tobytes(), " ".join([token.tag for token in tokens]))


def unpack(text: str, packed: PackedTokens) -> list[Token]:
    """Return the tokens of a text from its packed tokens."""
    spans = array("I", packed.spans)
    starts, ends = spans[::2], spans[1::2]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return build_tokens(words, starts, packed.tags.split(" ") if packed.tags else [])
