"""Reader of WebDataset shards, as img2dataset and pairwright write them.

Adjacent members that agree up to the first dot of their file name are one sample: an image, a ``.txt`` or ``.json`` or
both. A sample without an image is a text-only pair. The image's locator is ``/abs/shard.tar::member``. A table
``00000.parquet`` next to the tar lists downloads (`sample_files.py`).

Limits: uncompressed tars; see `datasets/tar_index.py`.
"""

from collections.abc import Iterator
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
    current, files, repeats = "", list[SampleFile](), list[tuple[str, str]]()
    members, stored = list[TarMember](), is_remote(path)
    with open_tar(path) as handle:
        for found in iter_open_tar(handle, path):
            if isinstance(found, Reject):
                yield found
                continue
            if stored:
                members.append(found)
            if found.name.startswith("._") or "/._" in found.name:  # which macOS adds before each file; no sample
                continue
            prefix, suffix = _split(found.name)
            if prefix != current:
                yield from _reject_repeats(path, current, repeats)
                if files:
                    yield build_sample_row(f"{path}::{current}", current, files)
                current, files, repeats = prefix, [], []
            if any(file.suffix == suffix for file in files):
                repeats.append((found.name, suffix))
            else:
                files.append(_file(path, handle, found, suffix))
        yield from _reject_repeats(path, current, repeats)
        if files:
            yield build_sample_row(f"{path}::{current}", current, files)
    keep_members(path, members)


def _reject_repeats(path: Path, key: str, repeats: list[tuple[str, str]]) -> Iterator[Reject]:
    """Yield a reject per further sample of the same key: ``repeats`` are the names and suffixes of their members."""
    suffixes = dict[str, str]()
    for name, suffix in [*repeats, ("", "")]:
        if suffixes and (suffix in suffixes or not suffix):
            second = ", ".join(suffixes)
            place = f"{path}::{next(iter(suffixes.values()))}"
            yield make_reject(place, "duplicate_member", f"a second {second} in the sample {key}")
            suffixes.clear()
        suffixes[suffix] = name


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
