"""Upload of command outputs to an object store.

A single file appears when complete. For a folder, data is sent first (tars, Parquet, images) and metadata last (sizes,
checksums, cards, descriptions); metadata of an earlier export is removed before anything else changes, so that an
incomplete folder never has matching sizes or checksums. Other files there are not touched.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pairwright.datasets.remote.object_store import RemoteStore, is_remote, open_store

_DATA = frozenset({".tar", ".parquet", ".jpg", ".jpeg", ".png", ".webp"})
_PARALLEL_UPLOADS = 8


@contextmanager
def upload_on_success(out: Path) -> Iterator[tuple[Path, list[str]]]:
    """Provide the path to write to, and a list of uploaded URLs, filled when the block succeeds.

    For a local path it is ``out`` itself and nothing is sent; for a URL it is a temporary path of the same name.

    Raises:
        UsageError: for a URL with a user or a query.
        StorageError: if the store refuses or cannot be reached; it names the file.
        MissingResourceError: if the store's package is not installed.
    """
    sent: list[str] = []
    if not is_remote(out):
        yield out, sent
        return
    store, path = open_store(out)
    with TemporaryDirectory() as folder:
        place = Path(folder) / PurePosixPath(path).name
        yield place, sent
        sent += _upload_folder(store, Path(folder), str(PurePosixPath(path).parent))


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
