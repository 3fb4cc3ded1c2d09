"""Objects that worker processes construct once, from a file with what they are constructed of."""

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

Setup = TypeVar("Setup")


class SetupInFile(Generic[Setup]):
    """Base class of callables that are sent to processes with each job; pickled as the path of a file with their setup.

    Args:
        setup: what it is constructed of, which can be pickled; kept as ``_setup``.
        path: of the file, which must exist while other processes work; written when the first of them needs it.
    """

    def __init__(self, setup: Setup, path: Path) -> None:
        self._setup, self._path = setup, path

    def __reduce__(self) -> tuple[object, tuple[type[Self], Path]]:
        if not self._path.exists():
            self._path.write_bytes(pickle.dumps(self._setup))
        return _construct, (type(self), self._path)


@lru_cache(maxsize=1)
def _construct(kind: type[SetupInFile[Any]], path: Path) -> SetupInFile[Any]:
    return kind(pickle.loads(path.read_bytes()), path)  # noqa: S301 - written by the parent process
