"""Shards in the WebDataset layout: writing, finishing, finding and reading them.

A dataset is a folder of ``00000.tar``, ``00001.tar`` ... without gaps, each with an index (`index.py`), with ``sizes.json``
(tar to number of samples, for OpenCLIP-style loaders) and ``SHA256SUMS`` (for ``sha256sum -c``). Trainers take brace notation,
``{00000..00009}.tar``. Equal samples in equal order give equal bytes; a shard is written atomically.

A dataset has one image extension, or no images: loaders take the members of the first sample for those of every sample.
Contents of a sample: `samples.py`; the tar format: `ustar.py`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes, write_text
from pairwright.datasets.build_manifest import stored_shards
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.images.loading import select_image_extensions
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import StoreListings
from pairwright.datasets.shards.index import IndexBuilder, SampleContents, ShardIndex, describe_contents, index_path
from pairwright.datasets.shards.samples import Sample, decode_members, describe_bad_key, encode_members, group_members
from pairwright.datasets.shards.ustar import BLOCK_SIZE, END_MARKER, Readable, encode_member, iter_members
from pairwright.datasets.version_switch import complete_pending_switch

SIZES_FILE = "sizes.json"
CHECKSUMS_FILE = "SHA256SUMS"
MAX_SHARD_SAMPLES = 10_000
MAX_SHARD_BYTES = 512 * 2**20

DUPLICATE_KEY_FIX = "The same pair occurs twice: remove one of the inputs, or one of the samples."

_NUMBERED = re.compile(r"\d{5}\.tar")
_BRACES = re.compile(r"(?P<head>.*)\{(?P<first>\d+)\.\.(?P<last>\d+)\}(?P<tail>.*)")
_BUFFER = 2**20


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """Metadata of a written shard.

    Attributes:
        name: file name.
        count: number of samples.
        bytes: file size.
        sha256: of the file, in hex.
        image_ext: of its images; empty for text-only or no samples.
    """

    name: str
    count: int
    bytes: int
    sha256: str
    image_ext: str


@dataclass(frozen=True, slots=True)
class ShardSet:
    """A finished folder of shards.

    Attributes:
        folder: their folder.
        shards: in order.
        pattern: their brace notation with the folder; empty if there are no shards.
    """

    folder: Path
    shards: tuple[ShardInfo, ...]
    pattern: str

    @property
    def count(self) -> int:
        """Return the total number of samples."""
        return sum(shard.count for shard in self.shards)


@dataclass(frozen=True, slots=True)
class _PackedSample:
    key: str
    image_ext: str
    chunks: tuple[bytes, ...]
    contents: SampleContents


def shard_name(number: int) -> str:
    """Return the file name of shard ``number``, from 0."""
    if not 0 <= number <= 99_999:
        raise UsageError(f"shard number {number} has more than five digits. Make shards larger.")
    return f"{number:05d}.tar"


def write_shard(samples: Iterable[Sample], path: Path) -> ShardInfo:
    """Write one shard and its index (`index.py`), each atomically.

    Args:
        samples: in order; unique keys, one image extension (or no images).
        path: of the tar; a name by `shard_name` in a folder that is finished later.

    Raises:
        InputError: mixed image formats, a repeated key, a text that is not UTF-8.
    """
    return _write(map(_pack_sample, samples), path)


def write_shards(
    samples: Iterable[Sample], folder: Path, *, max_samples: int = MAX_SHARD_SAMPLES, max_bytes: int = MAX_SHARD_BYTES
) -> ShardSet:
    """Write samples as numbered shards and finish the folder; arguments and errors as in `write_numbered_shards`."""
    return finish_shards(
        folder, list(write_numbered_shards(samples, folder, max_samples=max_samples, max_bytes=max_bytes))
    )


def write_numbered_shards(
    samples: Iterable[Sample],
    folder: Path,
    *,
    max_samples: int = MAX_SHARD_SAMPLES,
    max_bytes: int = MAX_SHARD_BYTES,
    texts_last: bool = False,
) -> Iterator[ShardInfo]:
    """Write samples as numbered shards, one per iteration; errors as in `write_shard`.

    A shard ends before the sample that would make it larger than ``max_samples`` or ``max_bytes``; with ``texts_last`` also
    before the first sample without an image, as such samples follow all others.
    """
    if max_samples < 1 or max_bytes < 1:
        raise UsageError("max_samples and max_bytes must be at least 1.")
    batches = _batch_samples(map(_pack_sample, samples), max_samples, max_bytes, texts_last=texts_last)
    for number, batch in enumerate(batches):
        yield _write(batch, folder / shard_name(number))


def list_numbered_shards(folder: Path) -> list[str]:
    """Return the names of a folder's ``00000.tar`` ..., in order."""
    return sorted(path.name for path in folder.glob("*.tar") if _NUMBERED.fullmatch(path.name))


def read_sizes(path: Path) -> dict[str, int] | None:
    """Return the contents of a ``sizes.json``: samples by shard; None if it cannot be read."""
    try:
        return decode_sizes(path.read_bytes())
    except (OSError, StorageError):  # StorageError: of a store
        return None


def decode_sizes(content: bytes) -> dict[str, int] | None:
    """Return the contents of a ``sizes.json``, as `read_sizes`."""
    try:
        sizes = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return sizes if isinstance(sizes, dict) else None


def _pack_sample(sample: Sample) -> _PackedSample:
    if (sample.image is None) != (sample.image_ext == ""):
        raise UsageError(f"sample {sample.pair.key}: image bytes and image_ext go together.")
    key = sample.pair.key
    if describe_bad_key(key, key):
        raise UsageError(f"{describe_bad_key(key, key)}; pair_key makes such keys.")
    members = dict(encode_members(sample))
    chunks = [chunk for ext, data in members.items() for chunk in encode_member(f"{key}.{ext}", data)]
    return _PackedSample(key, sample.image_ext, tuple(chunks), describe_contents(members, members["json"]))


def _batch_samples(
    packed: Iterable[_PackedSample], max_samples: int, max_bytes: int, *, texts_last: bool
) -> Iterator[Iterator[_PackedSample]]:
    source = iter(packed)
    pending = next(source, None)

    def batch() -> Iterator[_PackedSample]:
        nonlocal pending
        count, size, image_ext = 0, 0, ""
        while pending is not None:
            size += sum(map(len, pending.chunks))
            texts_begin = texts_last and image_ext and not pending.image_ext
            if count and (count >= max_samples or size > max_bytes or texts_begin):
                return
            image_ext = pending.image_ext
            yield pending
            count += 1
            pending = next(source, None)

    while pending is not None:
        yield batch()


def _write(packed: Iterable[_PackedSample], path: Path) -> ShardInfo:
    hasher, size = hashlib.sha256(), 0
    keys: set[str] = set()
    image_ext, index = "", IndexBuilder()
    with replace_atomically(path) as temporary, temporary.open("wb", buffering=_BUFFER) as handle:
        for sample in packed:
            image_ext = _check_packed_sample(sample, image_ext, keys, path)
            block = b"".join(sample.chunks)
            hasher.update(block)
            index.add(size, size + len(block), sample.contents)
            size += handle.write(block)
        hasher.update(END_MARKER)
        size += handle.write(END_MARKER)
    write_bytes(index_path(path), index.finish(size, hasher.hexdigest()).encode())
    return ShardInfo(path.name, len(keys), size, hasher.hexdigest(), image_ext)


def _check_packed_sample(sample: _PackedSample, image_ext: str, keys: set[str], path: Path) -> str:
    if keys and sample.image_ext != image_ext:
        raise _mixed_formats_error(image_ext, sample.image_ext, f"{path.name}, sample {sample.key}")
    if sample.key in keys:
        raise InputError("a repeated key", where=f"{path.name}, sample {sample.key}", fix="Remove one.")
    keys.add(sample.key)
    return sample.image_ext


def _mixed_formats_error(one: str, other: str, where: str) -> InputError:
    return InputError(
        f"{one or 'no image'} and {other or 'no image'} in one dataset",
        where=where,
        fix="Set image_format to one of jpg, png, webp."
        if one and other
        else "Remove the pairs without an image, or pack texts only (in a build, images: false under shards).",
    )


def finish_shards(
    folder: Path, written: Sequence[ShardInfo] | None = None, *, kept: bool = True, texts_last: bool = False
) -> ShardSet:
    """Write ``sizes.json`` and ``SHA256SUMS`` of a folder of shards.

    Args:
        folder: with ``00000.tar`` ... in it.
        written: results of `write_shard`, to save reading the shards again; None reads them.
        kept: whether the shards are still in the folder; False if they were sent elsewhere.
        texts_last: whether shards of samples without an image may follow the others.

    Raises:
        StorageError: a gap in the numbers, or a shard in the folder that ``written`` does not list.
        InputError: shards with differing image extensions.
    """
    found = list_numbered_shards(folder) if kept or written is None else [shard.name for shard in written]
    if written is None:
        written = [scan_shard(folder / name)[0] for name in found]
    shards = _write_side_files(folder, written, found, texts_last=texts_last)
    return ShardSet(folder, shards, format_brace_pattern(folder, len(shards)))


def _write_side_files(
    folder: Path, written: Sequence[ShardInfo], found: list[str], *, texts_last: bool = False
) -> tuple[ShardInfo, ...]:
    shards = tuple(sorted(written, key=lambda shard: shard.name))
    _check_names(folder, found, [shard.name for shard in shards])
    filled = [shard for shard in shards if shard.count]  # an empty shard has no extension
    for shard in filled:
        if shard.image_ext != filled[0].image_ext and not (texts_last and not shard.image_ext):
            raise _mixed_formats_error(
                filled[0].image_ext, shard.image_ext, f"{folder}: {filled[0].name} and {shard.name}"
            )
    write_text(folder / CHECKSUMS_FILE, "".join(f"{shard.sha256}  {shard.name}\n" for shard in shards))
    sizes = {shard.name: shard.count for shard in shards}
    write_bytes(folder / SIZES_FILE, orjson.dumps(sizes, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return shards


def append_shards(
    folder: Path, before: Sequence[ShardInfo], new: Sequence[ShardInfo], *, kept: bool = True
) -> ShardSet:
    """Write ``sizes.json`` and ``SHA256SUMS`` for finished shards and new ones that follow them.

    Args:
        folder: with the new shards, numbered after the others; both files are written here.
        before: the finished shards, which are not read again.
        new: results of `write_shard` for the new shards.
        kept: as in `finish_shards`, of the new shards.

    Raises:
        StorageError: a gap in the numbers, or a shard in the folder that ``new`` does not list.
        InputError: new shards with another image extension.
    """
    found = list_numbered_shards(folder) if kept else [shard.name for shard in new]
    shards = _write_side_files(folder, [*before, *new], sorted([*(shard.name for shard in before), *found]))
    return ShardSet(folder, shards, format_brace_pattern(folder, len(shards)))


def _check_names(folder: Path, found: list[str], named: list[str]) -> None:
    if found != named:
        odd = sorted(set(found) ^ set(named))
        raise StorageError(
            f"{folder}: {', '.join(odd)} left over from another run, or missing. Delete the folder and rebuild."
        )
    if named != [shard_name(number) for number in range(len(named))]:
        raise StorageError(f"{folder}: the shards are not numbered from 00000 without gaps. Write them again.")


def format_brace_pattern(folder: Path, shards: int) -> str:
    """Return the brace notation of all shards of a folder: ``folder/{00000..00009}.tar``."""
    if shards == 0:
        return ""
    if shards == 1:
        return str(folder / shard_name(0))
    return str(folder / f"{{{0:05d}..{shards - 1:05d}}}.tar")


def describe_shard_shortage(shards: int, samples: int, readers: int) -> str:
    """Return why there are too few shards for loaders that give each reader whole ones; empty if there are enough.

    Args:
        shards: number of shards.
        samples: number of samples in them.
        readers: workers x ranks of the training run; each takes a share of the shards, and one without a shard fails
            (OpenCLIP) or reads nothing (webdataset).
    """
    if shards >= readers:
        return ""
    problem = (
        f"{shards:,} shards for {readers:,} readers (workers x ranks): loaders that share out whole shards, such as "
    )
    each = samples // readers
    fix = (
        f"Write them again with at most {each:,} samples each"
        if each
        else "There are fewer samples than readers: use fewer"
    )
    return f"{problem}webdataset and OpenCLIP, leave some without data. {fix}."


def summarize_shards(shards: ShardSet) -> dict[str, str | int]:
    """Return a manifest's entry for a finished folder; ``folder`` and ``pattern`` are names without their parent path."""
    return {
        "folder": shards.folder.name,
        "pattern": Path(shards.pattern).name,
        "files": len(shards.shards),
        "samples": shards.count,
        "bytes": sum(shard.bytes for shard in shards.shards),
        "image_ext": next((shard.image_ext for shard in shards.shards if shard.count), ""),
    }


def locate_shards(dataset: Path) -> Path:
    """Return the folder with the tars of a dataset: ``shards`` of a build, ``data`` of an export, else the path itself."""
    shards = dataset / "shards"
    found = (folder for folder in (shards, dataset / "data", dataset) if any(folder.glob("*.tar")))
    return next(found, shards if shards.is_dir() else dataset)


def find_shards(source: Path, *, whole: bool = True) -> list[Path]:
    """Return the tars that a folder, a tar or a brace pattern names, in order.

    Args:
        source: folder, tar or pattern.
        whole: require all shards that the folder's sizes list.

    Raises:
        InputError: if there are none, or one of them is missing.
    """
    if not is_remote(source):  # of a build whose version is being replaced
        complete_pending_switch((source if source.is_dir() else source.parent).parent)
    braces = _BRACES.fullmatch(str(source))
    if braces:
        width = len(braces["first"])
        numbers = range(int(braces["first"]), int(braces["last"]) + 1)
        listings = StoreListings()
        tars = [listings.path(f"{braces['head']}{number:0{width}d}{braces['tail']}") for number in numbers]
    else:
        tars = sorted(source.glob("*.tar")) if source.is_dir() else [source]
    missing = [tar for tar in tars if not tar.is_file()]
    own = stored_shards(source) if not tars else ""
    if own or (not tars and (source / "shards").is_dir()):
        raise InputError("no .tar in it", where=str(source), fix=f"Give its shards: {own or source / 'shards'}.")
    if not tars:
        raise _no_shards_error(source, "no .tar in it")
    if whole and source.is_dir():
        _require_listed_shards(source, {tar.name for tar in tars})
    if missing:
        several = f"{len(missing)} of {len(tars)} shards missing, first {missing[0]}"
        raise _no_shards_error(source, several if braces else "no such file")
    if not (source.is_dir() or braces or source.suffix == ".tar"):
        raise _no_shards_error(source, "not a .tar")
    return tars


def _require_listed_shards(folder: Path, found: set[str]) -> None:
    """Require the shards that a folder's sizes list; without them, the rest would look complete."""
    sizes = read_sizes(folder / SIZES_FILE) or {}  # without, the number is unknown; `verify` reports broken files
    gone = sorted(set(sizes) - found)
    if gone:
        raise InputError(
            f"{len(gone)} of {len(sizes)} shards that {SIZES_FILE} lists are missing, first {gone[0]}",
            where=str(folder),
            fix=f"Copy them again. To read only the others, name them: {folder / '{00000..00009}.tar'}.",
        )


def _no_shards_error(source: Path, what: str) -> InputError:
    return InputError(what, where=str(source), fix="Give a folder of shards, a .tar, or {00000..00009}.tar.")


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


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
