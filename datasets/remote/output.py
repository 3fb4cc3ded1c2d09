"""Upload of command outputs to an object store.

A single file appears when complete. For a folder, data is sent first (tars, Parquet, images) and metadata last (sizes,
checksums, indexes, cards, descriptions); metadata of an earlier export is removed before anything else changes, so that an
incomplete folder never has matching sizes or checksums. Other files there are not touched.

A writer may send a complete file early (`Output.finish`): it is uploaded while the next one is written, and then removed
here, so that the disk never holds a whole export.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Self

from pairwright.datasets.remote.object_store import RemoteStore, is_remote, open_store

_DATA = frozenset({".tar", ".parquet", ".jpg", ".jpeg", ".png", ".webp"})
_PARALLEL_UPLOADS = 8
_AHEAD = 2  # complete files that wait for their upload

FinishFile = Callable[[Path, Sequence[str]], None]
"""Called with a complete data file, which nothing reads any more, and the names of the metadata that will describe it."""


def keep_file(_path: Path, _metadata: Sequence[str]) -> None:
    """Do nothing with a complete file: it stays on disk."""


@dataclass(frozen=True)
class Output:
    """Where a command writes.

    Attributes:
        path: to write to.
        sent: URLs of the uploaded files, filled when the block succeeds; empty for a local path.
        finish: sends a file early; None if files stay where they are.
    """

    path: Path
    sent: list[str] = field(default_factory=list)
    finish: FinishFile | None = None


@contextmanager
def upload_on_success(out: Path) -> Iterator[Output]:
    """Provide the path to write to.

    For a local path it is ``out`` itself and nothing is sent; a failure leaves no new folder without files. For a URL it is a
    temporary path of the same name.

    Raises:
        UsageError: for a URL with a user or a query.
        StorageError: if the store refuses or cannot be reached; it names the file.
        MissingResourceError: if the store's package is not installed.
    """
    if not is_remote(out):
        existed = out.exists()
        try:
            yield Output(out)
        except BaseException:
            if not existed:
                _remove_empty_folders(out)
            raise
        return
    store, path = open_store(out)
    with TemporaryDirectory() as folder:
        place, top = Path(folder) / PurePosixPath(path).name, str(PurePosixPath(path).parent)
        with _EarlyUploads(store, Path(folder), top) as early:
            output = Output(place, finish=early.send)
            yield output
        output.sent.extend([*early.sent, *_upload_folder(store, Path(folder), top)])


def _remove_empty_folders(top: Path) -> None:
    for folder in sorted((path for path in (top, *top.rglob("*")) if path.is_dir()), reverse=True):
        with suppress(OSError):  # it holds files
            folder.rmdir()


class _EarlyUploads:
    """Uploads of complete files while others are written."""

    def __init__(self, store: RemoteStore, folder: Path, top: str) -> None:
        self.sent: list[str] = []
        self._store, self._folder, self._top = store, folder, top
        self._pool = ThreadPoolExecutor(_AHEAD)
        self._pending: list[Future[None]] = []
        self._removed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=failure is not None)
        if failure is None:
            for put in self._pending:
                put.result()

    def send(self, path: Path, metadata: Sequence[str]) -> None:
        """Upload and remove a file; first remove the metadata of an earlier export beside it."""
        name = self._name(path)
        for other in (self._name(path.with_name(each)) for each in metadata):
            if other not in self._removed:
                self._store.remove(other)
                self._removed.add(other)
        if len(self._pending) >= _AHEAD:
            self._pending.pop(0).result()
        self._pending.append(self._pool.submit(self._put, path, name))
        self.sent.append(self._store.url(name))

    def _name(self, path: Path) -> str:
        return f"{self._top}/{path.relative_to(self._folder).as_posix()}"

    def _put(self, path: Path, name: str) -> None:
        self._store.put(path, name)
        path.unlink()


def _upload_folder(store: RemoteStore, folder: Path, top: str) -> list[str]:
    paths = {
        path: f"{top}/{path.relative_to(folder).as_posix()}" for path in sorted(folder.rglob("*")) if path.is_file()
    }
    data = [path for path in paths if path.suffix.lower() in _DATA]
    metadata = [path for path in paths if path not in set(data)]
    if data:
        for path in metadata:
            store.remove(paths[path])
    with ThreadPoolExecutor(_PARALLEL_UPLOADS) as pool:
        for put in [pool.submit(store.put, path, paths[path]) for path in data]:
            put.result()
    for path in metadata:
        store.put(path, paths[path])
    return [store.url(name) for name in paths.values()]
