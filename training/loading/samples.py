"""A sample before a recipe makes rows of it, and the interface of the indexes that read samples."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from pairwright.datasets.errors import StorageError
from pairwright.datasets.rejects import Reject

SampleJson = Mapping[str, Any]
SampleCheck = Callable[[SampleJson], str]
"""Returns why a sample cannot be used, in one countable word; empty when it can."""

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """Which samples of the files are used, and how many units of an epoch each one is.

    Attributes:
        lacks: judges the JSON of a sample; None: no JSON is read, which is much faster.
        units: counts the units of a sample by its JSON; None: each sample is one.
        members: what a sample must have beside its JSON: ``image``, ``caption``.
        on_error: ``skip`` leaves broken and incomplete samples out and counts them, ``stop`` raises.
    """

    lacks: SampleCheck | None = None
    units: Callable[[SampleJson], int] | None = None
    members: frozenset[str] = frozenset()
    on_error: OnError = "skip"


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample as it stands in its file.

    Attributes:
        key: of the sample.
        where: file and key, for messages.
        caption: contents of ``.txt``; empty when it has none.
        body: contents of ``.json``; empty when it has none.
        image: bytes of the image; empty for text-only samples.
        unit: which of the sample's units is meant, from 0 (`Selection.units`).
    """

    key: str
    where: str
    caption: str
    body: SampleJson
    image: bytes
    unit: int = 0


class SampleIndex(Protocol):
    """The units of samples, numbered through, each to be read by its number, in any process."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of units of each file."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of samples that are not used, by reason."""

    def places(self) -> str:
        """Return a digest of where the samples lie: the same for the same files in another folder."""

    def find(self, number: int) -> StoredSample | Reject:
        """Return the sample of a number, or why it cannot be read.

        Raises:
            PairwrightError: the file changed or cannot be read any more.
        """


def read_samples(samples: SampleIndex, numbers: Sequence[int]) -> list[StoredSample]:
    """Return the samples of these numbers, in their order.

    Raises:
        PairwrightError: one of them cannot be read.
    """
    return [_sample_or_raise(samples.find(int(number))) for number in numbers]


def _sample_or_raise(found: StoredSample | Reject) -> StoredSample:
    if isinstance(found, Reject):
        raise found.error()
    return found


_OPEN_FILES = 64


class _OpenFile:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def read_span(path: Path, start: int, end: int) -> bytes:
    """Return the bytes of a file from ``start`` to before ``end``; the file stays open for the next call.

    Raises:
        StorageError: the file is gone, or cannot be read.
    """
    try:
        return _open_file(path).read(start, end)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read any more ({error.strerror}). Start again.") from None


@lru_cache(maxsize=_OPEN_FILES)
def _open_file(path: Path) -> _OpenFile:
    return _OpenFile(path)  # closed when it leaves the cache
