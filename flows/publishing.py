"""A finished build laid into a store (`datasets/remote.py`), so that nothing half-written is ever visible as whole.

As in the build directory, ``manifest.json`` is the commit: a place without one is unfinished. Before anything changes
there the old manifest goes, then come the files that are new or changed, then goes what the version before had and
this one has not, and last comes the new manifest, which names each file with bytes and SHA-256. A file itself appears
whole, as stores have it. A place is ours when our mark lies there: what others put there is never touched, and a place
that holds files and no mark is refused.

What is there already is noted in ``published.json`` of the build directory, so that a publishing that was killed goes
on where it stood; sizes there are compared too. Two machines must not publish to one place at the same time: stores
know no lock that dies with its holder.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from pairwright.datasets.atomic import write_bytes
from pairwright.datasets.errors import StorageError
from pairwright.datasets.manifest import MARK
from pairwright.datasets.remote import Found, Store, open_store
from pairwright.datasets.shards import sha256_of
from pairwright.datasets.version_switch import MANIFEST
from pairwright.flows.versions import dump

NOTED = "published.json"
_PAGES = ("README.md", "report.html", "audit.json")
_AT_A_TIME = 8
_NOTE_SECONDS = 1.0


@dataclass(frozen=True)
class Published:
    """What was done: files of the dataset, how many of them were sent, removed, and the bytes sent."""

    files: int
    sent: int
    removed: int
    bytes: int


def publish(root: Path, manifest: Mapping[str, Any], url: str) -> Published:
    """Lay the shards, card and report of a finished build, and last its manifest, to ``url``.

    Args:
        root: the build directory.
        manifest: of the build as it stands there.
        url: a folder of a store, for this dataset alone.

    Raises:
        StorageError: when the store refuses or cannot be reached, or the place is somebody else's.
        UsageError: for a URL that cannot be, or that holds a secret.
        MissingResource: when the store's package is not installed.
    """
    store, top = open_store(url)
    there = {each.path.removeprefix(top).lstrip("/"): each for each in store.find(top)}
    if there and MARK not in there:
        raise StorageError(
            f"{store.url(top)}: holds files, and no dataset of ours. Choose an empty place: publishing replaces files."
        )
    wanted = _wanted(root, manifest)
    commit = dump({**manifest, "files": wanted})
    place = _Place(root, store, top, _noted(root, store.url(top)))
    sent = [name for name in wanted if not place.has(name, wanted[name]["sha256"], there.get(name))]
    gone = [name for name in place.noted if name not in wanted and name in there]
    if not sent and not gone and place.committed(commit, there.get(MANIFEST)):
        return Published(len(wanted), 0, 0, 0)
    if not there:
        place.write(MARK, b"")
    store.remove(place.path(MANIFEST))
    place.send({name: wanted[name]["sha256"] for name in sent})
    for name in gone:
        store.remove(place.path(name))
    place.forget(gone)
    place.write(MANIFEST, commit)
    return Published(len(wanted), len(sent), len(gone), sum(wanted[name]["bytes"] for name in sent))


def _wanted(root: Path, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is published: by name, ``bytes`` and ``sha256``; pages after shards."""
    files = {name: dict(told) for name, told in manifest["files"].items() if name.startswith("shards/")}
    for name in _PAGES:
        if (path := root / name).is_file():
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    return files


def _noted(root: Path, url: str) -> dict[str, str]:
    try:
        noted = orjson.loads((root / NOTED).read_bytes())
        return dict(noted["files"]) if noted["url"] == url else {}
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return {}


@dataclass
class _Place:
    """Where a dataset is published, and what is known to be there: name to SHA-256."""

    root: Path
    store: Store
    top: str
    noted: dict[str, str]
    _last: float = field(default=0.0)

    def path(self, name: str) -> str:
        return f"{self.top}/{name}"

    def has(self, name: str, sha256: str, found: Found | None) -> bool:
        return found is not None and self.noted.get(name) == sha256 and found.size == (self.root / name).stat().st_size

    def committed(self, commit: bytes, found: Found | None) -> bool:
        if found is None or found.size != len(commit):
            return False
        with TemporaryDirectory() as folder:
            self.store.get(found.path, Path(folder) / MANIFEST)
            return (Path(folder) / MANIFEST).read_bytes() == commit

    def write(self, name: str, data: bytes) -> None:
        with TemporaryDirectory() as folder:
            (Path(folder) / "file").write_bytes(data)
            self.store.put(Path(folder) / "file", self.path(name))

    def send(self, files: Mapping[str, str]) -> None:
        """Send files and note each; shards at the same time, the pages and tables that speak of them afterwards."""
        # What is about to be replaced is not known to be there any more, whatever becomes of it.
        self.noted.update(dict.fromkeys(files, ""))
        self._note()
        tars = [name for name in files if name.endswith(".tar")]
        for names in (tars, [name for name in files if not name.endswith(".tar")]):
            with ThreadPoolExecutor(_AT_A_TIME) as pool:
                sending = {pool.submit(self.store.put, self.root / name, self.path(name)): name for name in names}
                try:
                    for done in as_completed(sending):
                        done.result()
                        self.noted[sending[done]] = files[sending[done]]
                        if time.monotonic() - self._last > _NOTE_SECONDS:
                            self._note()
                finally:
                    for waiting in sending:
                        waiting.cancel()
                    self._note()

    def forget(self, names: list[str]) -> None:
        for name in names:
            del self.noted[name]
        self._note()

    def _note(self) -> None:
        told = {"url": self.store.url(self.top), "files": self.noted}
        write_bytes(self.root / NOTED, orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        self._last = time.monotonic()
