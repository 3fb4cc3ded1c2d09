"""Identification of paths for `verify`: a build, finished or not, shards, a LLaVA file, or something else.

A finished build has a manifest that lists every file. Shards are checked by their contents and metadata files.
"""

import tarfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import orjson

from pairwright.datasets.build_manifest import describe_finished_stages, is_build, read_manifest
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.readers.formats import NON_PAIR_FORMATS, READERS, guess_format
from pairwright.datasets.readers.text_files import MAX_LINE
from pairwright.datasets.shards.layout import CHECKSUMS_FILE, SIZES_FILE, find_shards, shards_folder
from pairwright.datasets.version_switch import STAGING_FOLDER

DatasetKind = Literal["build", "unfinished build", "shards", "llava"]

_CHECKED = "`verify` checks a build directory, a folder of shards, a .tar, or LLaVA's .json."
_INDEX = "index.json"
_FIRST_MEMBERS = 8  # of a shard, among which is the JSON of the first sample
_OWN_MEMBERS = frozenset({"hard_negatives", "hard_positives", "conversations", "rationales", "provenance"})


@dataclass(frozen=True)
class DatasetLocation:
    """The kind of dataset at a path.

    Attributes:
        kind: of the dataset.
        description: the kind in a few words, with its size.
    """

    kind: DatasetKind
    description: str


def identify_dataset(path: Path) -> DatasetLocation:
    """Return the kind of dataset at ``path``.

    Raises:
        InputError: `verify` cannot check it; the message says what it is instead.
    """
    if path.is_dir() and is_build(path):
        try:
            manifest = read_manifest(path)
        except StorageError:
            return DatasetLocation("unfinished build", "an unfinished build")
        if manifest:
            return DatasetLocation("build", _build(path, manifest))
    if path.is_file() and path.suffix.lower() != ".tar":
        return _file(path)
    folder = shards_folder(path)
    if path.is_dir() and not any(folder.glob("*.tar")):
        raise _no_shards(path)
    if not path.exists() and "{" not in path.name:
        raise InputError("no such file or folder", where=str(path), fix="Check the path.")
    tars = find_shards(folder, whole=False)
    if _are_of_another_tool(tars):
        fix = "`verify` checks those that pairwright writes; these are checked by each command that reads them."
        raise InputError("shards of another tool, whose samples have other JSON", where=str(path), fix=fix)
    words = count_phrase(len(tars), "shard")
    if path.is_dir() and is_build(path.parent):
        return DatasetLocation("shards", f"{words} of the build {path.parent}, whose files are all checked there")
    return DatasetLocation("shards", f"{words} {_published(path) or 'without the manifest of a build'}")


def _are_of_another_tool(tars: Sequence[Path]) -> bool:
    """Return whether shards without files of ours beside them begin with a sample whose JSON has no member of ours."""
    if any((tars[0].parent / name).exists() for name in (SIZES_FILE, CHECKSUMS_FILE)):
        return False
    with (
        suppress(tarfile.TarError, OSError, ValueError),  # a damaged one is reported when it is checked
        tars[0].open("rb") as handle,
        tarfile.open(fileobj=handle, mode="r|") as archive,
    ):
        for member in islice(archive, _FIRST_MEMBERS):
            if member.name.endswith(".json") and (file := archive.extractfile(member)):
                body = orjson.loads(file.read(MAX_LINE))
                return isinstance(body, dict) and bool(body) and not (_OWN_MEMBERS & body.keys())
    return False


def _published(path: Path) -> str:
    """Return the version that `build --publish` put into a folder; empty without its manifest."""
    try:
        manifest = read_manifest(path) if path.is_dir() else {}
    except StorageError:  # the manifest of another tool
        return ""
    return f"of {_version(path, manifest)}" if "build" in manifest else ""


def _version(path: Path, manifest: dict[str, Any]) -> str:
    version = manifest.get("build")
    number = f"version {version['number']} of " if isinstance(version, dict) and "number" in version else ""
    return f"{number}the build {manifest.get('name', path.name)}"


def _build(path: Path, manifest: dict[str, Any]) -> str:
    words = _version(path, manifest)
    files = manifest.get("files")
    if isinstance(files, dict):
        words += f", {count_phrase(len(files), 'file')}"
    if (path / STAGING_FOLDER).is_dir():
        far = describe_finished_stages(path / STAGING_FOLDER)
        words += f"; a newer version is unfinished (made so far: {far or 'nothing'})"
    return words


def _file(path: Path) -> DatasetLocation:
    try:
        format_ = guess_format(path)
    except InputError:
        if path.suffix.lower() == ".json":  # possibly a damaged LLaVA file: the error says where
            raise
        raise InputError("a file of another kind", where=str(path), fix=_CHECKED) from None
    if format_ == "llava" or (format_ == "json" and path.suffix.lower() == ".json"):
        return DatasetLocation("llava", "a file of LLaVA conversations")
    what = (
        f"{(NON_PAIR_FORMATS[format_] if format_ in NON_PAIR_FORMATS else READERS.get(format_)).about}; not a dataset"
    )
    raise InputError(what, where=str(path), fix=_CHECKED)


def _no_shards(folder: Path) -> InputError:
    names = [path.name for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    if not names:
        return InputError("an empty folder", where=str(folder), fix=_CHECKED)
    if is_build(folder.parent):
        return InputError(
            "a folder inside a build", where=str(folder), fix=f"Check all: pairwright verify {folder.parent}"
        )
    if _INDEX in names:
        return InputError(
            "an index, not a dataset", where=str(folder), fix=f"Check it: pairwright index check {folder}"
        )
    kinds = Counter(
        Path(name).suffix.lower() or ("folder" if (folder / name).is_dir() else "other file") for name in names
    )
    held = ", ".join(
        f"{count:,} {kind}" if kind.startswith(".") else count_phrase(count, kind)
        for kind, count in kinds.most_common(3)
    )
    return InputError(f"not a build, and no .tar in it ({held})", where=str(folder), fix=_CHECKED)
