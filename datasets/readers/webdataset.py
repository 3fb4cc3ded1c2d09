"""Reader of WebDataset shards, as img2dataset and pairwright write them.

Adjacent members that agree up to the first dot of their file name are one sample: an image, a ``.txt`` or ``.json`` or
both. A sample without an image is a text-only pair. The image's locator is ``/abs/shard.tar::member``. A table
``00000.parquet`` next to the tar lists downloads (`sample_files.py`).

Limits: uncompressed tars; see `datasets/tar_index.py`.
"""

from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pairwright.datasets.images.loading import MAX_IMAGE_BYTES
from pairwright.datasets.readers.input_rows import InputRowIterator
from pairwright.datasets.readers.sample_files import SampleFile, build_sample_row, iter_failed_downloads
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.tar_index import TarMember, iter_open_tar, keep_members, open_tar


def read_webdataset(path: Path) -> InputRowIterator:
    """Yield a row per sample of one shard; places are ``shard.tar::sample``."""
    keys: set[str] = set()
    table = path.with_suffix(".parquet")
    counted = table.is_file()
    for row in _samples(path):
        if counted:
            keys.add(row.place.partition(".tar::")[2])
        yield row
    if counted:
        yield from iter_failed_downloads(table, keys)


def _samples(path: Path) -> InputRowIterator:
    current, files = "", list[SampleFile]()
    members, stored = list[TarMember](), is_remote(path)
    with open_tar(path) as handle:
        for found in iter_open_tar(handle, path):
            if isinstance(found, Reject):
                yield found
                continue
            if stored:
                members.append(found)
            prefix, suffix = _split(found.name)
            if prefix != current:
                if files:
                    yield build_sample_row(f"{path}::{current}", current, files)
                current, files = prefix, []
            if any(file.suffix == suffix for file in files):
                yield make_reject(
                    f"{path}::{found.name}", "duplicate_member", f"a second {suffix} in the sample {prefix}"
                )
            else:
                files.append(_file(path, handle, found, suffix))
        if files:
            yield build_sample_row(f"{path}::{current}", current, files)
    keep_members(path, members)


def _split(name: str) -> tuple[str, str]:
    member = PurePosixPath(name)
    stem, dot, suffix = member.name.partition(".")
    return str(member.with_name(stem or member.name)), (dot + suffix).lower()


def _file(path: Path, handle: BinaryIO, member: TarMember, suffix: str) -> SampleFile:
    return SampleFile(suffix, f"{path.absolute()}::{member.name}", member.size, partial(_read, handle, member))


def _read(handle: BinaryIO, member: TarMember) -> bytes:
    handle.seek(member.offset)
    # One byte more than the limit, so that the image check rejects it.
    return handle.read(min(member.size, MAX_IMAGE_BYTES + 1))
