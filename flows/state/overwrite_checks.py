"""Checks before any work that an output overwrites neither an input nor a file of a finished build or index."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.readers.formats import locate_input
from pairwright.datasets.version_switch import MANIFEST_FILE
from pairwright.indexes.hnsw.metadata import METADATA_FILE, read_metadata


def refuse_overwriting(out: Path, *inputs: str | tuple[str, ...]) -> None:
    """Refuse to overwrite an input.

    Args:
        out: the output.
        inputs: files, folders and brace patterns; empty ones are skipped.

    Raises:
        UsageError: when ``out`` is one of the inputs, or one of the files that they name.
    """
    if not out.exists():
        return
    for given in inputs:
        for name in filter(None, (given,) if isinstance(given, str) else given):
            if Path(name).exists() and out.samefile(name):
                raise UsageError(f"{out}: is the input itself. Write to another file.")
            if any(out.samefile(file) for file in _named(name, out) if file.exists()):
                raise UsageError(f"{out}: is one of the input files of {name}. Write to another file.")


def _named(name: str, out: Path) -> Iterator[Path]:
    """Yield the files of a brace pattern, or the input files of a folder that contains ``out``."""
    path = Path(name)
    with suppress(PairwrightError):  # reported by its reader
        if path.is_dir():
            if out.parent.samefile(path):
                yield from locate_input(name).files
        elif "{" in name and not path.exists():
            yield from map(Path, expand_braces(name))


def refuse_replacing_build_files(out: Path) -> None:
    """Refuse to overwrite a file of a finished build or an index.

    Raises:
        UsageError: naming the build or the index.
    """
    if not out.exists():
        return
    place = out.resolve()
    for folder in (place, *place.parents):
        for what, files in (("build", _of_build(folder)), ("index", _of_index(folder))):
            if _within(os.path.relpath(place, folder), files):
                raise UsageError(f"{out}: belongs to the {what} in {folder}. Choose another output path.")


def _within(name: str, files: frozenset[str]) -> bool:
    if name == os.curdir:
        return bool(files)
    return name in files or any(file.startswith(name + "/") for file in files)


def _of_build(folder: Path) -> frozenset[str]:
    with suppress(PairwrightError, OSError):
        files = read_manifest(folder).get("files") if (folder / MANIFEST_FILE).is_file() else None
        if isinstance(files, dict):
            return frozenset({MANIFEST_FILE, *files})
    return frozenset()


def _of_index(folder: Path) -> frozenset[str]:
    with suppress(PairwrightError, OSError):
        if (folder / METADATA_FILE).is_file():
            return frozenset({METADATA_FILE, *read_metadata(folder).files})
    return frozenset()
