"""A finished build laid into a store, as a version of its own (`datasets/remote/published_versions.py`).

First come the files of the version: those that the version before has too are copied inside the store, the others are
sent, and its manifest comes last. Then the pointer is replaced, which is one file and so happens at once; until then, and
after a kill, readers find the version before. Older versions stay for readers that began with them, the newest
``keep`` of them; what is older, and what a killed publishing left, is removed at the end.

A place is ours when our mark lies there: what others put there is never touched, and a place that holds files and no
mark is refused. Two machines must not publish to one place at the same time: each takes the unfinished version of the
other for one that was abandoned.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pairwright.datasets.build_manifest import BUILD_MARKER
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
from pairwright.datasets.shards.webdataset import hash_file
from pairwright.datasets.version_switch import MANIFEST_FILE
from pairwright.flows.state.receipts import json_hash
from pairwright.flows.state.versions import dump_manifest

_PAGES = ("README.md", "report.html", "audit.json")
_AT_A_TIME = 8
_DIGITS = 12


@dataclass(frozen=True)
class PublishResult:
    """What was done.

    Attributes:
        version: the name of the version.
        url: its folder.
        files: of the version, without its manifest.
        sent: files that were sent.
        copied: files that were copied inside the store.
        removed: files of older versions.
        bytes: that were sent.
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
        """One line on it."""
        line = f"Published {self.files:,} files to {self.url}: {self.sent:,} sent ({self.bytes:,} bytes)"
        return f"{line}, {self.copied:,} copied there, {self.removed:,} of older versions removed."


def publish(root: Path, manifest: Mapping[str, Any], url: str, keep: int = 2) -> PublishResult:
    """Lay shards, card and report of a finished build, and last its manifest, into a version below ``url``.

    Args:
        root: the build directory.
        manifest: of the build as it stands there.
        url: a folder of a store, for this dataset alone.
        keep: versions that stay, the new one among them; at least 1.

    Raises:
        StorageError: when the store refuses or cannot be reached, or the place is somebody else's.
        UsageError: for a URL that cannot be, or that holds a secret.
        MissingResource: when the store's package is not installed.
    """
    store, top = open_store(url)
    place = _PublishTarget(root, store, top)
    if place.there and BUILD_MARKER not in place.there:
        raise StorageError(
            f"{store.url(top)}: holds files, and no dataset of ours. Choose an empty place: publishing replaces files."
        )
    wanted = _files_to_publish(root, manifest)
    version = _name_of(manifest, wanted)
    before = read_pointer(store, top)
    if not place.there:
        place.write(BUILD_MARKER, b"")
    sent: list[str] = []
    copied: dict[str, str] = {}
    if not place.is_complete(version):
        missing = [name for name in wanted if not place.has(version, name, wanted[name]["bytes"])]
        copied = place.copies_of(missing, wanted, before)
        sent = [name for name in missing if name not in copied]
        place.fill(version, sent, copied)
        place.write(f"{VERSIONS_FOLDER}/{version}/{MANIFEST_FILE}", dump_manifest({**manifest, "files": wanted}))
    stay = [version, *(name for name in before if name != version)][:keep]
    if stay != before:
        place.write(POINTER_FILE, encode_pointer(stay))
    removed = place.remove_others(stay)
    size = sum(wanted[name]["bytes"] for name in sent)
    folder = store.url(f"{top}/{VERSIONS_FOLDER}/{version}")
    return PublishResult(version, folder, len(wanted), len(sent), len(copied), removed, size)


def _files_to_publish(root: Path, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is published: by name, ``bytes`` and ``sha256``; pages after shards."""
    files = {name: dict(told) for name, told in manifest["files"].items() if name.startswith("shards/")}
    for name in _PAGES:
        if (path := root / name).is_file():
            files[name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    return files


def _name_of(manifest: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]]) -> str:
    digest = json_hash(sorted([name, told["sha256"]] for name, told in wanted.items()))
    return f"{manifest['build']['number']:04d}-{digest[:_DIGITS]}"


@dataclass
class _PublishTarget:
    """Where a dataset is published, and what is there: name below ``top`` to file."""

    root: Path
    store: RemoteStore
    top: str
    there: dict[str, StoredFile] = field(init=False)

    def __post_init__(self) -> None:
        self.there = {each.path.removeprefix(self.top).lstrip("/"): each for each in self.store.find(self.top)}

    def path(self, name: str) -> str:
        return f"{self.top}/{name}"

    def is_complete(self, version: str) -> bool:
        return f"{VERSIONS_FOLDER}/{version}/{MANIFEST_FILE}" in self.there

    def has(self, version: str, name: str, size: int) -> bool:
        # A file appears whole, and its version is named by its content: the size tells that it is this one.
        found = self.there.get(f"{VERSIONS_FOLDER}/{version}/{name}")
        return found is not None and found.size == size

    def copies_of(
        self, names: Iterable[str], wanted: Mapping[str, Mapping[str, Any]], before: list[str]
    ) -> dict[str, str]:
        """Return of each of ``names`` that the version before has by content where it has it."""
        known: dict[str, str] = {}
        if before and self.is_complete(before[0]):
            folder = f"{VERSIONS_FOLDER}/{before[0]}"
            files = read_remote_json(self.store, self.path(f"{folder}/{MANIFEST_FILE}"))["files"]
            known = {
                told["sha256"]: f"{folder}/{name}" for name, told in files.items() if f"{folder}/{name}" in self.there
            }
        return {name: known[digest] for name in names if (digest := wanted[name]["sha256"]) in known}

    def fill(self, version: str, sent: Iterable[str], copied: Mapping[str, str]) -> None:
        """Send and copy files into a version, several at a time."""
        folder = f"{VERSIONS_FOLDER}/{version}"
        work: list[tuple[Callable[..., None], object, str]] = [
            *((self.store.copy, self.path(source), self.path(f"{folder}/{name}")) for name, source in copied.items()),
            *((self.store.put, self.root / name, self.path(f"{folder}/{name}")) for name in sent),
        ]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            under_way = [pool.submit(run, source, target) for run, source, target in work]
            try:
                for done in track(as_completed(under_way), "publishing", len(under_way), "files"):
                    done.result()
            finally:
                for waiting in under_way:
                    waiting.cancel()

    def write(self, name: str, data: bytes) -> None:
        with TemporaryDirectory() as folder:
            (Path(folder) / "file").write_bytes(data)
            self.store.put(Path(folder) / "file", self.path(name))

    def remove_others(self, stay: list[str]) -> int:
        """Remove all versions but those that stay, each with its manifest first; return how many files there were."""
        kept = tuple(f"{VERSIONS_FOLDER}/{version}/" for version in stay)
        gone = [name for name in self.there if name.startswith(f"{VERSIONS_FOLDER}/") and not name.startswith(kept)]
        gone.sort(key=lambda name: (not name.endswith(f"/{MANIFEST_FILE}"), name))
        if MANIFEST_FILE in self.there:  # a version that lies at the top, from before there was a pointer
            files = read_remote_json(self.store, self.path(MANIFEST_FILE)).get("files", {})
            gone = [MANIFEST_FILE, *(name for name in files if name in self.there), *gone]
        for name in gone:
            self.store.remove(self.path(name))
        return len(gone)
