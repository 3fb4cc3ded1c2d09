"""File locks of the operating system (`flock`), released when the process ends."""

import fcntl
from pathlib import Path
from typing import IO

from pairwright.datasets.errors import StorageError


def acquire_lock(handle: IO[str] | IO[bytes] | int, path: Path, *, shared: bool = False) -> None:
    """Lock an open file.

    Args:
        handle: the file, or its descriptor; readable for a shared lock, writable for an exclusive one.
        path: what is locked, for the message.
        shared: allow other shared locks, instead of none.

    Raises:
        BlockingIOError: another process holds the lock.
        StorageError: the file system has no locks.
    """
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise StorageError(
            f"{path}: this file system has no file locks ({error.strerror}), so two processes could write "
            "there at the same time. Choose a folder on a local disk, or mount it with locks."
        ) from None
