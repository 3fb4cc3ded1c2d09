"""What the operating system refuses: memory, threads, open files. Each becomes one line that says what to raise.

Libraries report such refusals in their own ways: Python as `MemoryError` or `RuntimeError`, the loader of compiled modules
as `ImportError`, polars' and other Rust code as a panic, which quotes the system's error number.
"""

import errno
import re
from collections.abc import Iterator

from pairwright.datasets.errors import describe_write_error

_MEMORY = (
    "out of memory. Use fewer --workers or a smaller part_size, or raise the limit (ulimit -v, the container's or the "
    "job's). What is done is kept: start again to go on."
)
_PROCESSES = (
    "the system starts no further thread or process. Use fewer --workers, or raise the limit (ulimit -u and -v, the "
    "container's or the job's). What is done is kept: start again to go on."
)
_OF_MEMORY = re.compile(r"failed to map segment|cannot allocate memory|bad_alloc|memory allocation of", re.IGNORECASE)
_OF_PROCESSES = re.compile(r"can't start new thread|resource temporarily unavailable", re.IGNORECASE)
_NUMBER = re.compile(r"\(os error (\d+)\)|\bcode: (\d+)|\[Errno (\d+)\]")
_PANIC = "PanicException"


def is_panic(error: BaseException) -> bool:
    """Return whether Rust code gave up; such an error is no `Exception`."""
    return type(error).__name__ == _PANIC


def system_error_message(error: BaseException) -> str:
    """Return one line on what the system refused; empty for an error of another kind."""
    for each in _causes(error):
        said, number = str(each), _number(each)
        if isinstance(each, MemoryError) or number == errno.ENOMEM or _OF_MEMORY.search(said):
            return _MEMORY
        if number in {errno.EMFILE, errno.ENFILE}:
            return f"too many open files. Raise the limit (ulimit -n{_now()}), or use fewer --workers."
        if number == errno.EAGAIN or _OF_PROCESSES.search(said):
            return _PROCESSES
    if isinstance(error, OSError):
        return f"{error.filename or 'the system'}: {describe_write_error(error)}. Fix it and start again."
    return ""


def _now() -> str:
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
    """Return the system's number of an error, which libraries only quote; 0 where there is none."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = (
        _NUMBER.search(str(error))
        if isinstance(error, OSError) or is_panic(error) or "os error" in str(error)
        else None
    )
    return int(next(filter(None, found.groups()))) if found else 0
