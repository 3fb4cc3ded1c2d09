"""A folder of embeddings as clip-retrieval writes it: the pairs are in its metadata.

Parts, their order and what is checked before anything is read: `clip_retrieval_parts.py`. ``embedding_row`` in a pair's
`meta` is its row in the parts laid end to end, so that vectors and pairs stay matched when rows are rejected.

Where ``image_path`` is only a sample's key (embeddings made from shards), a ``url`` beside it is the image.

Limit: inference without texts leaves no captions in the metadata, and a pair needs one.
"""

from pathlib import Path
from typing import Any

from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.embedding_parts import find_embedding_parts
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.rejects import Reject

EMBEDDING_ROW = "embedding_row"
_ENDINGS = tuple(IMAGE_SUFFIXES)


def read_clip_retrieval(path: Path) -> InputRowIterator:
    """Yield the rows of the folder's metadata; places are ``file:row N``.

    Raises:
        InputError: when embeddings and metadata do not match.
    """
    for part in find_embedding_parts(path):
        for number, row in enumerate(read_parquet(part.metadata), part.first):
            yield row if isinstance(row, Reject) else _row(row, number)


def _row(row: InputRow, number: int) -> InputRow:
    fields: dict[str, Any] = {**row.fields, EMBEDDING_ROW: number}
    path, url = fields.get("image_path"), fields.get("url")
    if isinstance(path, str) and isinstance(url, str) and not path.lower().endswith(_ENDINGS):
        fields["image"] = url
    return InputRow(row.place, fields)
