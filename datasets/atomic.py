"""An output file is whole or absent: written beside its place, flushed to disk, then renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path in the same folder; on success it becomes ``path``, on failure it is removed.

    Args:
        path: where the whole file shall stand. Its folder is made when missing.

    Yields:
        The path to write to (``.<name>.tmp-<pid>``). The file must exist when the block ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all."""
    write_bytes(path, text.encode())
