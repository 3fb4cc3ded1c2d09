"""Numbered samples of a set of shards, on disk or in an object store, readable by number; and which of them are used.

The byte range of each sample comes from the index beside its shard (`datasets/shards/index.py`), or from one scan of the
shard's headers. So samples are readable in any order, and all shards that webdataset reads can be used for training.
The samples of a step are read together: those of a store by concurrent range requests, one per sample.

The image of a sample is the member with an image extension, whatever precedes that extension in its name.

Limits: uncompressed tars. Memory: 16 bytes per sample; 20 per unit if samples have several.
"""

import hashlib
import io
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from webdataset.tariterators import group_by_keys, tar_file_expander

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import select_further_images, select_image_extensions
from pairwright.datasets.rejects import REASONS, Reject, RejectError, make_reject, rank_reasons
from pairwright.datasets.remote.reading import Range, read_ranges
from pairwright.datasets.shards.index import SampleContents, ShardIndex, split_member_name
from pairwright.datasets.shards.indexed_shards import ShardFile, find_indexed_shards, load_indexes
from pairwright.datasets.shards.sample_json import parse_sample_json
from pairwright.datasets.shards.ustar import END_MARKER, iter_members

SampleJson = Mapping[str, Any]
SampleCheck = Callable[[SampleJson], str]
"""Returns the reason why a sample cannot be used; empty if it can."""

OnError = Literal["skip", "stop"]

_CONVERSATIONS: Final = "Build shards with the section `conversations` (and method.types, if set)."
_FIXES: Final = {
    "missing_image": "Use shards with images.",
    "several_images": "Conversations about several images are for recipes of generative models.",
    "missing_caption": "Use shards with captions, as .txt.",
    "no_hard_negatives": "Build shards with the section `negatives`, or set method.online.",
    "no_hard_positives": "Build shards with the section `positives`.",
    "no_hard_texts": "Build shards with the sections `negatives` and `positives`.",
    "no_triplets": _CONVERSATIONS,
    "no_conversations": _CONVERSATIONS,
    "no_rationales": "Build shards with the section `rationales`; the split must be the same.",
}


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """Which samples are used, and how many units of an epoch each one is."""

    # Check of a sample's JSON, of which only the outline may be given (`datasets/shards/sample_json.py`); None: all
    # samples are used
    lacks: SampleCheck | None = None
    # Skip samples that lack something; False: use them, and count them in ``ShardSamples.lacking``
    required: bool = True
    units: Callable[[SampleJson], int] | None = None  # number of units of a sample by its JSON; None: one per sample
    members: frozenset[str] = frozenset()  # required members besides the JSON: ``image``, ``caption``
    on_error: OnError = "skip"  # ``skip`` skips and counts broken and incomplete samples, ``stop`` raises


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample as stored in its file."""

    key: str  # of the sample
    where: str  # file and key, for messages
    caption: str  # contents of ``.txt``; empty if missing
    body: SampleJson  # contents of ``.json``; empty if missing
    image: bytes  # bytes of the image; empty for text-only samples
    unit: int = 0  # selected unit of the sample, from 0 (`SampleSelection.units`)
    further_images: tuple[bytes, ...] = ()  # of a conversation of several images, those after the first


def skip_notes(left_out: Mapping[str, int]) -> list[str]:
    """Return sentences on skipped samples, by their number for each reason."""
    return [
        f"{count_phrase(count, 'sample')} skipped: {reason.replace('_', ' ')}."
        for reason, count in rank_reasons(left_out)
    ]


def check_usable(used: int, left_out: Mapping[str, int], lacking: Mapping[str, int], data: str) -> None:
    """Raise InputError if each of the ``used`` samples of ``data`` lacks some kind of text, or none is used."""
    if sum(lacking.values()) < used:
        return
    counts = rank_reasons({**left_out, **lacking})
    found = ", ".join(f"{count:,}: {reason.replace('_', ' ')}" for reason, count in counts)
    raise InputError(
        f"no sample has what the recipe needs ({found})",
        where=data,
        fix=_FIXES.get(counts[0][0], "Write the shards again."),
    )


@dataclass(frozen=True)
class ShardSamples:
    """Numbered units of samples in a set of shards."""

    names: tuple[str, ...]  # paths or URLs of the shards
    # For each shard int64 (n, 2): byte range ``[start, end)`` of a unit's sample
    spans: tuple[npt.NDArray[np.int64], ...]
    # For each shard int32 (n,): unit number within its sample; None: one per sample
    units: tuple[npt.NDArray[np.int32], ...] | None
    left_out: Mapping[str, int]  # skipped samples by reason
    lacking: Mapping[str, int]  # used samples that lack something, by reason

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

    def find(self, numbers: Sequence[int]) -> Iterator[StoredSample | Reject]:
        """Yield the samples with these numbers, or the rejects of unusable ones, in order."""
        places: list[tuple[Range, int]] = []
        for number in numbers:
            shard = int(np.searchsorted(self._ends, number, side="right"))
            at = number - int(self._ends[shard] - len(self.spans[shard]))
            start, end = self.spans[shard][at].tolist()
            places.append(((self.names[shard], start, end), 0 if self.units is None else int(self.units[shard][at])))
        distinct = list(dict.fromkeys(span for span, _ in places))
        data = dict(zip(distinct, read_ranges(distinct), strict=True))
        for span, unit in places:
            yield _sample(span, data[span], unit)


def _sample(span: Range, data: bytes, unit: int) -> StoredSample | Reject:
    name, start, _ = span
    try:
        key, members = _split_members(name, data + END_MARKER)
    except (ValueError, tarfile.TarError):
        raise StorageError(
            f"{name}: the sample at byte {start} cannot be read. The shard is damaged, or was changed after its index was "
            "read: write or download it again, or leave it out of --data, and start the run again."
        ) from None
    where = f"{name}::{key}"
    try:
        body = parse_sample_json(members.get("json", b""))
    except RejectError as error:
        return make_reject(where, error.reason, error.detail)
    try:
        caption = members.get("txt", b"").decode()
    except UnicodeDecodeError as error:
        return make_reject(where, "not_utf8", f"the caption: {error}")
    images = select_image_extensions(members)
    if images and not members[images[0]]:  # not a text-only sample
        return make_reject(where, "bad_image", f"the .{images[0]} is empty")
    further = tuple(members[ext] for ext in (select_further_images(members) if images else ()))
    return StoredSample(key, where, caption, body, members[images[0]] if images else b"", unit, further)


def _split_members(name: str, data: bytes) -> tuple[str, dict[str, Any]]:
    """Return key and contents by extension of a tar of one sample; tars of other writers are read by webdataset."""
    try:
        found = [(*split_member_name(member), content) for member, content in iter_members(io.BytesIO(data), name)]
    except StorageError:
        (members,) = group_by_keys(tar_file_expander([{"url": name, "stream": io.BytesIO(data)}]))
        return members.pop("__key__"), members
    contents = {ext: content for key, ext, content in found if key}
    (key,) = {key for key, *_ in found if key}
    return key, contents


def index_shards(data: str | Path, selection: SampleSelection | None = None) -> ShardSamples:
    """Return the samples of a folder, a tar or a brace pattern, local or as a URL.

    ``data`` as in `find_indexed_shards`; without a selection all samples are used, one unit each.

    Raises:
        InputError: no such shard, or shards without a sample; a broken or incomplete sample with ``on_error`` ``stop``.
        StorageError: a shard is damaged or not a tar, or its store fails.
    """
    shards = find_indexed_shards(str(data))
    sample_filter = _SampleFilter(selection or SampleSelection())
    found = [sample_filter.select(shard, index) for shard, index in zip(shards, load_indexes(shards), strict=True)]
    if not sum(len(spans) for spans, _ in found) and not sample_filter.left_out:
        raise InputError("no samples", where=str(data), fix="Build shards with samples.")
    sample_filter.raise_rejects()
    units = tuple(own for _, own in found) if sample_filter.selection.units else None
    names, spans = tuple(shard.name for shard in shards), tuple(spans for spans, _ in found)
    return ShardSamples(names, spans, units, dict(sample_filter.left_out), dict(sample_filter.lacking))


class _SampleFilter:
    """Counts the units of each sample, and skipped samples by reason."""

    def __init__(self, selection: SampleSelection) -> None:
        self.selection = selection
        self.left_out: Counter[str] = Counter()
        self.lacking: Counter[str] = Counter()
        self._rejected: dict[str, str] = {}  # reason: first sample
        self._samples = 0

    def select(self, shard: ShardFile, index: ShardIndex) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the byte range of each unit's sample in a shard, and the unit's number within the sample."""
        self._samples += len(index.spans)
        counts = np.zeros(len(index.kinds), dtype=np.int64)
        for number, contents in enumerate(index.kinds):
            of_kind = np.flatnonzero(index.contents_of == number)
            try:
                counts[number] = self._count_units(contents, len(of_kind))
            except RejectError as error:
                self.left_out[error.reason] += len(of_kind)
                self._rejected.setdefault(error.reason, _name_sample(shard, index, int(of_kind[0])))
        units_of = counts[index.contents_of] if len(counts) else np.zeros(0, dtype=np.int64)
        spans = np.repeat(index.spans, units_of, axis=0)
        first = np.repeat(np.cumsum(units_of) - units_of, units_of)
        return spans, (np.arange(len(spans)) - first).astype(np.int32)

    def _count_units(self, contents: SampleContents, samples: int) -> int:
        """Return the units of each of several samples with these contents; 0 if they lack something required."""
        if contents.duplicate:
            raise RejectError("duplicate_member", "duplicate member")
        if "image" in self.selection.members and not contents.image:
            raise RejectError("missing_image", "no image")
        if "image" in self.selection.members and contents.further_images:
            raise RejectError("several_images", "several images")
        if "caption" in self.selection.members and not contents.caption:
            raise RejectError("missing_caption", "no .txt")
        lacks, units = self.selection.lacks, self.selection.units
        if lacks is None and units is None:
            return 1
        if contents.broken:
            raise RejectError("broken_json", "broken JSON")
        reason = lacks(contents.texts) if lacks else ""
        if reason:
            (self.left_out if self.selection.required else self.lacking)[reason] += samples
        if reason and self.selection.required:
            return 0
        return units(contents.texts) if units else 1

    def raise_rejects(self) -> None:
        """Raise InputError on broken and incomplete samples with ``on_error`` ``stop``."""
        if self.selection.on_error == "stop" and self._rejected:
            reason, first = next(iter(self._rejected.items()))
            raise InputError(
                f"{self.left_out[reason]:,} of {self._samples:,} samples are rejected as {reason}; this is the first",
                where=first,
                fix=f"{_FIXES.get(reason) or REASONS[reason]} To skip such samples: --on-error skip.",
            )


def _name_sample(shard: ShardFile, index: ShardIndex, number: int) -> str:
    """Return shard and key of a sample, for messages."""
    start, end = index.spans[number].tolist()
    ((data),) = read_ranges([(shard.name, start, end)])
    with tarfile.open(fileobj=io.BytesIO(data + END_MARKER), mode="r:") as archive:
        names = [split_member_name(name)[0] for name in archive.getnames()]
    return f"{shard.name}::{next(filter(None, names), '')}"
