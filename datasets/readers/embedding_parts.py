"""The parts of an embedding folder, matched by name and checked against each other before anything is read.

    metadata/metadata_7.parquet    one row a pair
    img_emb/img_emb_7.npy          the vector of each row's image, in the same order (may be absent)
    text_emb/text_emb_7.npy        the vector of each row's caption (may be absent)

What stands behind ``metadata`` in a name (``_7``) joins the files of a part, so that metadata and vectors stay matched
whether or not numbers are padded with zeros. Parts go in the order of their names as text, ``_10`` before ``_2`` where
they are not padded (LAION-400M's are not); so do the programs that clip-retrieval indexes with. The row of a vector in
all parts laid end to end, `Part.first` onwards, follows from that order, and from the parts that are there: taking one
away renumbers the rows behind it.

Checked: each part has all its files and no file lacks its metadata; a part's files have as many rows; vectors are floats
of one length throughout, and no file is cut short.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.parquet import count_parquet_rows

EMBEDDING_FOLDERS = ("img_emb", "text_emb")


@dataclass(frozen=True, slots=True)
class EmbeddingPart:
    """One part of an embedding folder.

    Attributes:
        metadata: its Parquet file.
        first: row of its first vector in all parts laid end to end.
        rows: how many.
        embeddings: ``img_emb`` and/or ``text_emb`` to the file of vectors; the same ones in every part.
        dim: length of a vector.
    """

    metadata: Path
    first: int
    rows: int
    embeddings: Mapping[str, Path]
    dim: int


def find_embedding_parts(folder: Path) -> tuple[EmbeddingPart, ...]:
    """Return the parts of an embedding folder in order, checked.

    Raises:
        InputError: naming the file that is missing, cut short, or does not fit the others.
    """
    found = _files(folder / "metadata", ".parquet")
    if not found:
        raise InputError(
            "no metadata/*.parquet",
            where=str(folder),
            fix="Run clip inference with metadata enabled, or give the folder beside img_emb that name.",
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
    """Return the vectors of a file, mapped into memory and not yet read, as they are stored (rows, dim).

    Raises:
        InputError: when the file is no whole .npy of a matrix of floats.
    """
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"not a whole .npy file ({error})", where=str(path), fix="Copy the file again.") from None
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
                raise InputError(f"no such file, beside {metadata.name}", where=path, fix="Copy the folder again.")
            there.remove(name)
        if there:
            raise InputError(
                f"{len(there)} without metadata",
                where=str(folder / kind / min(there)),
                fix="Copy the folder again, or move vectors without metadata away.",
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
                fix="All parts, of images and of captions, have to come from one model.",
            )
