"""An index opened together with its encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import StorageError
from pairwright.indexes.building.stored_pairs import look_up_pairs
from pairwright.indexes.encoders.protocols import TextEncoder
from pairwright.indexes.encoders.registry import load_encoder
from pairwright.indexes.hnsw.search import Index, open_index


@dataclass(frozen=True)
class IndexWithEncoder:
    """An open index and its encoder; None for precomputed vectors without an encoder."""

    index: Index
    encoder: TextEncoder | None

    @property
    def query_encoder(self) -> TextEncoder:
        """The encoder.

        Raises:
            StorageError: if the index has no encoder.
        """
        if self.encoder is None:
            raise StorageError(f"{self.index.directory}: this index has no encoder. Pass the vectors of the queries.")
        return self.encoder

    def pairs(self, keys: Sequence[str]) -> pl.DataFrame | None:
        """Return the pairs of ``keys`` in their order, columns of `PAIRS`; None if the index does not store pairs."""
        files = [self.index.directory / name for name in self.index.info.pairs_files]
        return look_up_pairs(files, keys) if files else None


def open_index_with_encoder(directory: Path, *, device: str = "", model: str = "") -> IndexWithEncoder:
    """Open an index that `build_index_from_pairs` built, with its encoder.

    Args:
        directory: folder of the index.
        device: device of the encoder, see `EncoderOptions`.
        model: new location of the encoder's checkpoint, if it has been moved.

    Raises:
        StorageError: if a file is missing or truncated, or the encoder is not that of the index.
        MissingResourceError: if a package or the checkpoint is missing.
    """
    index = open_index(directory)
    if not index.info.encoder:
        return IndexWithEncoder(index, None)
    encoder = load_encoder(directory, device=device, model=model)
    if encoder is None or encoder.fingerprint != index.info.encoder:
        raise StorageError(f"{directory}: its encoder file does not match the index. Build the index again.")
    return IndexWithEncoder(index, encoder)
