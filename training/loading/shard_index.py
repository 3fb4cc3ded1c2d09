"""Index of the byte range of each sample in a set of shards, for reading samples by number with webdataset.

Headers are read once, at the start. The byte range of a sample is a tar of one sample, which webdataset reads like any
shard. So samples are readable in any order, and all shards that webdataset reads can be used for training: headers of
`pairwright` shards are read quickly, those of others by Python's tarfile.

The image of a sample is the member with an image extension, whatever precedes that extension in its name.

Limits: local files, uncompressed tars. Memory: 16 bytes per sample; 20 per unit if samples have several.
"""

import hashlib
import io
import mmap
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from webdataset.tariterators import group_by_keys, tar_file_expander

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import select_image_extensions
from pairwright.datasets.rejects import REASONS, Reject, RejectError, make_reject
from pairwright.datasets.shards.ustar import BLOCK_SIZE, END_MARKER
from pairwright.datasets.shards.webdataset import find_shards
from pairwright.training.loading.samples import SampleSelection, StoredSample, read_span


@dataclass(frozen=True)
class ShardIndex:
    """Numbered units of samples in a set of shards.

    Attributes:
        paths: of the shards.
        spans: for each shard int64 (n, 2): byte range ``[start, end)`` of a unit's sample.
        units: for each shard int32 (n,): unit number within its sample; None: one per sample.
        left_out: skipped samples by reason.
    """

    paths: tuple[Path, ...]
    spans: tuple[npt.NDArray[np.int64], ...]
    units: tuple[npt.NDArray[np.int32], ...] | None
    left_out: Mapping[str, int]

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of units of each shard."""
        return tuple(map(len, self.spans))

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.counts)

    def places(self) -> str:
        """Return a digest of the samples' positions; equal for copies of the shards."""
        digest = hashlib.sha256()
        for spans in self.spans:
            digest.update(f"{len(spans)}:".encode())
            digest.update(np.ascontiguousarray(spans, dtype="<i8").data)
        return digest.hexdigest()[:16]

    def find(self, number: int) -> StoredSample | Reject:
        """Return the sample with a number, or the reject if it is unusable.

        Raises:
            StorageError: the shard changed since it was indexed.
        """
        shard = int(np.searchsorted(self._ends, number, side="right"))
        path = self.paths[shard]
        at = number - int(self._ends[shard] - len(self.spans[shard]))
        start, end = self.spans[shard][at].tolist()
        part = {"url": str(path), "stream": io.BytesIO(read_span(path, start, end) + END_MARKER)}
        try:
            (members,) = group_by_keys(tar_file_expander([part]))
        except (ValueError, tarfile.TarError) as error:
            raise StorageError(f"{path}: no sample at byte {start} any more ({error}). Restart the run.") from None
        return _sample(path, members, 0 if self.units is None else int(self.units[shard][at]))


_TEXTS = {
    "hard_negatives": ("form", "target", "text"),
    "hard_positives": ("form", "target", "text"),
    "conversations": ("type",),
    "rationales": ("task", "input", "label", "rationale", "split"),
}
"""Members of a sample's JSON that collators read: lists of objects with these string members."""


def _sample(path: Path, members: dict[str, Any], unit: int) -> StoredSample | Reject:
    key = members.pop("__key__")
    where = f"{path}::{key}"
    try:
        body = _object(members.get("json", b""))
    except RejectError as error:
        return make_reject(where, error.reason, error.detail)
    try:
        caption = members.get("txt", b"").decode()
    except UnicodeDecodeError as error:
        return make_reject(where, "not_utf8", f"the caption: {error}")
    images = select_image_extensions(members)
    return StoredSample(key, where, caption, body, members[images[0]] if images else b"", unit)


def _object(data: bytes) -> dict[str, Any]:
    """Return the JSON object of a sample; an empty one without bytes.

    Raises:
        RejectError: broken_json: not a JSON object, or a member that collators read has another shape.
    """
    try:
        body = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError as error:
        raise RejectError("broken_json", str(error)) from None
    if not isinstance(body, dict):
        raise RejectError("broken_json", "not a JSON object")
    for name, texts in _TEXTS.items():
        _check_items(body.get(name, ()), name, texts)
    for number, conversation in enumerate(body.get("conversations", ())):
        _check_items(conversation.get("turns"), f"conversations[{number}].turns", ("role", "text"))
    return body


def _check_items(items: Any, name: str, texts: Sequence[str]) -> None:
    """Raise RejectError unless ``items`` is a list of objects with these strings; other members are ignored."""
    if not isinstance(items, list | tuple):
        raise RejectError("broken_json", f"{name} is not a list")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise RejectError("broken_json", f"{name}[{number}] is not an object")
        for text in texts:
            if not isinstance(item.get(text), str):
                raise RejectError("broken_json", f"{name}[{number}] has no string `{text}`")


def index_shards(data: str | Path, selection: SampleSelection | None = None) -> ShardIndex:
    """Return the index of the samples of a folder, a tar or a brace pattern.

    Args:
        data: as in `find_shards`.
        selection: which samples are used, and their units; None: all samples, one unit each.

    Raises:
        InputError: no such shard, or shards without a sample; a broken or incomplete sample with ``on_error`` ``stop``.
        StorageError: a shard is damaged or not a tar.
    """
    paths = tuple(find_shards(Path(data)))
    sample_filter = _SampleFilter(selection or SampleSelection())
    found = [_spans(path, sample_filter) for path in paths]
    if not sum(len(spans) for spans, _ in found) and not sample_filter.left_out:
        raise InputError("no samples", where=str(data), fix="Build shards with samples.")
    sample_filter.raise_rejects()
    units = tuple(own for _, own in found) if sample_filter.selection.units else None
    return ShardIndex(paths, tuple(spans for spans, _ in found), units, dict(sample_filter.left_out))


class _SampleFilter:
    """Counts the units of each sample, and skipped samples by reason."""

    def __init__(self, selection: SampleSelection) -> None:
        self.selection = selection
        self.left_out: Counter[str] = Counter()
        self._rejected: dict[str, str] = {}  # reason: first sample
        self._samples = 0

    def units(self, found: "_FoundSample", path: Path) -> int:
        """Return the number of units of a sample; 0: skipped."""
        self._samples += 1
        try:
            body = self._body(found)
        except RejectError as error:
            self.left_out.update([error.reason])
            self._rejected.setdefault(error.reason, f"{path}::{found.stem}")
            return 0
        lacks, units = self.selection.lacks, self.selection.units
        if lacks and (reason := lacks(body)):
            self.left_out.update([reason])
            return 0
        return units(body) if units else 1

    def raise_rejects(self) -> None:
        """Raise InputError on broken and incomplete samples with ``on_error`` ``stop``."""
        if self.selection.on_error == "stop" and self._rejected:
            reason, first = next(iter(self._rejected.items()))
            raise InputError(
                f"{self.left_out[reason]:,} of {self._samples:,} samples are rejected as {reason}; this is the first",
                where=first,
                fix=f"{REASONS[reason]} To skip such samples: --on-error skip.",
            )

    def _body(self, found: "_FoundSample") -> dict[str, Any]:
        images = select_image_extensions(found.extensions)
        if len(images) > 1 or found.twice:
            raise RejectError("duplicate_member", "duplicate member")
        if "image" in self.selection.members and not images:
            raise RejectError("missing_image", "no image")
        if "caption" in self.selection.members and "txt" not in found.extensions:
            raise RejectError("missing_caption", "no .txt")
        if self.selection.lacks is None and self.selection.units is None:
            return {}
        return _object(found.body)


def _spans(path: Path, sample_filter: _SampleFilter) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the byte range of each unit's sample in a shard, and the unit's number within the sample."""
    rows, units = list[tuple[int, int]](), list[int]()
    with path.open("rb") as handle:
        size = handle.seek(0, io.SEEK_END)
        if not size:
            raise StorageError(f"{path}: empty file. Write the shard again.")
        with closing(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)) as view:
            for found in _samples(_members(view, path, size), view):
                count = sample_filter.units(found, path)
                rows += [(found.start, found.end)] * count
                units += range(count) if sample_filter.selection.units else ()
    return np.array(rows, dtype=np.int64).reshape(-1, 2), np.array(units, dtype=np.int32)


_Member = tuple[str, int, int, int]  # name, first byte of its header(s), first byte and size of its data


@dataclass(slots=True)
class _FoundSample:
    """A sample found in the headers: lower-case extensions of its members, and its byte range."""

    stem: str
    start: int
    end: int = 0
    body: bytes = b""
    extensions: set[str] = field(default_factory=set)
    twice: bool = False


def _samples(members: Iterator[_Member], view: mmap.mmap) -> Iterator[_FoundSample]:
    """Yield the samples: adjacent members with one stem."""
    found: _FoundSample | None = None
    for name, at, data, size in members:
        folder, slash, file = name.rpartition("/")
        base, dot, ext = file.partition(".")
        if not base or not dot:  # webdataset ignores it too
            continue
        stem, ext = f"{folder}{slash}{base}", ext.lower()
        if found is None or stem != found.stem:
            if found is not None:
                yield found
            found = _FoundSample(stem, at)
        found.end = data + size + -size % BLOCK_SIZE
        found.twice |= ext in found.extensions
        found.extensions.add(ext)
        if ext == "json":
            found.body = view[data : data + size]
    if found is not None:
        yield found


def _members(view: mmap.mmap, path: Path, size: int) -> Iterator[_Member]:
    at = 0
    while header := view[at : at + BLOCK_SIZE].rstrip(b"\0"):
        if header[156:157] != b"0" or header[257:262] != b"ustar" or header[345:]:
            yield from _foreign_members(path, at)
            return
        try:
            name, length = header[:100].rstrip(b"\0").decode(), int(header[124:135], 8)
        except ValueError:
            raise _damaged_shard(path, at) from None
        if at + BLOCK_SIZE + length > size:
            raise _damaged_shard(path, at)
        yield name, at, at + BLOCK_SIZE, length
        at += BLOCK_SIZE + length + -length % BLOCK_SIZE
    if at >= size:
        raise _damaged_shard(path, at)


def _foreign_members(path: Path, after: int) -> Iterator[_Member]:
    """Yield the members from byte ``after`` of a tar with other headers than ours."""
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isreg() and member.offset >= after:
                    yield member.name, member.offset, member.offset_data, member.size
    except tarfile.TarError:
        raise _damaged_shard(path, after) from None


def _damaged_shard(path: Path, at: int) -> StorageError:
    return StorageError(f"{path}: damaged, or not an uncompressed tar (at byte {at}). Write the shard again.")
