"""Atomic file writes: a temporary file in the same folder, flushed to disk, then renamed.

A killed process leaves its temporary file. `remove_stale_temporaries` removes those of dead processes of this machine:
the name ends in process id and host name, so files of other hosts on a shared disk are kept.
"""

import errno
import glob
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pairwright.datasets.errors import PairwrightError

_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_PROBE_BYTES = bytes(1 << 16)  # more than the free rest of a last block
_MACHINE_SUFFIX = "@" + re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())[:60]


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Provide a temporary path in the same folder; it replaces ``path`` on success and is removed on failure.

    Args:
        path: the file to write. Its folder is created if missing.

    Yields:
        The path to write to (``.<name>.tmp-<pid>@<machine>``). The file must exist when the block ends.

    Raises:
        OSError: ``path`` is not writable or the disk failed (full, over quota, read-only, I/O error), also if the library
            that wrote raised an error of its own; its ``filename`` is ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}{_MACHINE_SUFFIX}")
    try:
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except Exception as error:
        number = _disk_errno(error) or _probe_disk_errno(error, temporary)
        if number is None and isinstance(error, OSError) and error.filename == str(temporary):
            number = error.errno  # for example an unwritable folder: report `path`, the name the user knows
        if number is None or (isinstance(error, OSError) and error.filename not in {None, str(temporary)}):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        with suppress(OSError):  # on a read-only file system, also if there is no such file; it would hide the error
            temporary.unlink(missing_ok=True)


def _disk_errno(error: Exception) -> int | None:
    """Return the errno of a disk failure that an error reports, else None.

    Libraries that write files themselves only quote the system's message: polars raises a ComputeError with
    "(os error 28)", FAISS a RuntimeError with the text.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _DISK_ERRNOS else None
    said = str(error)
    return next((no for no in _DISK_ERRNOS if f"(os error {no})" in said or os.strerror(no) in said), None)


def _probe_disk_errno(error: Exception, temporary: Path) -> int | None:
    """Return the errno of a disk failure, found by writing more data, if the library's error hides its cause.

    Example: polars raises "Invalid thrift: transport error" when the end of a Parquet file cannot be written.
    """
    if isinstance(error, OSError | PairwrightError):
        return None
    try:
        with temporary.open("ab") as handle:
            handle.write(_PROBE_BYTES)
    except OSError as refused:
        return _disk_errno(refused)
    return None


def remove_stale_temporaries(*paths: Path) -> None:
    """Remove temporary files of ``paths`` whose processes on this machine have ended.

    Lists the folders: intended for the few files that a command starts with, not for thousands.
    """
    if os.name == "nt":  # os.kill would end the process
        return
    for path in paths:
        for left in path.parent.glob(f".{glob.escape(path.name)}.tmp-*{glob.escape(_MACHINE_SUFFIX)}"):
            number = left.name.removesuffix(_MACHINE_SUFFIX).rpartition("-")[2]
            if number.isdigit() and not _is_alive(int(number)):
                left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # a process of another user, or not a process id
        return True
    return True


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` atomically."""
    with replace_atomically(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path`` atomically."""
    write_bytes(path, text.encode())


def link_or_copy(source: Path, path: Path) -> None:
    """Make ``path`` a hard link to the file ``source`` atomically, or a copy where the file system has no links.

    For files that are only ever replaced as a whole, as all files of this module are: one of the two names can be
    replaced without a change of the other.
    """
    source = source.resolve()
    if path.exists() and not path.is_symlink() and path.samefile(source):
        return  # renaming one link onto another of the same file does nothing and would leave the temporary one
    with replace_atomically(path) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
