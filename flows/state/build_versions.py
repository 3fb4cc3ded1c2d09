"""Versions of a build directory, and the folders in which new ones are made.

Every finished build writes its manifest to ``manifests/NNNN.json``; ``manifest.json`` is the newest. A full build with the
same files as the version before keeps its number.

The first build works in the build directory itself. Later ones, full or incremental, work in ``.next/``, with the same
layout, and replace the old version when they are complete (`datasets/version_switch.py`). Until then every reader finds
the old version, even if the new build fails.

A full build starts with links to the files of the old version that its receipts may reuse. New files replace links in
``.next/``, never the files behind them, since all files are written to a temporary name and renamed. The disk holds both
versions of changed files, and one of the others.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import orjson

from pairwright.datasets.atomic_files import write_bytes, write_text
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.version_switch import (
    MANIFEST_FILE,
    REMOVE_STEP,
    STAGING_FOLDER,
    SwitchStep,
    discard_staged_version,
    switch_version,
)
from pairwright.flows.state.layout import CLEANED_FOLDERS, DOWNLOADS, part_name
from pairwright.flows.state.receipts import Counts, OutputFile, Receipt, json_hash, read_receipts, receipt_path

MANIFESTS, INCREMENTS, AUDIT = "manifests", "increments", "audit.json"
PAGES = ("README.md", "report.html", "build.yaml")
_KIND = "kind"  # file in `.next/`: the kind of its build; written when the links are complete
_NUMBERED = re.compile(r"\d{4,}\.json")


@dataclass(frozen=True)
class IncrementBase:
    """The version that an increment is added to.

    Attributes:
        root: the build directory.
        manifest: of its newest version.
    """

    root: Path
    manifest: Mapping[str, Any]

    @property
    def parts(self) -> list[str]:
        """The parts of all versions."""
        return [part_name(number) for number in range(self.manifest["build"]["parts"])]

    @property
    def full_parts(self) -> list[str]:
        """The parts of the last full build."""
        return [part_name(number) for number in range(self.manifest["build"]["full_parts"])]

    @cached_property
    def state(self) -> str:
        """Hash of the contents of its files."""
        return json_hash(self.manifest["files"])

    def has_file(self, name: str) -> bool:
        """Return whether it has a file."""
        return name in self.manifest["files"]

    def file(self, name: str) -> Receipt:
        """Return a receipt for one of its files, as the input of a stage."""
        entry = self.manifest["files"][name]
        output = OutputFile(name, entry["bytes"], entry["sha256"])
        return Receipt("base", name, "", (output,), Counts("file"), {}, 0.0)


def version_path(root: Path, number: int) -> Path:
    """Return the path of the manifest of a version."""
    return root / MANIFESTS / f"{number:04d}.json"


def newest_manifest(root: Path) -> dict[str, Any]:
    """Return the manifest of the newest version; empty when there is none."""
    found = [path for path in (root / MANIFESTS).glob("*.json") if _NUMBERED.fullmatch(path.name)]
    if not found:
        return {}
    path = max(found, key=lambda each: int(each.stem))
    try:
        manifest = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise StorageError(f"{path}: not readable. Delete it and build again.") from None
    return dict(manifest)


def finished_manifest(root: Path) -> dict[str, Any]:
    """Return the manifest of the finished version; empty when there is none, or it is not readable."""
    try:
        manifest = orjson.loads((root / MANIFEST_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def dump_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as JSON."""
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def full_version_number(root: Path, manifest: Mapping[str, Any]) -> int:
    """Return the version number of a full build: the newest one if the files are the same, else the next."""
    before = newest_manifest(root)
    if not before:
        return 1
    same = before["build"]["kind"] == "full" and before["files"] == manifest["files"]
    return int(before["build"]["number"]) + (not same)


def write_version(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest under its number, then as the newest one."""
    for path in (version_path(folder, manifest["build"]["number"]), folder / MANIFEST_FILE):
        write_bytes(path, dump_manifest(manifest))


def full_build_folder(root: Path) -> Path:
    """Return the folder in which a full build of ``root`` works: ``root`` itself, or ``.next/`` below a finished version."""
    before = finished_manifest(root)
    if not before:
        discard_staged_version(root)
        (root / MANIFEST_FILE).unlink(missing_ok=True)
        (root / AUDIT).unlink(missing_ok=True)
        shutil.rmtree(root / INCREMENTS, ignore_errors=True)
        return root
    if prepare_staging(root, "full"):
        _link_reusable(root, before)
        write_text(root / STAGING_FOLDER / _KIND, "full")
    return root / STAGING_FOLDER


def increment_folder(root: Path) -> Path:
    """Return the folder in which an incremental build of ``root`` works."""
    if prepare_staging(root, "increment"):
        write_text(root / STAGING_FOLDER / _KIND, "increment")
    return root / STAGING_FOLDER


def refuse_unfinished_increment(root: Path) -> None:
    """Refuse a full build without `--full` where an increment was stopped: it would replace all versions.

    Raises:
        UsageError: an increment in ``root`` is unfinished.
    """
    if finished_manifest(root) and _staged_kind(root) == "increment":
        choices = "Add --incremental to finish it, or --full to build the pairs of this input alone"
        raise UsageError(f"{root}: an increment is unfinished. {choices}, in place of all versions.")


def _staged_kind(root: Path) -> str:
    """Return the kind of the build in ``.next/``; empty without one."""
    try:
        return (root / STAGING_FOLDER / _KIND).read_text()
    except OSError:
        return ""


def prepare_staging(root: Path, kind: Literal["full", "increment"]) -> bool:
    """Create ``.next/``, or keep that of an earlier build of this kind; return whether it is new."""
    if _staged_kind(root) == kind:
        return False
    discard_staged_version(root)
    (root / STAGING_FOLDER).mkdir()
    return True


def _link_reusable(root: Path, before: Mapping[str, Any]) -> None:
    """Link the receipts whose outputs are in the manifest ``before``, and these outputs, into ``.next/``."""
    staged, files = root / STAGING_FOLDER, before.get("files", {})
    _link(root, DOWNLOADS)
    for receipt in read_receipts(root):
        sums = {output.path: output.sha256 for output in receipt.outputs}
        if all(files.get(name, {}).get("sha256") == digest for name, digest in sums.items()):
            local = [output.path for output in receipt.outputs if not output.url]
            for name in (*local, receipt_path(staged, receipt.stage, receipt.part).relative_to(staged).as_posix()):
                if not name.startswith(f"{DOWNLOADS}/"):
                    _link(root, name)
    for name in _failed_files(root):
        _link(root, name)


def _link(root: Path, name: str) -> None:
    place = root / STAGING_FOLDER / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.exists():
        return
    try:
        place.symlink_to(os.path.relpath(root / name, place.parent))
    except OSError:  # a file system without links
        if (root / name).is_file():
            shutil.copyfile(root / name, place)


def replace_full(root: Path, done: Mapping[str, Sequence[Receipt]], manifest: Mapping[str, Any]) -> None:
    """Replace the version in ``root`` by the full build in ``.next/``, and remove files of the old version only.

    Args:
        root: the build directory.
        done: receipts by stage.
        manifest: of the new version, which is in ``.next/`` with its pages.
    """
    staged = root / STAGING_FOLDER
    receipts = {
        receipt_path(staged, receipt.stage, receipt.part).relative_to(staged).as_posix()
        for each in done.values()
        for receipt in each
    }
    outputs = {
        output.path for each in done.values() for receipt in each for output in receipt.outputs if not output.url
    }
    failed = _failed_files(staged)
    new = {name for name in (*outputs, *receipts, *failed) if not name.startswith(f"{DOWNLOADS}/")}
    steps: list[SwitchStep] = [(name, name) for name in sorted(new) if not (staged / name).is_symlink()]
    old = {*_files_below(root, [*CLEANED_FOLDERS, "receipts", "failed"]), *_increment_files(root)}
    steps += [(REMOVE_STEP, name) for name in sorted(old - new)]
    switch_version(root, [*steps, *page_moves(manifest)])


def page_moves(manifest: Mapping[str, Any]) -> list[SwitchStep]:
    """Return the last steps of a switch: pages, config, and the manifest."""
    number = manifest["build"]["number"]
    return [(name, name) for name in (*PAGES, f"{MANIFESTS}/{number:04d}.json", MANIFEST_FILE)]


def _failed_files(root: Path) -> set[str]:
    """Return the files of failed rows, without temporary ones."""
    return {name for name in _files_below(root, ["failed"]) if not name.rpartition("/")[2].startswith(".")}


def _increment_files(root: Path) -> list[str]:
    """Return the files that only incremental builds write."""
    audit = [AUDIT] if (root / AUDIT).is_file() else []
    return [*audit, *_files_below(root, [INCREMENTS])]


def _files_below(root: Path, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if path.is_symlink() or path.is_file():
                yield path.relative_to(root).as_posix()
