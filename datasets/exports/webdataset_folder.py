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
from pairwright.datasets.errors import UsageError
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
    read_shard,
    scan_shard,
    shard_name,
    write_shards,
)


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write the samples of ``source`` as shards into the folder ``out``."""
    shards = write_folder(source, out, options)
    return Exported(shards.count, files_of(shards))


def write_folder(source: Source, out: Path, options: ExportOptions) -> ShardSet:
    """Copy or write the shards of ``source`` into ``out`` and return them.

    Raises:
        UsageError: when ``out`` is the folder that the shards are read from.
        InputError: a key that stands twice, or mixed image formats.
    """
    if out.is_dir() and any(tar.parent.samefile(out) for tar in source.shards):
        raise UsageError(f"{out}: holds the shards that are read. Write to another folder.")
    if source.shards and options.recoding == AS_THEY_ARE and not (options.max_samples or options.max_bytes):
        seen: set[str] = set()
        copies = []
        for number, tar in enumerate(source.shards):
            copies.append(replace(scan_shard(tar, seen), name=shard_name(number)))
            with replacing(out / copies[-1].name) as temporary:
                shutil.copyfile(tar, temporary)
        return finish_shards(out, copies)
    samples = chain.from_iterable(map(read_shard, source.shards)) if source.shards else source.samples()
    recoded = (with_image(sample, options.recoding) for sample in without_repeats(samples))
    most = options.max_samples or MAX_SAMPLES, options.max_bytes or MAX_BYTES
    return write_shards(recoded, out, max_samples=most[0], max_bytes=most[1])


def files_of(shards: ShardSet) -> tuple[Path, ...]:
    """Return the files of a finished folder of shards: tars, sizes, check sums."""
    return (*(shards.folder / shard.name for shard in shards.shards), shards.folder / SIZES, shards.folder / SUMS)
