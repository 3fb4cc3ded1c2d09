"""One build at a time in a folder: a lock that the operating system drops when its holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairwright.datasets.errors import StorageError


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Hold the build directory ``root`` for this process.

    Raises:
        StorageError: when another process builds there, or the folder cannot be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = (root / ".lock").open("w")
    except OSError as error:
        raise StorageError(
            f"{root}: cannot be written ({error.strerror}). Choose another folder with --out, or mend its permissions."
        ) from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(
                f"{root}: another build is running in this folder. Wait for it, or choose another --out."
            ) from None
        yield
