"""What a command wrote on this machine, laid into a store when it is whole.

One file appears whole. Of a folder the data comes first (tars, Parquet, pictures) and what tells of it last (sizes, check
sums, cards, descriptions); of an earlier export what tells goes before anything else changes, so that half a folder
never has sizes or sums that fit it. Other files there are left alone.
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
    """Give the path to write to, and a list of the URLs that were sent, which is filled when the block ends well.

    ``out`` itself and nothing to send for a path; for a URL a temporary path of the same name.

    Raises:
        UsageError: for a URL with a user or a query.
        StorageError: when the store refuses or cannot be reached; it names what was to be sent.
        MissingResource: when the store's package is not installed.
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
    told = [path for path in paths if path not in set(data)]
    if data:
        for path in told:
            store.remove(paths[path])
    with ThreadPoolExecutor(_PARALLEL_UPLOADS) as pool:
        for put in [pool.submit(store.put, path, paths[path]) for path in data]:
            put.result()
    for path in told:
        store.put(path, paths[path])
    return [store.url(name) for name in paths.values()]
