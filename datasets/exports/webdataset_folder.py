"""WebDataset: a folder of shards, ``sizes.json`` and check sums.

Shards that exist already are copied as they are, numbered anew, unless images or sizes of shards shall be others: then
their samples are written again. Without shards they are written from the records, with each image opened where its
pair says.
"""

import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pairwright.datasets.atomic import replacing
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.exports.source import Source, with_image, without_repeats
from pairwright.datasets.exports.writing import Exported, ExportOptions
from pairwright.datasets.recode import AS_THEY_ARE
from pairwright.datasets.shards import (
    MAX_BYTES,
    MAX_SAMPLES,
    SIZES,
    SUMS,
    ShardSet,
    finish_shards,
    numbered_shards,
    read_shard,
    read_sizes,
    scan_shard,
    shard_name,
    write_numbered,
)


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write the samples of ``source`` as shards into the folder ``out``."""
    shards = write_folder(source, out, options)
    return Exported(shards.count, files_of(shards))


def write_folder(source: Source, out: Path, options: ExportOptions) -> ShardSet:
    """Copy or write the shards of ``source`` into ``out`` and return them.

    Raises:
        UsageError: when ``out`` is the folder that the shards are read from.
        StorageError: when it holds shards that no export wrote; nothing is written then.
        InputError: a key that stands twice, or mixed image formats.
    """
    if out.is_dir() and any(tar.parent.samefile(out) for tar in source.shards):
        raise UsageError(f"{out}: holds the shards that are read. Write to another folder.")
    earlier = _earlier_export(out)
    if source.shards and options.recoding == AS_THEY_ARE and not (options.max_samples or options.max_bytes):
        seen: set[str] = set()
        copies = []
        for number, tar in enumerate(source.shards):
            copies.append(replace(scan_shard(tar, seen), name=shard_name(number)))
            with replacing(out / copies[-1].name) as temporary:
                shutil.copyfile(tar, temporary)
        _remove_rest(out, earlier, len(copies))
        return finish_shards(out, copies)
    samples = chain.from_iterable(map(read_shard, source.shards)) if source.shards else source.samples()
    recoded = (with_image(sample, options.recoding) for sample in without_repeats(samples))
    most = options.max_samples or MAX_SAMPLES, options.max_bytes or MAX_BYTES
    written = list(write_numbered(recoded, out, max_samples=most[0], max_bytes=most[1]))
    _remove_rest(out, earlier, len(written))
    return finish_shards(out, written)


def _earlier_export(out: Path) -> list[str]:
    """Return the names of the shards of an earlier export in a folder, which a new one replaces.

    Raises:
        StorageError: when there are others.
    """
    found = numbered_shards(out)
    listed = read_sizes(out / SIZES) or {}
    if others := [name for name in found if name not in listed]:
        raise StorageError(
            f"{out}: holds {others[0]}, which no export wrote ({SIZES} does not list it). Name a new folder."
        )
    return found


def _remove_rest(out: Path, earlier: list[str], written: int) -> None:
    """Remove shards of an earlier, larger export."""
    kept = {shard_name(number) for number in range(written)}
    for name in earlier:
        if name not in kept:
            (out / name).unlink()


def files_of(shards: ShardSet) -> tuple[Path, ...]:
    """Return the files of a finished folder of shards: tars, sizes, check sums."""
    return (*(shards.folder / shard.name for shard in shards.shards), shards.folder / SIZES, shards.folder / SUMS)
