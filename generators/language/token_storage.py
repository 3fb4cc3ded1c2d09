"""Tokens at rest: captions are tagged once, and every generator reads the tokens from here.

One row a pair, one list a field of the tokens. The text of a token is not stored: it is the caption's
characters from start to end.
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
    """Write the tokens of the captions with these pair keys, whole or not at all."""
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
    """Return the tokens that `write_tokens` stored, for the same captions in the same order.

    Raises:
        StorageError: when the file is not whole or belongs to other captions.
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
    """The tokens of a text.

    Attributes:
        spans: start and end of each token in turn, in code points, as ``array("I")`` holds them.
        tags: Penn Treebank tags, separated by spaces.
    """

    spans: bytes
    tags: str


def pack(tokens: Sequence[Token]) -> PackedTokens:
    """Return the tokens of a text in little room."""
    spans = array("I", [edge for token in tokens for edge in (token.start, token.end)])
    return PackedTokens(spans.tobytes(), " ".join([token.tag for token in tokens]))


def unpack(text: str, packed: PackedTokens) -> list[Token]:
    """Return the tokens of a text that `pack` was given."""
    spans = array("I", packed.spans)
    starts, ends = spans[::2], spans[1::2]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return build_tokens(words, starts, packed.tags.split(" ") if packed.tags else [])
