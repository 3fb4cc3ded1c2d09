"""An output file is whole or absent: written beside its place, flushed to disk, then renamed.

A process that is killed leaves its temporary file behind. `remove_stale_temporaries` removes those whose process is gone, as
far as this machine can tell: the name of the temporary file ends in the process's number and the machine's name, and
files of other machines, on a shared disk, are left alone.
"""

import errno
import glob
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairwright.datasets.errors import PairwrightError

_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_PROBE_BYTES = bytes(1 << 16)  # more than what is left of a last block
_MACHINE_SUFFIX = "@" + re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())[:60]


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Give a temporary path in the same folder; on success it becomes ``path``, on failure it is removed.

    Args:
        path: where the whole file shall stand. Its folder is made when missing.

    Yields:
        The path to write to (``.<name>.tmp-<pid>@<machine>``). The file must exist when the block ends.

    Raises:
        OSError: ``path`` may not be written, or the disk takes no more (full, a quota, read only, failing), whatever the
            library that wrote made of it; with ``path`` as its file.
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
            number = error.errno  # such as a folder that may not be written into: the user knows `path` alone
        if number is None or (isinstance(error, OSError) and error.filename not in {None, str(temporary)}):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _disk_errno(error: Exception) -> int | None:
    """Return what is wrong with the disk, where an error tells of that.

    Libraries that write by themselves raise errors of their own, which only quote the system: polars a ComputeError
    with "(os error 28)", FAISS a RuntimeError with the words.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _DISK_ERRNOS else None
    said = str(error)
    return next((no for no in _DISK_ERRNOS if f"(os error {no})" in said or os.strerror(no) in said), None)


def _probe_disk_errno(error: Exception, temporary: Path) -> int | None:
    """Return what is wrong with the disk, by writing more, where a library's error leaves out its cause.

    So does polars' about the end of a Parquet file: "Invalid thrift: transport error".
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
    """Remove temporary files for ``paths`` whose processes, of this machine, are gone.

    Lists the folders: for the few files that a command begins with, not for each of thousands.
    """
    if os.name == "nt":  # where asking for a process would end it
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
    except (OSError, OverflowError):  # somebody else's, or no number of a process
        return True
    return True


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one."""
    with replace_atomically(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all."""
    write_bytes(path, text.encode())
