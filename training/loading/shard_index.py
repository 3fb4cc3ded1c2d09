"""Where each sample lies in the shards, and its members read from there by webdataset.

The headers are read once, at the start: for each sample the first byte and the byte behind the last. What lies between
is a tar of one sample, and webdataset, given the stretches of a batch one behind the other, reads them as it reads any
shard. So a sample can be read by its number, in any order, and what webdataset takes can be trained on: shards by
`pairwright`, whose headers are read fast, and those of others, for which Python's tarfile is asked.

Limits: files on disks; tars without compression. Memory: 16 bytes a sample.
"""

import hashlib
import io
import mmap
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from webdataset.tariterators import group_by_keys, tar_file_expander

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.shards import find_shards
from pairwright.datasets.ustar import BLOCK, END
from pairwright.training.loading.positions import read_span
from pairwright.training.loading.raw import Judge, RawSample


@dataclass(frozen=True)
class ShardIndex:
    """The samples of a set of shards, numbered through.

    Attributes:
        paths: of the shards.
        spans: for each shard int64 (n, 2): first byte of a sample, and the byte behind it.
        left_out: samples that have no place, by reason.
    """

    paths: tuple[Path, ...]
    spans: tuple[npt.NDArray[np.int64], ...]
    left_out: Mapping[str, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of samples of each shard."""
        return tuple(map(len, self.spans))

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.counts)

    def places(self) -> str:
        """Return a digest of where the samples lie: the same for the same files in another folder."""
        digest = hashlib.sha256()
        for spans in self.spans:
            digest.update(f"{len(spans)}:".encode())
            digest.update(np.ascontiguousarray(spans, dtype="<i8").data)
        return digest.hexdigest()[:16]

    def read(self, numbers: Sequence[int]) -> list[RawSample]:
        """Return the samples of these numbers, in their order; a number may come twice.

        Raises:
            StorageError: a shard that changed since, or a sample that cannot be read.
        """
        found = {number: self._read(number) for number in sorted(set(map(int, numbers)))}  # as they lie in the files
        return [found[int(number)] for number in numbers]

    def _read(self, number: int) -> RawSample:
        shard = int(np.searchsorted(self._ends, number, side="right"))
        path = self.paths[shard]
        start, end = self.spans[shard][number - (self._ends[shard] - len(self.spans[shard]))].tolist()
        part = {"url": str(path), "stream": io.BytesIO(read_span(path, start, end) + END)}
        try:
            (members,) = group_by_keys(tar_file_expander([part]))
        except (ValueError, tarfile.TarError) as error:
            raise StorageError(f"{path}: no sample at byte {start} any more ({error}). Start again.") from None
        return _sample(path, members)


def _sample(path: Path, members: dict[str, Any]) -> RawSample:
    key = members.pop("__key__")
    where = f"{path}, sample {key}"
    members = {name: data for name, data in members.items() if not name.startswith("__")}
    try:
        caption = members.pop("txt").decode()
        body = orjson.loads(members.pop("json", b"{}"))
    except (KeyError, ValueError) as error:
        raise StorageError(f"{where}: no caption or no readable JSON ({error!r}). Write the shard again.") from None
    return RawSample(key, where, caption, body, next(iter(members.values()), b""))


def index_shards(data: str | Path, judge: Judge | None = None) -> ShardIndex:
    """Return where the samples of a folder, a tar or a brace pattern lie.

    Args:
        data: as in `find_shards`.
        judge: given the JSON of each sample; those for which it says a reason are left out and counted. Without, no
            JSON is read, which is much faster.

    Raises:
        InputError: no such shard, or shards without a sample.
        StorageError: a shard that is torn or no tar.
    """
    paths = tuple(find_shards(Path(data)))
    left_out: Counter[str] = Counter()
    spans = tuple(_spans(path, judge, left_out) for path in paths)
    if not sum(map(len, spans)) and not left_out:
        raise InputError("no sample in it", where=str(data), mend="Build shards that hold samples.")
    return ShardIndex(paths, spans, dict(left_out))


def _spans(path: Path, judge: Judge | None, left_out: Counter[str]) -> npt.NDArray[np.int64]:
    with path.open("rb") as handle:
        size = handle.seek(0, io.SEEK_END)
        if not size:
            raise StorageError(f"{path}: an empty file. Write the shard again.")
        with closing(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)) as view:
            rows = [
                (start, end)
                for start, end, body in _samples(_members(view, path, size), view)
                if not (judge and _refused(judge, body, left_out, path))
            ]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _refused(judge: Judge, body: bytes, left_out: Counter[str], path: Path) -> bool:
    try:
        reason = judge(orjson.loads(body or b"{}"))
    except orjson.JSONDecodeError as error:
        raise StorageError(f"{path}: a sample without readable JSON ({error}). Write the shard again.") from None
    left_out.update([reason] if reason else [])
    return bool(reason)


_Member = tuple[str, int, int, int]  # name, first byte of its header(s), first byte and size of its data


def _samples(members: Iterator[_Member], view: mmap.mmap) -> Iterator[tuple[int, int, bytes]]:
    """Yield first byte, byte behind, and JSON of each sample: members of one stem, side by side."""
    stem, start, end, body = "", 0, 0, b""
    for name, at, data, size in members:
        folder, _, file = name.rpartition("/")
        base, _, ext = file.partition(".")
        if f"{folder}/{base}" != stem:
            if stem:
                yield start, end, body
            stem, start, body = f"{folder}/{base}", at, b""
        end = data + size + -size % BLOCK
        if ext == "json":
            body = view[data : data + size]
    if stem:
        yield start, end, body


def _members(view: mmap.mmap, path: Path, size: int) -> Iterator[_Member]:
    at = 0
    while header := view[at : at + BLOCK].rstrip(b"\0"):
        if header[156:157] != b"0" or header[257:262] != b"ustar" or header[345:]:
            yield from _foreign(path, at)
            return
        try:
            name, length = header[:100].rstrip(b"\0").decode(), int(header[124:135], 8)
        except ValueError:
            raise _torn(path, at) from None
        if at + BLOCK + length > size:
            raise _torn(path, at)
        yield name, at, at + BLOCK, length
        at += BLOCK + length + -length % BLOCK
    if at >= size:
        raise _torn(path, at)


def _foreign(path: Path, after: int) -> Iterator[_Member]:
    """Yield the members from byte ``after`` on of a tar that holds other headers than ours."""
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isreg() and member.offset >= after:
                    yield member.name, member.offset, member.offset_data, member.size
    except tarfile.TarError:
        raise _torn(path, after) from None


def _torn(path: Path, at: int) -> StorageError:
    return StorageError(f"{path}: torn, or no tar without compression (at byte {at}). Write the shard again.")
