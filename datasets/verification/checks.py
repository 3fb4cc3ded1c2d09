"""Verification of shards, build directories and LLaVA JSON files: lists of problems.

For a build directory, every file of the manifest is checked for presence, size and SHA-256. For shards: the checksums and
sizes next to the tars, that each tar is complete plain USTAR, that every sample has the same members, that its JSON
matches the schema and agrees with file name and caption, that keys are unique over the dataset, that images decode, and
that no text has the ``<image>`` token which trainers insert themselves, except as the places of several images. For a LLaVA JSON file: `llava_json.check_llava`.

Everything is read and hashed once and every image decoded; memory grows by one short string per sample. An unfinished
build is a single problem; so is a version that was replaced while it was checked. `dataset_kinds.py` identifies paths.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.build_manifest import is_build, read_manifest, shard_paths, stored_shards
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import InputError, PairwrightError, StorageError, UsageError
from pairwright.datasets.image_marks import count_marks
from pairwright.datasets.images.loading import select_further_images, select_image_extensions
from pairwright.datasets.images.recoding import decode_oriented_image, detect_extension
from pairwright.datasets.progress import track
from pairwright.datasets.records import IMAGE_TOKEN
from pairwright.datasets.remote.store_folder import StoreFolder
from pairwright.datasets.shards.index import ShardIndex, decode_index, index_path
from pairwright.datasets.shards.layout import (
    CHECKSUMS_FILE,
    SIZES_FILE,
    describe_shard_shortage,
    find_shards,
    read_sizes,
    shard_name,
    shards_folder,
)
from pairwright.datasets.shards.reading import ShardScan
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, find_schema_mismatch
from pairwright.datasets.shards.samples import describe_bad_key
from pairwright.datasets.verification.build_files import find_changed_files
from pairwright.datasets.verification.llava_json import check_llava
from pairwright.datasets.version_switch import MANIFEST_FILE

MAX_PROBLEMS = 1_000


def verify(path: Path, images: Path | None = None) -> list[str]:
    """Return the problems of a build directory, shards or a LLaVA JSON file, at most `MAX_PROBLEMS` lines.

    Args:
        path: a build directory, a folder of shards, one tar, or a brace pattern; or a folder with such a folder named
            ``shards`` or ``data``, as exports are; or a ``.json`` in LLaVA's layout.
        images: folder of a LLaVA file's images; None skips them.

    Raises:
        InputError: if there is neither a build nor a shard.
        StorageError: if a ``.json`` is not a JSON list.
        UsageError: ``images`` are given for anything but a ``.json``.
    """
    if path.suffix.lower() == ".json":
        return check_llava(path, images)[:MAX_PROBLEMS]
    if images is not None:
        raise UsageError(f"{path}: --images requires a .json in LLaVA's layout. Omit it.")
    digests = _Digests()
    folder = _folder_of_shards(path)
    if not is_build(path):
        return list(islice(_check_shards(folder, find_shards(folder, whole=False), digests), MAX_PROBLEMS))
    before = _file_stamp(path)
    problems = list(islice(_check_build(path, folder, digests), MAX_PROBLEMS))
    if problems and before != _file_stamp(path):
        return [f"{path}: a new version replaced this one while it was checked. Check it again."]
    return problems


def _file_stamp(path: Path) -> bytes:
    try:
        return (path / MANIFEST_FILE).read_bytes()
    except OSError:
        return b""


def check_shard_count(path: Path, readers: int) -> str:
    """Return why the shards are too few for a loader that gives each reader whole ones; empty if they are enough.

    Args:
        path: a build directory, a folder of shards, a tar or a brace pattern.
        readers: workers x ranks.
    """
    folder = _folder_of_shards(path)
    try:
        tars = _tars(path, folder)
    except InputError:
        return ""  # `verify` reports it
    sizes = read_sizes((folder if folder.is_dir() else folder.parent) / SIZES_FILE) or {}
    return describe_shard_shortage(len(tars), sum(sizes.get(tar.name, 0) for tar in tars), readers)


def _folder_of_shards(path: Path) -> Path:
    """Return the folder of the shards of a build or a published version, on disk or in a store; else the path itself."""
    if is_build(path) and (url := stored_shards(path)):
        return StoreFolder.list(url)
    return shards_folder(path)


def _tars(path: Path, folder: Path) -> list[Path]:
    """Return the tars that are there; in a store those of the manifest of the build ``path``."""
    if is_build(path) and stored_shards(path):
        return shard_paths(path, read_manifest(path)["files"])
    return find_shards(folder, whole=False)


class _Digests:
    """SHA-256 of files in hex: shards are hashed while they are checked, and the manifest and SHA256SUMS both list them."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def add(self, path: Path, digest: str) -> None:
        """Note the hash of a file that was read."""
        self._known[path] = digest

    def of(self, path: Path) -> str:
        """Return the hash of a file."""
        if path not in self._known:
            self.add(path, hash_file(path))
        return self._known[path]


def _check_build(path: Path, folder: Path, digests: _Digests) -> Iterator[str]:
    try:
        read_manifest(path)
        tars = _tars(path, folder)
        of_shards = list(islice(_check_shards(folder, tars, digests), MAX_PROBLEMS))
    except InputError as error:
        of_shards = [str(error)]
    except StorageError as error:
        yield str(error)
        return
    yield from find_changed_files(path, digests.of)
    yield from of_shards


def _check_shards(folder: Path, tars: list[Path], digests: _Digests) -> Iterator[str]:
    seen: dict[str, str] = {}
    counts: dict[str, int] = {}
    kinds: dict[tuple[str, ...], str] = {}
    mixed = False
    sizes = (read_sizes(folder / SIZES_FILE) if folder.is_dir() else None) or {}
    for tar in track(tars, "verifying", unit="shards"):
        scan = ShardScan(tar)
        own = set[tuple[str, ...]]()
        try:
            for key, members in track(scan, tar.name, sizes.get(tar.name), "samples"):
                place = f"{tar.name}, sample {key}"
                if key in seen:
                    yield f"{place}: the key is also in {seen[key]}"
                seen[key] = tar.name
                counts[tar.name] = counts.get(tar.name, 0) + 1
                kind = tuple(sorted(members))
                kinds.setdefault(kind, place)
                own.add(kind)
                yield from (f"{place}: {problem}" for problem in _check_sample(key, members))
            digests.add(tar, scan.index.sha256)
            yield from _check_index(tar, scan.index)
        except PairwrightError as error:
            yield str(error)
        mixed |= len(own) > 1
    # Text-only conversations of a mixture, those of two images, of three, ..., have shards of their own.
    alike = {frozenset(kind) - set(select_further_images(kind)) for kind in kinds}
    if mixed or len(alike - {frozenset({"txt", "json"})}) > 1:
        found = [f"{'+'.join(kind)} (first in {place})" for kind, place in kinds.items()]
        yield "samples differ in their members: " + "; ".join(found)
    if folder.is_dir():
        yield from _check_side_files(folder, tars, counts, digests)


def _check_index(tar: Path, scanned: ShardIndex) -> Iterator[str]:
    path = index_path(tar)
    if not path.is_file():  # optional
        return
    written = decode_index(path.read_bytes())
    if written is None or written.samples() != scanned.samples() or written.sha256 != scanned.sha256:
        yield f"{path.name} does not describe {tar.name}: delete it, or write the shard again"


def _check_sample(key: str, members: dict[str, bytes]) -> Iterator[str]:
    images, further = select_image_extensions(members), select_further_images(members)
    for ext in (*images, *further):
        yield from _check_image(ext.rpartition(".")[2], members[ext], f"{key}.{ext}")
    if len(images) > 1 or members.keys() != {"txt", "json", *images, *further}:
        yield f"holds {', '.join(members)} instead of txt, json and at most one image"
        return
    if further and further != [f"{number}.{ext}" for ext in images for number in range(1, len(further) + 1)]:
        yield f"its images are {', '.join([*images, *further])} instead of EXT, 1.EXT, 2.EXT and so on"
    try:
        body, caption = orjson.loads(members["json"]), members["txt"].decode()
    except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
        yield f"its text is not valid ({error})"
        return
    fault = find_schema_mismatch(body, SAMPLE_SCHEMA)
    if fault:
        yield f"its JSON does not match the schema: {fault}"
    elif describe_bad_key(key, body["key"]):
        yield describe_bad_key(key, body["key"])
    elif body["caption"] != caption:
        yield "its JSON has another caption than its txt"
    if further and not fault:
        yield from _check_places(body["conversations"], 1 + len(further))
    elif IMAGE_TOKEN.encode() in members["json"]:
        yield f"a text has {IMAGE_TOKEN}, which a trainer would read as an image"


def _check_places(conversations: list[dict[str, Any]], images: int) -> Iterator[str]:
    """Yield the conversations whose questions do not have a mark for each of several images."""
    for number, conversation in enumerate(conversations):
        marks = [count_marks([turn["text"]]) for turn in conversation["turns"]]
        if sum(marks) != images or any(marks[1::2]):
            yield f"{IMAGE_TOKEN} occurs {marks} times in the turns of its conversation {number}, for {images} images"


def _check_image(ext: str, data: bytes, name: str) -> Iterator[str]:
    if detect_extension(data) != ext:
        yield f"{name} holds {detect_extension(data) or 'no known image format'}"
        return
    try:
        decode_oriented_image(data, name)
    except InputError as error:
        yield error.what


def _check_side_files(folder: Path, tars: list[Path], counts: dict[str, int], digests: _Digests) -> Iterator[str]:
    names = [tar.name for tar in tars]
    if names != [shard_name(number) for number in range(len(names))]:
        yield "the shards are not numbered from 00000 without gaps"
    sizes, sums = read_sizes(folder / SIZES_FILE), _read_sums(folder / CHECKSUMS_FILE)
    for listed, where in ((sizes, SIZES_FILE), (sums, CHECKSUMS_FILE)):
        if listed is None:
            yield f"{where} is missing or cannot be read"
        elif sorted(listed) != names:
            yield f"{where} does not list the shards of the folder"
    for tar in tars:
        count = counts.get(tar.name, 0)
        if sizes is not None and sizes.get(tar.name, count) != count:
            yield f"{tar.name} holds {count} readable samples, {SIZES_FILE} says {sizes[tar.name]}"
        if sums is not None and tar.name in sums and sums[tar.name] != digests.of(tar):
            yield f"{tar.name} does not match the checksum in {CHECKSUMS_FILE}"


def _read_sums(path: Path) -> dict[str, str] | None:
    try:
        lines = path.read_bytes().decode().splitlines()
    except (OSError, StorageError, UnicodeDecodeError):
        return None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
