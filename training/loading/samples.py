"""Stored samples, the interface of their indexes, and file reads by position."""

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
"""Returns the reason why a sample cannot be used; empty if it can."""

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """Which samples are used, and how many units of an epoch each one is.

    Attributes:
        lacks: check of a sample's JSON; None: JSON is not read, which is much faster.
        units: number of units of a sample by its JSON; None: one per sample.
        members: required members besides the JSON: ``image``, ``caption``.
        on_error: ``skip`` skips and counts broken and incomplete samples, ``stop`` raises.
    """

    lacks: SampleCheck | None = None
    units: Callable[[SampleJson], int] | None = None
    members: frozenset[str] = frozenset()
    on_error: OnError = "skip"


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample as stored in its file.

    Attributes:
        key: of the sample.
        where: file and key, for messages.
        caption: contents of ``.txt``; empty if missing.
        body: contents of ``.json``; empty if missing.
        image: bytes of the image; empty for text-only samples.
        unit: selected unit of the sample, from 0 (`SampleSelection.units`).
    """

    key: str
    where: str
    caption: str
    body: SampleJson
    image: bytes
    unit: int = 0


class SampleIndex(Protocol):
    """Numbered units of samples, readable by number in any process."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of units of each file."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of skipped samples by reason."""

    def places(self) -> str:
        """Return a digest of the samples' positions; equal for copies of the files."""

    def find(self, number: int) -> StoredSample | Reject:
        """Return the sample with a number, or the reject if it is unusable.

        Raises:
            PairwrightError: the file changed or is not readable any more.
        """


def read_samples(samples: SampleIndex, numbers: Sequence[int]) -> list[StoredSample]:
    """Return the samples with these numbers, in order.

    Raises:
        PairwrightError: a sample is unusable.
    """
    return [_sample_or_raise(samples.find(int(number))) for number in numbers]


def _sample_or_raise(found: StoredSample | Reject) -> StoredSample:
    if isinstance(found, Reject):
        raise found.error()
    return found


_OPEN_FILES = 64


class _OpenFile:
    """A file read by position: forked workers share the position of a handle."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self._file, end - start, start)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def read_span(path: Path, start: int, end: int) -> bytes:
    """Return the bytes ``[start, end)`` of a file; the file stays open for the next call.

    Raises:
        StorageError: the file is gone or not readable.
    """
    try:
        return _open_file(path).read(start, end)
    except OSError as error:
        raise StorageError(f"{path}: not readable any more ({error.strerror}). Restart the run.") from None


@lru_cache(maxsize=_OPEN_FILES)
def _open_file(path: Path) -> _OpenFile:
    return _OpenFile(path)  # closed on eviction
