"""WebDataset: a folder of shards, ``sizes.json`` and check sums.

Shards that exist already are copied as they are, unless images shall be recoded; else they are written from the
records, with each image opened where its pair says.
"""

import shutil
from pathlib import Path

from pairwright.datasets.atomic import replacing
from pairwright.datasets.exports.source import Source, with_image
from pairwright.datasets.exports.writing import Exported, ExportOptions
from pairwright.datasets.recode import AS_THEY_ARE
from pairwright.datasets.shards import SIZES, SUMS, ShardSet, finish_shards, scan_shard, shard_name, write_shards


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write the samples of ``source`` as shards into the folder ``out``."""
    shards = write_folder(source, out, options)
    return Exported(shards.count, files_of(shards))


def write_folder(source: Source, out: Path, options: ExportOptions) -> ShardSet:
    """Copy or write the shards of ``source`` into ``out`` and return them."""
    if source.shards and options.recoding == AS_THEY_ARE:
        copies = [out / shard_name(number) for number in range(len(source.shards))]
        for tar, copy in zip(source.shards, copies, strict=True):
            with replacing(copy) as temporary:
                shutil.copyfile(tar, temporary)
        return finish_shards(out, [scan_shard(copy) for copy in copies])
    return write_shards((with_image(sample, options.recoding) for sample in source.samples()), out)


def files_of(shards: ShardSet) -> tuple[Path, ...]:
    """Return the files of a finished folder of shards: tars, sizes, check sums."""
    return (*(shards.folder / shard.name for shard in shards.shards), shards.folder / SIZES, shards.folder / SUMS)
