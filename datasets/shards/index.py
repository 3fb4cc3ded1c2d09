"""Index of a shard: the byte range of each sample and what it contains, in a file beside the tar.

``00000.tar.index`` belongs to ``00000.tar``: a Parquet file with a row per sample, ``start`` and ``end`` (bytes, from its
first header to the padding of its last member) and ``contents`` (JSON: its members, and the `outline` of its texts, as
few distinct values). Its metadata has the version of the format, and size and SHA-256 of the tar. About 3 bytes a sample.

With it, a reader finds samples by number and selects those that a collator can use without reading a tar's headers.
An index of a tar with another size, or with another checksum than the ``SHA256SUMS`` of the folder, is ignored.

The byte range of a sample is itself a tar of one sample (without an end mark).
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import select_further_images, select_image_extensions
from pairwright.datasets.rejects import Reject, RejectError
from pairwright.datasets.remote.reading import open_file
from pairwright.datasets.shards.sample_json import outline, parse_sample_json
from pairwright.datasets.shards.ustar import BLOCK_SIZE
from pairwright.datasets.tar_index import TarMember, iter_open_tar

INDEX_SUFFIX = ".index"
_VERSION = 1
_METADATA = b"pairwright"


@dataclass(frozen=True, slots=True)
class SampleContents:
    """Which members a sample has, and the outline of its texts.

    Attributes:
        image: it has an image.
        caption: it has a ``.txt``.
        duplicate: it has two images, or two members of one extension.
        broken: its JSON is none, or has another shape than collators read.
        texts: `sample_json.outline` of its JSON; empty if broken.
        further_images: number of its images after the first.
    """

    image: bool
    caption: bool
    duplicate: bool
    broken: bool
    texts: dict[str, Any]
    further_images: int = 0

    def encode(self) -> bytes:
        """Return it as JSON."""
        further = [self.further_images] if self.further_images else []
        return orjson.dumps([self.image, self.caption, self.duplicate, self.broken, self.texts, *further])


def describe_contents(extensions: Iterable[str], json: bytes, *, twice: bool = False) -> SampleContents:
    """Return the contents of a sample.

    Args:
        extensions: of its members, in lower case and without dot.
        json: of its ``.json``; empty without one.
        twice: two members have one extension.
    """
    present = set(extensions)
    images = select_image_extensions(present)
    try:
        texts, broken = outline(parse_sample_json(json)), False
    except RejectError:
        texts, broken = {}, True
    further = len(select_further_images(present)) if images else 0
    return SampleContents(bool(images), "txt" in present, twice or len(images) > 1, broken, texts, further)


@dataclass(frozen=True)
class ShardIndex:
    """Samples of a shard in order.

    Attributes:
        spans: int64 (n, 2), byte range ``[start, end)`` of each sample.
        contents: distinct `SampleContents.encode` values.
        contents_of: int32 (n,), position of each sample's contents in ``contents``.
        size: of the tar, in bytes.
        sha256: of the tar, in hex; empty if unknown.
    """

    spans: npt.NDArray[np.int64]
    contents: tuple[bytes, ...]
    contents_of: npt.NDArray[np.int32]
    size: int
    sha256: str = ""

    @cached_property
    def kinds(self) -> tuple[SampleContents, ...]:
        """Return ``contents``, decoded."""
        return tuple(SampleContents(*orjson.loads(each)) for each in self.contents)

    def samples(self) -> list[tuple[int, int, bytes]]:
        """Return first byte, end and contents of each sample."""
        contents = [self.contents[number] for number in self.contents_of]
        return [(start, end, each) for (start, end), each in zip(self.spans.tolist(), contents, strict=True)]

    def encode(self) -> bytes:
        """Return the bytes of the index file."""
        import pyarrow as pa
        from pyarrow import parquet

        contents = pa.DictionaryArray.from_arrays(pa.array(self.contents_of), pa.array(self.contents, pa.binary()))
        facts = orjson.dumps({"version": _VERSION, "size": self.size, "sha256": self.sha256})
        table = pa.table({"start": self.spans[:, 0], "end": self.spans[:, 1], "contents": contents})
        out = pa.BufferOutputStream()
        parquet.write_table(
            table.replace_schema_metadata({_METADATA: facts}),
            out,
            compression="zstd",
            use_dictionary=["contents"],
            column_encoding={"start": "DELTA_BINARY_PACKED", "end": "DELTA_BINARY_PACKED"},
            write_statistics=False,
        )
        return bytes(out.getvalue())


class IndexBuilder:
    """Collects the samples of a shard for its index."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._kinds: dict[bytes, int] = {}
        self._kind_of: list[int] = []

    def add(self, start: int, end: int, contents: SampleContents) -> None:
        """Add the next sample."""
        self._spans.append((start, end))
        self._kind_of.append(self._kinds.setdefault(contents.encode(), len(self._kinds)))

    def finish(self, size: int, sha256: str = "") -> ShardIndex:
        """Return the index of a tar of ``size`` bytes."""
        spans = np.array(self._spans, dtype=np.int64).reshape(-1, 2)
        return ShardIndex(spans, tuple(self._kinds), np.array(self._kind_of, dtype=np.int32), size, sha256)


def index_path(tar: Path) -> Path:
    """Return the path of the index of a shard."""
    return tar.with_name(tar.name + INDEX_SUFFIX)


def decode_index(data: bytes) -> ShardIndex | None:
    """Return the index in the bytes of an index file; None if they are none, or of another version."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # Neither a Python file nor threads: Arrow's threads may abort the interpreter's exit with them.
        table = parquet.ParquetFile(pa.BufferReader(data), read_dictionary=["contents"]).read(use_threads=False)
        facts = orjson.loads((table.schema.metadata or {}).get(_METADATA, b"{}"))
        if facts.get("version") != _VERSION:
            return None
        contents = table["contents"].combine_chunks()
        spans = np.stack([table["start"].to_numpy(), table["end"].to_numpy()], axis=1).astype(np.int64)
        kinds = tuple(contents.dictionary.to_pylist())
        return ShardIndex(
            spans, kinds, contents.indices.to_numpy().astype(np.int32), int(facts["size"]), str(facts["sha256"])
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def scan_samples(name: str | Path) -> ShardIndex:
    """Return the index of a shard (a path or a URL) by reading its headers and JSON members.

    Raises:
        StorageError: the shard is damaged, not an uncompressed tar, or not readable.
    """
    found = IndexBuilder()
    with _open_shard(name) as handle:
        size = handle.seek(0, io.SEEK_END)
        if not size:
            raise StorageError(f"{name}: empty file. Write the shard again.")
        for sample in _group(_members(handle, name)):
            last = sample[-1][1]
            extensions = [ext for ext, _ in sample]
            json = b""
            for ext, member in sample:
                if ext == "json":
                    handle.seek(member.offset)
                    json = handle.read(member.size)
            contents = describe_contents(extensions, json, twice=len(set(extensions)) < len(extensions))
            found.add(sample[0][1].start, last.offset + last.size + -last.size % BLOCK_SIZE, contents)
    return found.finish(size)


def list_contents(tar: Path) -> tuple[SampleContents, ...]:
    """Return the distinct contents of the samples of a shard, by its index, or else its headers; errors as `scan_samples`."""
    beside = index_path(tar)
    index = decode_index(beside.read_bytes()) if beside.is_file() else None
    return (index or scan_samples(tar)).kinds


def _open_shard(name: str | Path) -> BinaryIO:
    try:
        return open_file(name)
    except OSError as error:
        raise StorageError(f"{name}: not readable ({error.strerror}). Check the path.") from None


def split_member_name(name: str) -> tuple[str, str]:
    """Return key and lower-case extension of a member, as webdataset does; both empty for files that it ignores."""
    folder, slash, file = name.rpartition("/")
    base, dot, ext = file.partition(".")
    return (f"{folder}{slash}{base}", ext.lower()) if base and dot else ("", "")


def _group(members: Iterable[TarMember]) -> Iterator[list[tuple[str, TarMember]]]:
    """Yield the samples: adjacent members with one key, each with its extension."""
    key, sample = "", list[tuple[str, TarMember]]()
    for member in members:
        own, ext = split_member_name(member.name)
        if not own:
            continue
        if own != key and sample:
            yield sample
            sample = []
        key = own
        sample.append((ext, member))
    if sample:
        yield sample


def _members(handle: BinaryIO, name: str | Path) -> Iterator[TarMember]:
    try:
        for found in iter_open_tar(handle, name):
            if isinstance(found, TarMember):
                yield found
            elif found.reason in {"truncated_tar", "broken_tar"}:
                raise _damaged(name, found)
    except InputError as error:
        raise StorageError(f"{name}: damaged: {error.what}. Write the shard again.") from None


def _damaged(name: str | Path, found: Reject) -> StorageError:
    return StorageError(f"{name}: damaged: {found.detail}. Write the shard again.")
