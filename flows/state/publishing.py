"""Publishing of a finished build to an object store, as a new version (`datasets/remote/published_versions.py`).

First the files of the version are written: those that the previous version has too are copied inside the store, the
others are uploaded, and the manifest comes last. Then the pointer, a single file, is replaced; until then, and after a
kill, readers find the previous version. The newest ``keep`` versions stay, for readers that began with an older one;
other versions and the files of a killed run are removed at the end.

A folder of a store must be empty or have our marker; files of others are never changed. Two machines must not publish to
the same folder at the same time: each would remove the unfinished version of the other.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import StorageError
from pairwright.datasets.progress import track
from pairwright.datasets.remote.object_store import RemoteStore, StoredFile, open_store
from pairwright.datasets.remote.published_versions import (
    POINTER_FILE,
    VERSIONS_FOLDER,
    encode_pointer,
    read_pointer,
    read_remote_json,
)
from pairwright.datasets.version_switch import MANIFEST_FILE
from pairwright.flows.state.build_versions import dump_manifest
from pairwright.flows.state.receipts import json_hash

_PAGES = ("README.md", "report.html", "audit.json")
_THREADS = 8
_DIGITS = 12  # of a hash, in the name of a version


@dataclass(frozen=True)
class PublishResult:
    """Result of publishing a version.

    Attributes:
        version: its name.
        url: of its folder.
        files: number of its files, without the manifest.
        sent: number of uploaded files.
        copied: number of files that were copied inside the store.
        removed: number of removed files of older versions.
        bytes: uploaded.
    """

    version: str
    url: str
    files: int
    sent: int
    copied: int
    removed: int
    bytes: int

    @property
    def summary(self) -> str:
        """The result as a line of text."""
        line = (
            f"Published {count_phrase(self.files, 'file')} to {self.url}: {self.sent:,} uploaded ({self.bytes:,} bytes)"
        )
        return f"{line}, {self.copied:,} copied in the store, {self.removed:,} of older versions removed."


def publish(root: Path, manifest: Mapping[str, Any], url: str, keep: int = 2) -> PublishResult:
    """Publish shards, card, report and manifest of a finished build as a version below ``url``.

    Args:
        root: the build directory.
        manifest: of the build.
        url: a folder of a store, for this dataset alone.
        keep: number of versions to keep, at least 1.

    Raises:
        StorageError: when the store fails, or the folder contains other files.
        UsageError: for an invalid URL, or one that contains a secret.
        MissingResourceError: when the package of the store is not installed.
    """
    store, top = open_store(url)
    target = _PublishTarget(root, store, top)
    if target.found and BUILD_MARKER not in target.found:
        raise StorageError(
            f"{store.url(top)}: not empty, and not a published dataset. Choose an empty folder: publishing overwrites files."
        )
    files = files_to_publish(root, manifest)
    version = _name_of(manifest, files)
    before = read_pointer(store, top)
    if not target.found:
        target.write(BUILD_MARKER, b"")
    sent: list[str] = []
    copied: dict[str, str] = {}
    if not target.is_complete(version):
        missing = [name for name in files if not target.has(version, name, files[name]["bytes"])]
        copied = target.copies_of(missing, files, before)
        sent = [name for name in missing if name not in copied]
        target.write_files(version, sent, copied)
        target.write(f"{VERSIONS_FOLDER}/{version}/{MANIFEST_FILE}", dump_manifest({**manifest, "files": files}))
    kept = [version, *(name for name in before if name != version)][:keep]
    if kept != before:
        target.write(POINTER_FILE, encode_pointer(kept))
    removed = target.remove_others(kept)
    size = sum(files[name]["bytes"] for name in sent)
    folder = store.url(f"{top}/{VERSIONS_FOLDER}/{version}")
    return PublishResult(version, folder, len(files), len(sent), len(copied), removed, size)


def files_to_publish(root: Path, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return ``bytes`` and ``sha256`` of the files to publish by name, shards first."""
    files = {name: dict(entry) for name, entry in manifest["files"].items() if name.startswith("shards/")}
    for name in _PAGES:
        if (path := root / name).is_file():
            files[name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    return files


def _name_of(manifest: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> str:
    digest = json_hash(sorted([name, entry["sha256"]] for name, entry in files.items()))
    return f"{manifest['build']['number']:04d}-{digest[:_DIGITS]}"


@dataclass
class _PublishTarget:
    """The folder ``top`` of a store, and the files found in it by name."""

    root: Path
    store: RemoteStore
    top: str
    found: dict[str, StoredFile] = field(init=False)

    def __post_init__(self) -> None:
        self.found = {each.path.removeprefix(self.top).lstrip("/"): each for each in self.store.find(self.top)}

    def path(self, name: str) -> str:
        return f"{self.top}/{name}"

    def is_complete(self, version: str) -> bool:
        return f"{VERSIONS_FOLDER}/{version}/{MANIFEST_FILE}" in self.found

    def has(self, version: str, name: str, size: int) -> bool:
        # Uploads are atomic, and the name of a version is a hash of its content: the size is enough.
        file = self.found.get(f"{VERSIONS_FOLDER}/{version}/{name}")
        return file is not None and file.size == size

    def copies_of(
        self, names: Iterable[str], files: Mapping[str, Mapping[str, Any]], before: list[str]
    ) -> dict[str, str]:
        """Return the path of an equal file of the previous version, by each of ``names`` that has one."""
        known: dict[str, str] = {}
        if before and self.is_complete(before[0]):
            folder = f"{VERSIONS_FOLDER}/{before[0]}"
            old = read_remote_json(self.store, self.path(f"{folder}/{MANIFEST_FILE}"))["files"]
            paths = {name: f"{folder}/{name}" for name in old}
            known = {entry["sha256"]: paths[name] for name, entry in old.items() if paths[name] in self.found}
        return {name: known[digest] for name in names if (digest := files[name]["sha256"]) in known}

    def write_files(self, version: str, sent: Iterable[str], copied: Mapping[str, str]) -> None:
        """Upload and copy the files of a version, several at a time."""
        folder = f"{VERSIONS_FOLDER}/{version}"
        work: list[tuple[Callable[..., None], object, str]] = [
            *((self.store.copy, self.path(source), self.path(f"{folder}/{name}")) for name, source in copied.items()),
            *((self.store.put, self.root / name, self.path(f"{folder}/{name}")) for name in sent),
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            pending = [pool.submit(run, source, target) for run, source, target in work]
            try:
                for done in track(as_completed(pending), "publishing", len(pending), "files"):
                    done.result()
            finally:
                for future in pending:
                    future.cancel()

    def write(self, name: str, data: bytes) -> None:
        with TemporaryDirectory() as folder:
            (Path(folder) / "file").write_bytes(data)
            self.store.put(Path(folder) / "file", self.path(name))

    def remove_others(self, kept: list[str]) -> int:
        """Remove all versions but ``kept``, each with its manifest first; return the number of files."""
        folders = tuple(f"{VERSIONS_FOLDER}/{version}/" for version in kept)
        removed = [
            name for name in self.found if name.startswith(f"{VERSIONS_FOLDER}/") and not name.startswith(folders)
        ]
        removed.sort(key=lambda name: (not name.endswith(f"/{MANIFEST_FILE}"), name))
        if MANIFEST_FILE in self.found:  # a version in the top folder, of an older pairwright
            files = read_remote_json(self.store, self.path(MANIFEST_FILE)).get("files", {})
            removed = [MANIFEST_FILE, *(name for name in files if name in self.found), *removed]
        for name in removed:
            self.store.remove(self.path(name))
        return len(removed)
