"""WebDataset export: a folder of shards, ``sizes.json`` and checksums.

Existing shards are copied and renumbered, unless images are recoded or shard sizes set: then their samples are written
again. Without shards they are written from the records, with each image read by its locator.

Samples of one image, of two, ..., and those without get shards of their own, in this order: loaders take the members of
the first sample for those of every sample of a shard.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.images.loading import check_image
from pairwright.datasets.images.recoding import NO_RECODING
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.output import FinishFile, keep_file
from pairwright.datasets.shards.content_counts import count_contents
from pairwright.datasets.shards.index import SampleContents, index_path, list_contents
from pairwright.datasets.shards.layout import (
    CHECKSUMS_FILE,
    SIZES_FILE,
    ShardInfo,
    ShardSet,
    list_numbered_shards,
    read_sizes,
    shard_name,
    summarize_shards,
)
from pairwright.datasets.shards.reading import read_shard, scan_shard
from pairwright.datasets.shards.sample_source import SampleSource, drop_duplicates, load_image, open_sample_source
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import MAX_SHARD_BYTES, MAX_SHARD_SAMPLES, finish_shards, write_numbered_shards


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the samples of ``source`` as shards into the folder ``out``."""
    shards = write_shard_folder(source, out, options, options.finish)
    return ExportResult(shards.count, list_shard_files(shards))


def write_shard_folder(
    source: SampleSource, out: Path, options: ExportOptions, finish: FinishFile = keep_file
) -> ShardSet:
    """Copy or write the shards of ``source`` into ``out`` and return them; ``finish`` is called with each one.

    Raises:
        UsageError: if ``out`` is the folder of the source shards.
        StorageError: if it has shards that no export wrote; nothing is written then.
        InputError: a repeated key, or mixed image formats.
    """
    if out.is_dir() and any(tar.parent.samefile(out) for tar in source.shards if not is_remote(tar)):
        raise UsageError(f"{out}: has the shards to export. Write to another folder.")
    earlier = _earlier_export(out)
    try:
        return _write_folder(source, out, options, finish, earlier)
    except BaseException:  # else the next export would find shards that no export finished
        _remove_stale_shards(out, [name for name in list_numbered_shards(out) if name not in earlier], 0)
        raise


def _write_folder(
    source: SampleSource, out: Path, options: ExportOptions, finish: FinishFile, earlier: list[str]
) -> ShardSet:
    rewritten = options.recoding != NO_RECODING or options.max_samples or options.max_bytes
    contents = [] if rewritten else list(map(list_contents, source.shards))
    if contents and not any(map(_is_mixed, contents)):
        seen: set[str] = set()
        copies = []
        for number, tar in enumerate(_texts_last(source.shards, contents)):
            found, index = scan_shard(tar, seen)
            copies.append(replace(found, name=shard_name(number)))
            with (
                replace_atomically(out / copies[-1].name) as temporary,
                tar.open("rb") as original,
                temporary.open("wb") as copy,
            ):
                shutil.copyfileobj(original, copy)
            write_bytes(index_path(out / copies[-1].name), index.encode())
            finish(out / copies[-1].name, _describing(copies[-1]))
        _remove_stale_shards(out, earlier, len(copies))
        return finish_shards(out, copies, kept=finish is keep_file, texts_last=True)
    samples = (lambda: chain.from_iterable(map(read_shard, source.shards))) if source.shards else source.samples
    recoded = _load_images(drop_duplicates(_by_number_of_images(samples)), options)
    most = options.max_samples or MAX_SHARD_SAMPLES, options.max_bytes or MAX_SHARD_BYTES
    written = []
    for shard in write_numbered_shards(recoded, out, max_samples=most[0], max_bytes=most[1], texts_last=True):
        written.append(shard)
        finish(out / shard.name, _describing(shard))
    _remove_stale_shards(out, earlier, len(written))
    return finish_shards(out, written, kept=finish is keep_file, texts_last=True)


def _by_number_of_images(samples: Callable[[], Iterator[Sample]]) -> Iterator[Sample]:
    """Yield the samples of one image, of two, and so on, then those without; each group takes another pass."""
    numbers = set[int]()
    for sample in samples():
        numbers.add(len(sample.images))
        if len(sample.images) == 1:
            yield sample
    for number in (*sorted(numbers - {0, 1}), *({0} & numbers)):
        yield from (sample for sample in samples() if len(sample.images) == number)


def _load_images(samples: Iterable[Sample], options: ExportOptions) -> Iterator[Sample]:
    for sample in samples:
        with options.skip_unusable_images():
            loaded = load_image(sample, options.recoding)
            for image in loaded.images:
                check_image(image.data or b"", where=image.locator)  # bytes that need no change are not decoded
            yield loaded


def _is_mixed(contents: Sequence[SampleContents]) -> bool:
    """Return whether the samples of a shard have different members."""
    return len({(each.image, each.further_images) for each in contents}) > 1


def _texts_last(shards: Sequence[Path], contents: Sequence[Sequence[SampleContents]]) -> list[Path]:
    """Return shards with those of samples without an image at the end, else in order."""
    texts = [tar for tar, each in zip(shards, contents, strict=True) if each and not each[0].image]
    return [*(tar for tar in shards if tar not in texts), *texts]


def _describing(shard: ShardInfo) -> tuple[str, ...]:
    """Return the names of the metadata of a shard."""
    return SIZES_FILE, CHECKSUMS_FILE, index_path(Path(shard.name)).name


def describe_export(source: SampleSource, shards: ShardSet, name: str) -> dict[str, Any]:
    """Return the manifest of the shards that were written of a source; ``name`` is for a source without one."""
    contents = count_contents(source.samples())
    if contents["samples"] != shards.count:  # some were skipped
        contents = count_contents(open_sample_source(shards.folder).samples() if shards.count else ())
    shown = summarize_shards(shards) | {"folder": shards.folder.name}
    return {"name": name, **source.manifest, "contents": contents, "shards": shown}


def _earlier_export(out: Path) -> list[str]:
    """Return the names of the shards of an earlier export in a folder, which a new one replaces.

    Raises:
        StorageError: if there are other shards.
    """
    found = list_numbered_shards(out)
    listed = read_sizes(out / SIZES_FILE) or {}
    if others := [name for name in found if name not in listed]:
        raise StorageError(
            f"{out}: contains {others[0]}, which no export wrote ({SIZES_FILE} does not list it). Choose a new folder."
        )
    return found


def _remove_stale_shards(out: Path, earlier: list[str], written: int) -> None:
    """Remove shards of an earlier, larger export."""
    kept = {shard_name(number) for number in range(written)}
    for name in earlier:
        if name not in kept:
            (out / name).unlink()
            index_path(out / name).unlink(missing_ok=True)


def list_shard_files(shards: ShardSet) -> tuple[Path, ...]:
    """Return the files of a finished folder of shards: tars, their indexes, sizes, checksums."""
    tars = [shards.folder / shard.name for shard in shards.shards]
    return (
        *tars,
        *map(index_path, tars),
        shards.folder / SIZES_FILE,
        shards.folder / CHECKSUMS_FILE,
    )
