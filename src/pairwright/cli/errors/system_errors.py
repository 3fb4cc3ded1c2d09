"""Messages for exhausted system resources: memory, threads, open files, disk space.

Libraries report them differently: Python as `MemoryError` or `RuntimeError`, the loader of compiled modules as
`ImportError`, polars and other Rust code as a panic that quotes the error number of the system. torch's writer of checkpoints
reports a full disk as a wrong position in the file.
"""

import errno
import re
from collections.abc import Iterator

from pairwright.datasets.errors import describe_write_error

_MEMORY = (
    "out of memory. Use fewer workers, smaller parts or smaller batches, or raise the limit (ulimit -v, the container's or "
    "the job's)."
)
_PROCESSES = (
    "the system cannot start another thread or process. Use fewer workers, or raise the limit (ulimit -u and -v, the "
    "container's or the job's)."
)
_DISK = "the disk is full, or another limit of the file system is reached. Free space."
_OF_MEMORY = re.compile(r"failed to map segment|cannot allocate memory|bad_alloc|memory allocation of", re.IGNORECASE)
_OF_PROCESSES = re.compile(r"can't start new thread|resource temporarily unavailable", re.IGNORECASE)
_OF_DISK = re.compile(r"PytorchStreamWriter failed|inline_container\.cc.*unexpected pos \d+ vs")
_FIXES = {
    errno.ENOSPC: "Free space.",
    errno.EDQUOT: "Free space, or raise the quota.",
    errno.EFBIG: "Raise the limit (ulimit -f), or use another disk.",
    errno.EROFS: "Choose another disk.",
    errno.EACCES: "Check its permissions.",
    errno.EPERM: "Check its permissions.",
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG), "Choose another path."),
}
_NUMBER = re.compile(r"\(os error (\d+)\)|\bcode: (\d+)|\[Errno (\d+)\]")
_PANIC = "PanicException"


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of Rust code, which is no `Exception`."""
    return type(error).__name__ == _PANIC


def system_error_message(error: BaseException) -> str:
    """Return one line about an exhausted resource or a failed system call; empty for other errors."""
    for each in _causes(error):
        text, number = str(each), _number(each)
        if isinstance(each, MemoryError) or number == errno.ENOMEM or _OF_MEMORY.search(text):
            return _MEMORY
        if number in {errno.EMFILE, errno.ENFILE}:
            return f"too many open files. Raise the limit (ulimit -n{_current_limit()}), or use fewer workers."
        if not isinstance(each, OSError) and (number in {errno.ENOSPC, errno.EDQUOT} or _OF_DISK.search(text)):
            return _DISK  # an `OSError` names its file
        if number == errno.EAGAIN or _OF_PROCESSES.search(text):
            return _PROCESSES
    if isinstance(error, OSError):
        fix = _FIXES.get(error.errno or 0, "Check the path and its disk.")
        return f"{error.filename or 'the system'}: {describe_write_error(error)}. {fix}"
    return ""


def _current_limit() -> str:
    try:
        import resource
    except ImportError:  # Windows
        return ""
    return f", now {resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _number(error: BaseException) -> int:
    """Return the error number of the system, which libraries quote in their text; 0 without one."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = (
        _NUMBER.search(str(error))
        if isinstance(error, OSError) or is_panic(error) or "os error" in str(error)
        else None
    )
    return int(next(filter(None, found.groups()))) if found else 0
