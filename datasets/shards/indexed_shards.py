"""Shards of a folder, a tar, a brace pattern or a URL of one, with their indexes.

An index beside a shard is used if it fits (`index.py`). Otherwise the shard is scanned once, and its index kept below
PAIRWRIGHT_CACHE (``~/.cache/pairwright/shard-index``), under the name, size and time of the shard. Scanning a shard of a
store streams it; several are scanned at a time.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.errors import InputError
from pairwright.datasets.progress import track
from pairwright.datasets.remote.cache import cache_folder, cache_key
from pairwright.datasets.remote.listing import find_input_files
from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, is_remote, open_store
from pairwright.datasets.remote.reading import read_ranges
from pairwright.datasets.shards.index import INDEX_SUFFIX, ShardIndex, decode_index, index_path, scan_samples
from pairwright.datasets.shards.layout import CHECKSUMS_FILE, SIZES_FILE, find_shards, shards_folder

_SCANNED_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard and its index.

    Attributes:
        name: path or URL of the tar.
        size: of the tar, in bytes.
        time: of its last change, in seconds since 1970.
        index_size: of the index beside it, in bytes; 0 if there is none.
        newer: whether the tar changed after its index.
    """

    name: str
    size: int
    time: float
    index_size: int
    newer: bool


def find_indexed_shards(data: str) -> tuple[ShardFile, ...]:
    """Return the shards of a build, a folder, a tar or a brace pattern, local or as a URL, in order.

    Raises:
        InputError: there are none, or one of them is missing.
        StorageError: the store refuses or cannot be reached.
        UsageError: a URL with a user or a query.
    """
    if not is_remote(data):
        shards = shards_folder(Path(data))  # of a build
        return tuple(map(_local, find_shards(shards if any(shards.glob("*.tar")) else Path(data))))
    store, written = open_store(data)
    path, files = find_input_files(store, written)
    found = {each.path: each for each in files}
    if "{" not in path and path not in found:
        own = [name for name in found if _is_shard_of(name, path)]
        path = path if own else f"{path}/shards"
    tars = [each for each in files if each.path.endswith(".tar") and ("{" in path or _is_shard_of(each.path, path))]
    if not tars:
        raise InputError(
            "no .tar in it", where=data, fix="Give a URL of a folder of shards, a .tar, or {00000..00009}.tar."
        )
    beside = found if "{" not in path and path not in found else _indexes(store, tars)
    _require_all(store, path, found, data)
    return tuple(_remote(store, tar, beside.get(tar.path + INDEX_SUFFIX)) for tar in tars)


def _is_shard_of(name: str, folder: str) -> bool:
    return name == folder or (name.endswith(".tar") and str(PurePosixPath(name).parent) == folder)


def _indexes(store: RemoteStore, tars: Sequence[StoredFile]) -> Mapping[str, StoredFile]:
    folders = sorted({str(PurePosixPath(tar.path).parent) for tar in tars})
    return {each.path: each for folder in folders for each in store.find(folder)}


def _require_all(store: RemoteStore, folder: str, found: Mapping[str, StoredFile], data: str) -> None:
    """Require the shards that a folder's sizes list, as `find_shards` does."""
    sizes = found.get(f"{folder}/{SIZES_FILE}")
    if sizes is None:
        return
    (content,) = read_ranges([(store.url(sizes.path), 0, sizes.size)])
    gone = sorted(name for name in orjson.loads(content) if f"{folder}/{name}" not in found)
    if gone:
        raise InputError(
            f"{len(gone)} shards that {SIZES_FILE} lists are missing, first {gone[0]}",
            where=data,
            fix="Copy them again, or name the others.",
        )


def _local(path: Path) -> ShardFile:
    tar, beside = path.stat(), index_path(path)
    try:
        index = beside.stat()
    except OSError:
        return ShardFile(str(path), tar.st_size, tar.st_mtime, 0, newer=True)
    return ShardFile(str(path), tar.st_size, tar.st_mtime, index.st_size, newer=tar.st_mtime_ns > index.st_mtime_ns)


def _remote(store: RemoteStore, tar: StoredFile, index: StoredFile | None) -> ShardFile:
    newer = index is None or tar.time > index.time
    return ShardFile(store.url(tar.path), tar.size, tar.time, index.size if index else 0, newer=newer)


def load_indexes(shards: Sequence[ShardFile]) -> list[ShardIndex]:
    """Return the index of each shard: that beside it, else the cached one, else by scanning the shard.

    Raises:
        StorageError: a shard is damaged, or not readable.
    """
    beside = [shard for shard in shards if shard.index_size]
    written = read_ranges([(shard.name + INDEX_SUFFIX, 0, shard.index_size) for shard in beside])
    sums = _checksums({shard.name.rpartition("/")[0] for shard in beside})
    found = {
        shard.name: index
        for shard, data in zip(beside, written, strict=True)
        if (index := decode_index(data)) is not None and _fits(index, shard, sums)
    }
    missing = [shard for shard in shards if shard.name not in found]
    with ThreadPoolExecutor(_SCANNED_AT_A_TIME if any(is_remote(each.name) for each in missing) else 1) as pool:
        scanned = [pool.submit(_cached_scan, shard) for shard in missing]
        for shard, result in zip(missing, track(scanned, "indexing shards", unit="shards"), strict=True):
            found[shard.name] = result.result()
    return [found[shard.name] for shard in shards]


def _fits(index: ShardIndex, shard: ShardFile, sums: Mapping[str, str]) -> bool:
    """Return whether an index is of this tar: by size, and by checksum, or by time if its folder lists none."""
    known = sums.get(shard.name)
    return index.size == shard.size and (known == index.sha256 if known else not shard.newer)


def _checksums(folders: set[str]) -> dict[str, str]:
    """Return the checksum of each shard that the ``SHA256SUMS`` of these folders list, by name of the shard."""
    found = {}
    for folder in folders:
        name = f"{folder}/{CHECKSUMS_FILE}" if folder else CHECKSUMS_FILE
        for line in _read_text(name).splitlines():
            digest, _, tar = line.partition("  ")
            found[f"{folder}/{tar}" if folder else tar] = digest
    return found


def _read_text(name: str) -> str:
    """Return the text of a file; empty if there is none."""
    try:
        if not is_remote(name):
            return Path(name).read_text(encoding="utf-8")
        store, path = open_store(name)
        return "".join(
            read_ranges([(name, 0, file.size)])[0].decode() for file in store.find(path) if file.path == path
        )
    except (OSError, UnicodeDecodeError):
        return ""


def _cached_scan(shard: ShardFile) -> ShardIndex:
    name = shard.name if is_remote(shard.name) else str(Path(shard.name).absolute())
    place = cache_folder("shard-index") / f"{cache_key(name, shard.size, shard.time)}{INDEX_SUFFIX}"
    with suppress(OSError):
        if (cached := decode_index(place.read_bytes())) is not None and cached.size == shard.size:
            return cached
    index = scan_samples(shard.name)
    with suppress(OSError):  # a read-only home: the shard is scanned again at the next start
        write_bytes(place, index.encode())
    return index
