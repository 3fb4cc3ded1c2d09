"""Reader of clip-retrieval's embedding folders, and the matching of their files.

    metadata/metadata_7.parquet    one row per pair
    img_emb/img_emb_7.npy          the vector of each row's image, in the same order (optional)
    text_emb/text_emb_7.npy        the vector of each row's caption, in the same order (optional)

The rest of the name after ``metadata`` (``_7``) joins the files of a part, so metadata and vectors match whether or not
numbers are zero-padded. Parts are ordered by name as text, ``_10`` before ``_2`` without padding (as in LAION-400M), like
the programs that clip-retrieval indexes with. ``embedding_row`` in a pair's `meta` is its row in the concatenated parts,
so vectors and pairs stay matched when rows are rejected; removing a part renumbers the rows after it.

Checked before reading: each part has all its files and no file lacks its metadata; the files of a part have equal numbers
of rows; vectors are floats of one length; no file is truncated.

If ``image_path`` is only a sample's key (embeddings made from shards), a ``url`` column is the image.

Limit: inference without texts stores no captions in the metadata, and a pair needs one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.parquet import count_parquet_rows, read_parquet
from pairwright.datasets.rejects import Reject

EMBEDDING_FOLDERS = ("img_emb", "text_emb")

EMBEDDING_ROW = "embedding_row"
_ENDINGS = tuple(IMAGE_SUFFIXES)


def read_clip_retrieval(path: Path) -> InputRowIterator:
    """Yield the rows of the folder's metadata; places are ``file:row N``.

    Raises:
        InputError: if embeddings and metadata do not match.
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


@dataclass(frozen=True, slots=True)
class EmbeddingPart:
    """One part of an embedding folder.

    Attributes:
        metadata: its Parquet file.
        first: row of its first vector in the concatenated parts.
        rows: number of rows.
        embeddings: ``img_emb`` and/or ``text_emb`` to the file of vectors; the same keys in every part.
        dim: length of a vector.
    """

    metadata: Path
    first: int
    rows: int
    embeddings: Mapping[str, Path]
    dim: int


def find_embedding_parts(folder: Path) -> tuple[EmbeddingPart, ...]:
    """Return the checked parts of an embedding folder in order.

    Raises:
        InputError: naming the file that is missing, truncated, or does not match the others.
    """
    found = _files(folder / "metadata", ".parquet")
    if not found:
        raise InputError(
            "no metadata/*.parquet",
            where=str(folder),
            fix="Run clip inference with metadata enabled, or rename the metadata folder to `metadata`.",
        )
    kinds = [kind for kind in EMBEDDING_FOLDERS if (folder / kind).is_dir()]
    if not kinds:
        raise InputError("neither img_emb nor text_emb", where=str(folder), fix="Give the folder of clip inference.")
    _check_names(folder, found, kinds)
    parts: list[EmbeddingPart] = []
    first = 0
    for metadata in found:
        embeddings = {kind: folder / kind / _embedding_file_name(metadata, kind) for kind in kinds}
        part = EmbeddingPart(
            metadata, first, count_parquet_rows(metadata), embeddings, _dim(next(iter(embeddings.values())))
        )
        _check(part, parts[0] if parts else part)
        parts.append(part)
        first += part.rows
    return tuple(parts)


def open_vectors(path: Path) -> NDArray[Any]:
    """Return the vectors of a file as a memory map of shape (rows, dim) in their stored dtype.

    Raises:
        InputError: if the file is not a complete .npy of a float matrix.
    """
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"not a complete .npy file ({error})", where=str(path), fix="Copy the file again.") from None
    if array.ndim != 2:
        raise InputError(f"an array of shape {array.shape}", where=str(path), fix="Embeddings are rows of a matrix.")
    if array.dtype.kind != "f":
        raise InputError(f"values of type {array.dtype}", where=str(path), fix="Embeddings are float16 or float32.")
    return array


def _files(folder: Path, ending: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{ending}") if not path.name.startswith("."))


def _embedding_file_name(metadata: Path, kind: str) -> str:
    return f"{kind}{metadata.stem.removeprefix('metadata')}.npy"


def _check_names(folder: Path, found: list[Path], kinds: list[str]) -> None:
    for kind in kinds:
        there = {path.name for path in _files(folder / kind, ".npy")}
        for metadata in found:
            name = _embedding_file_name(metadata, kind)
            if name not in there:
                path = str(folder / kind / name)
                raise InputError(f"no such file for {metadata.name}", where=path, fix="Copy the folder again.")
            there.remove(name)
        if there:
            raise InputError(
                f"{len(there)} without metadata",
                where=str(folder / kind / min(there)),
                fix="Copy the folder again, or remove vectors without metadata.",
            )


def _dim(path: Path) -> int:
    return int(open_vectors(path).shape[1])


def _check(part: EmbeddingPart, leader: EmbeddingPart) -> None:
    for path in part.embeddings.values():
        rows, dim = open_vectors(path).shape
        if rows != part.rows:
            raise InputError(
                f"{rows} vectors where {part.metadata.name} has {part.rows} rows",
                where=str(path),
                fix="Run clip inference for this part again.",
            )
        if dim != leader.dim:
            of = next(iter(leader.embeddings.values())).name
            raise InputError(
                f"vectors of length {dim} where those of {of} have {leader.dim}",
                where=str(path),
                fix="All parts, of images and of captions, must come from one model.",
            )
