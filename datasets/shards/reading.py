"""Reading of shards: members, samples as records, and one pass that checks, hashes and indexes a shard."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import select_image_extensions
from pairwright.datasets.shards.index import IndexBuilder, ShardIndex, describe_contents
from pairwright.datasets.shards.layout import (
    ShardInfo,
)
from pairwright.datasets.shards.samples import Sample, decode_members, group_members
from pairwright.datasets.shards.ustar import BLOCK_SIZE, Readable, iter_members

DUPLICATE_KEY_FIX = "The same pair occurs twice: remove one of the inputs, or one of the samples."

_BUFFER = 2**20


def read_members(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield key and contents by extension of each sample of a shard.

    Raises:
        StorageError: if the tar is damaged or not written by pairwright.
    """
    with path.open("rb", buffering=_BUFFER) as handle:
        yield from group_members(iter_members(handle, str(path)), str(path))


class ShardScan:
    """One pass over a shard, which yields key and contents of each sample, and then has the index of the whole.

    Args:
        path: of the shard.
    """

    index: ShardIndex
    """Of the shard, with its SHA-256; after the pass."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[tuple[str, dict[str, bytes]]]:
        """Yield the samples; errors as in `read_members`."""
        end, builder = 0, IndexBuilder()
        with self._path.open("rb", buffering=_BUFFER) as handle:
            hashed = _HashedFile(handle)
            for key, contents in group_members(iter_members(hashed, str(self._path)), str(self._path)):
                start = end
                end += sum(BLOCK_SIZE + len(data) + -len(data) % BLOCK_SIZE for data in contents.values())
                builder.add(start, end, describe_contents(contents, contents.get("json", b"")))
                yield key, contents
        self.index = builder.finish(hashed.size, hashed.sha256.hexdigest())


class _HashedFile:
    """A file that is hashed while it is read from its start to its end."""

    def __init__(self, handle: Readable) -> None:
        self._handle = handle
        self.size, self.sha256 = 0, hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        data = self._handle.read(size)
        self.size += len(data)
        self.sha256.update(data)
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._handle.seek(offset, whence)


def read_shard(path: Path) -> Iterator[Sample]:
    """Yield the samples of a shard as records; errors as in `read_members`."""
    for key, contents in read_members(path):
        yield decode_members(key, contents, str(path))


def scan_shard(path: Path, seen: set[str] | None = None) -> tuple[ShardInfo, ShardIndex]:
    """Return the metadata and the index of a shard on disk by reading all of it; errors as in `read_members`.

    Args:
        path: of the shard.
        seen: keys of previous shards; its own are added.

    Raises:
        InputError: if one of its keys was seen.
    """
    seen = set() if seen is None else seen
    image_ext, scan = "", ShardScan(path)
    for key, contents in scan:
        if key in seen:
            raise InputError("a repeated key", where=f"{path}, sample {key}", fix=DUPLICATE_KEY_FIX)
        seen.add(key)
        image_ext = next(iter(select_image_extensions(contents)), "")
    index = scan.index
    return ShardInfo(path.name, len(index.spans), index.size, index.sha256, image_ext), index
