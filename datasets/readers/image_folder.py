"""Reader of a folder of images with captions: ``a/b.jpg`` with ``a/b.txt`` and/or ``a/b.json``.

Texts may also be in a folder of their own, beside that of the images: ``images/a/b.jpg`` with ``captions/a/b.txt``. An image
and texts of one name are joined if they are the only ones of it there, and have no other file beside them.

Subfolders are included, symbolic links followed, names sorted by code point; the source id is the path without its
suffix. The .txt (or .caption) is one caption, without its final line break. A .txt or .json without an image is a missing sample and
rejected, naming files of other kinds with its name; images of unsupported formats (HEIC) are rejected as such; other
files and hidden ones are skipped. A table
``00000.parquet`` of a folder ``00000`` (img2dataset) lists failed downloads; its ``00000_stats.json`` is not a sample.

Limits: the names of one folder (of its parents, and of those beside it where images lack texts) are held in memory, about 100 bytes each, as file systems list them
unsorted.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, takewhile
from pathlib import Path

from pairwright.datasets.directories import FolderIdentity, identify_folder, list_entries
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, PILLOW_FORMATS
from pairwright.datasets.images.loading import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.sample_files import (
    CAPTION_SUFFIXES,
    SampleFile,
    build_sample_row,
    iter_failed_downloads,
)
from pairwright.datasets.readers.stored_inputs import list_below
from pairwright.datasets.rejects import Reject, RejectError, make_reject
from pairwright.datasets.remote.store_path import StorePath

SIDECAR_SUFFIXES = frozenset({*CAPTION_SUFFIXES, ".json"})
READ_SUFFIXES = IMAGE_SUFFIXES | SIDECAR_SUFFIXES | UNREAD
_MAX_BESIDE = (
    16  # folders beside another: those of samples, such as 00000 to 00999, are more than those of one kind of file
)


@dataclass(frozen=True)
class _Folder:
    """Files and subfolders of a folder, each sorted by name, without hidden ones."""

    files: list[Path]
    folders: list[Path]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the files."""
        return frozenset(file.name for file in self.files)

    @cached_property
    def other_files(self) -> dict[str, list[str]]:
        """The names of the files that are not read, by stem."""
        others = defaultdict[str, list[str]](list)
        for file in self.files:
            if file.suffix.lower() not in READ_SUFFIXES:
                others[file.stem].append(file.name)
        return others


class _DiskFolders:
    """Folders of a disk, links followed."""

    def content(self, folder: Path) -> _Folder:
        """Return the content of a folder."""
        entries = [entry for entry in list_entries(folder) if not entry.name.startswith(".")]
        files = [Path(entry.path) for entry in entries if not entry.is_dir()]
        return _Folder(files, [Path(entry.path) for entry in entries if entry.is_dir()])

    def identify(self, folder: Path) -> FolderIdentity:
        """Return what all links that lead to a folder have in common."""
        return identify_folder(folder)


class _StoreFolders:
    """Folders of a store, listed once."""

    def __init__(self, root: Path) -> None:
        self._files: defaultdict[Path, list[Path]] = defaultdict(list)
        self._folders: defaultdict[Path, set[Path]] = defaultdict(set)
        for file in list_below(root):
            self._files[file.parent].append(file)
            for folder in takewhile(lambda each: each != root, file.parents):
                self._folders[folder.parent].add(folder)

    def content(self, folder: Path) -> _Folder:
        """Return the content of a folder."""
        return _Folder(sorted(self._files[folder]), sorted(self._folders[folder]))

    def identify(self, folder: Path) -> str:
        """Return the URL of a folder: a store has no links."""
        return str(folder)


def read_image_folder(path: Path) -> InputRowIterator:
    """Yield a row per image; places are the image's path."""
    root = path.absolute()
    yield from _read(root, root, _StoreFolders(root) if isinstance(root, StorePath) else _DiskFolders())


def _read(
    root: Path, folder: Path, tree: _DiskFolders | _StoreFolders, above: frozenset[object] = frozenset()
) -> InputRowIterator:
    within = above | {tree.identify(folder)}
    found = tree.content(folder)
    beside = _FilesBeside(root, folder, tree)
    for stem, group in groupby(_sample_files(found), key=lambda file: file.stem):
        if files := beside.complete(list(group)):
            yield _row(root, folder / stem, [_file(file) for file in files], found)
    for inner in found.folders:
        if tree.identify(inner) in within:
            continue
        yield from _read(root, inner, tree, within)
        table = inner.with_name(f"{inner.name}.parquet")
        if table.name in found.names:
            images = (file for file in tree.content(inner).files if file.suffix.lower() in IMAGE_SUFFIXES)
            yield from iter_failed_downloads(table, {file.stem for file in images})


@dataclass(frozen=True)
class _FilesBeside:
    """The files of a folder's samples in the folders beside it (``captions/a`` of ``images/a``)."""

    root: Path
    folder: Path
    tree: _DiskFolders | _StoreFolders
    _of_folders: dict[Path, "_FilesBeside"] = field(default_factory=dict)  # beside this one

    def complete(self, files: list[Path]) -> list[Path]:
        """Return the files of a sample, with its texts if they are elsewhere; none for texts that an image elsewhere has."""
        if not _is_incomplete(files):
            return files
        joined = self.join(files)
        image = next((file for file in joined if file.suffix.lower() in IMAGE_SUFFIXES), files[0])
        if image in files:
            return joined
        beside = self._of_folders.setdefault(image.parent, _FilesBeside(self.root, image.parent, self.tree))
        return [] if set(files) <= set(beside.join([image])) else files

    def join(self, files: list[Path]) -> list[Path]:
        """Return the files of an image and its texts, one of each kind, if those that lack are in the nearest folders."""
        for incomplete in self._levels:
            joined = [*files, *incomplete.get(files[0].stem, [])]
            if not _is_incomplete(joined):
                suffixes = {file.suffix.lower() for file in joined}
                alone = len(suffixes & IMAGE_SUFFIXES) == 1 and len(suffixes) == len(joined)
                return joined if alone else files
        return files

    @cached_property
    def _levels(self) -> list[dict[str, list[Path]]]:
        """The files without image or texts in the folders beside this one, and beside those above it, by stem."""
        levels = list[dict[str, list[Path]]]()
        for base in takewhile(lambda each: each.is_relative_to(self.root), self.folder.parents):
            name, *rest = self.folder.relative_to(base).parts
            others = [other for other in self.tree.content(base).folders if other.name != name]
            by_stem = defaultdict[str, list[Path]](list)
            for beside in others if len(others) < _MAX_BESIDE else ():
                if (inner := beside.joinpath(*rest)).is_dir():
                    for stem, group in groupby(_sample_files(self.tree.content(inner)), key=lambda file: file.stem):
                        if _is_incomplete(files := list(group)):
                            by_stem[stem] += files
            levels.append(by_stem)
        return levels


def _is_incomplete(files: list[Path]) -> bool:
    """Return whether there are images or texts only."""
    return len({file.suffix.lower() in SIDECAR_SUFFIXES for file in files}) == 1


def _sample_files(found: _Folder) -> list[Path]:
    """Return a folder's sample files, those of one sample adjacent."""
    files = [
        file for file in found.files if file.suffix.lower() in READ_SUFFIXES and not _is_statistics(found, file.name)
    ]
    return sorted(files, key=lambda file: (file.stem, file.name))


def _is_statistics(found: _Folder, name: str) -> bool:
    stem = name.removesuffix("_stats.json")
    return stem != name and f"{stem}.parquet" in found.names


def _file(path: Path) -> SampleFile:
    try:
        size = path.stat().st_size
    except OSError:  # a broken link; reading it reports the error
        size = 0
    return SampleFile(path.suffix.lower(), str(path), size, partial(_read_sidecar, path))


def _read_sidecar(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RejectError("missing_caption", f"{path.name} cannot be read ({error.strerror})") from None


def _row(root: Path, base: Path, files: list[SampleFile], found: _Folder) -> InputRow | Reject:
    key = str(base).removeprefix(f"{root}/")
    read = {file.suffix for file in files} & IMAGE_SUFFIXES
    files = [file for file in files if not read or file.suffix not in UNREAD]
    image = next((file.name for file in files if file.suffix in IMAGE_SUFFIXES | UNREAD), "")
    if not image:
        names = ", ".join(Path(file.name).name for file in files)
        what = f"{names} without an image of that name"
        if others := found.other_files.get(base.name):
            what += f"; {', '.join(others)} is not read: convert it, if it is an image ({', '.join(PILLOW_FORMATS)} are read)"
        return make_reject(str(base), "missing_image", what)
    row = build_sample_row(image, key, files)
    # Separate image files are checked by path: reading a header is cheaper than reading the file.
    return row if isinstance(row, Reject) else replace(row, load=None)
