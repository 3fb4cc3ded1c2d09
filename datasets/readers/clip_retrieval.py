"""A folder of embeddings as clip-retrieval writes it: the pairs are in its metadata.

``metadata/metadata_0.parquet`` belongs to ``img_emb/img_emb_0.npy`` and ``text_emb/text_emb_0.npy``, row by row;
parts are taken in the order of their names, as clip-retrieval itself takes them (``_10`` before ``_2`` unless
padded). Row counts are checked before anything is read. ``embedding_row`` in a pair's `meta` is its row in
the parts laid end to end, so that vectors and pairs stay matched when rows are rejected.

Where ``image_path`` is only a sample's key (embeddings made from shards), a ``url`` beside it is the image.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pairwright.datasets.errors import InputError
from pairwright.datasets.images import SUFFIXES
from pairwright.datasets.readers.parquet import count_rows, read_parquet
from pairwright.datasets.readers.rows import Row, Rows
from pairwright.datasets.rejects import Reject

EMBEDDINGS = ("img_emb", "text_emb")


def read_clip_retrieval(path: Path) -> Rows:
    """Yield the rows of the folder's metadata; places are ``file:row N``.

    Raises:
        InputError: when embeddings and metadata do not match.
    """
    parts = sorted((path / "metadata").glob("*.parquet"))
    if not parts:
        raise InputError("no metadata/*.parquet", where=str(path), mend="Run clip inference with metadata enabled.")
    counts = [_checked_rows(path, part) for part in parts]
    number = 0
    for part, count in zip(parts, counts, strict=True):
        for offset, row in enumerate(read_parquet(part)):
            yield row if isinstance(row, Reject) else _row(row, number + offset)
        number += count


def _checked_rows(folder: Path, part: Path) -> int:
    rows = count_rows(part)
    for embeddings in _embeddings(folder, part):
        found = _vectors(embeddings)
        if found != rows:
            raise InputError(
                f"{found} vectors where {part.name} has {rows} rows",
                where=str(embeddings),
                mend="Run clip inference for this part again.",
            )
    return rows


def _embeddings(folder: Path, part: Path) -> Iterator[Path]:
    kinds = [kind for kind in EMBEDDINGS if (folder / kind).is_dir()]
    if not kinds:
        raise InputError("neither img_emb nor text_emb", where=str(folder), mend="Give the folder of clip inference.")
    for kind in kinds:
        path = folder / kind / f"{kind}{part.stem.removeprefix('metadata')}.npy"
        if not path.is_file():
            raise InputError(f"no such file, beside {part.name}", where=str(path), mend="Copy the folder again.")
        yield path


def _vectors(path: Path) -> int:
    try:
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"not a whole .npy file ({error})", where=str(path), mend="Copy the file again.") from None
    if len(shape) != 2:
        raise InputError(f"an array of shape {shape}", where=str(path), mend="Embeddings are rows of a matrix.")
    return int(shape[0])


def _row(row: Row, number: int) -> Row:
    fields: dict[str, Any] = {**row.fields, "embedding_row": number}
    path, url = fields.get("image_path"), fields.get("url")
    if isinstance(path, str) and isinstance(url, str) and PurePosixPath(path).suffix.lower() not in SUFFIXES:
        fields["image"] = url
    return Row(row.place, fields)
