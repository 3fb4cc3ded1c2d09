"""Compression of test files, by file name ending."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa


def compress_zstd(data: bytes) -> bytes:
    """Return a zstd frame."""
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": compress_zstd,
}
