"""Writing of shards (`layout.py`): numbered tars with their indexes, then the side files of the folder.

Equal samples in equal order give equal bytes; a shard is written atomically. A dataset has one image extension, or no
images: loaders take the members of the first sample for those of every sample. So samples of two images, of three, ... and
with ``texts_last`` those without an image, get shards of their own.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes, write_text
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.shards.index import IndexBuilder, SampleContents, describe_contents, index_path
from pairwright.datasets.shards.layout import (
    CHECKSUMS_FILE,
    SIZES_FILE,
    ShardInfo,
    ShardSet,
    format_brace_pattern,
    list_numbered_shards,
    shard_name,
)
from pairwright.datasets.shards.reading import scan_shard
from pairwright.datasets.shards.samples import Sample, describe_bad_key, encode_members
from pairwright.datasets.shards.ustar import END_MARKER, encode_member

MAX_SHARD_SAMPLES = 10_000
MAX_SHARD_BYTES = 512 * 2**20

_BUFFER = 2**20


@dataclass(frozen=True, slots=True)
class _PackedSample:
    key: str
    image_ext: str
    further_images: int
    chunks: tuple[bytes, ...]
    contents: SampleContents


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

    A shard ends before the sample that would make it larger than ``max_samples`` or ``max_bytes``, and where the
    number of images of a sample changes from one to several, or among these; with ``texts_last`` also before the first sample without an image, as such samples follow
    all others.
    """
    if max_samples < 1 or max_bytes < 1:
        raise UsageError("max_samples and max_bytes must be at least 1.")
    batches = _batch_samples(map(_pack_sample, samples), max_samples, max_bytes, texts_last=texts_last)
    for number, batch in enumerate(batches):
        yield _write(batch, folder / shard_name(number))


def _pack_sample(sample: Sample) -> _PackedSample:
    for further in sample.further_images:
        if sample.image is None or further.data is None:
            raise UsageError(f"sample {sample.pair.key}: the bytes of all its images go together.")
        if further.ext != sample.image_ext:
            raise _mixed_formats_error(sample.image_ext, further.ext, f"sample {sample.pair.key}")
    if (sample.image is None) != (sample.image_ext == ""):
        raise UsageError(f"sample {sample.pair.key}: image bytes and image_ext go together.")
    key = sample.pair.key
    if describe_bad_key(key, key):
        raise UsageError(f"{describe_bad_key(key, key)}; pair_key makes such keys.")
    members = dict(encode_members(sample))
    chunks = [chunk for ext, data in members.items() for chunk in encode_member(f"{key}.{ext}", data)]
    contents = describe_contents(members, members["json"])
    return _PackedSample(key, sample.image_ext, len(sample.further_images), tuple(chunks), contents)


def _batch_samples(
    packed: Iterable[_PackedSample], max_samples: int, max_bytes: int, *, texts_last: bool
) -> Iterator[Iterator[_PackedSample]]:
    source = iter(packed)
    pending = next(source, None)

    def batch() -> Iterator[_PackedSample]:
        nonlocal pending
        count, size, image_ext, further = 0, 0, "", 0
        while pending is not None:
            size += sum(map(len, pending.chunks))
            texts_begin = texts_last and image_ext and not pending.image_ext
            other_members = texts_begin or further != pending.further_images
            if count and (count >= max_samples or size > max_bytes or other_members):
                return
            image_ext, further = pending.image_ext, pending.further_images
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
        fix="Recode them: --image-format jpg, png or webp (in a config, image_format under shards)."
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
