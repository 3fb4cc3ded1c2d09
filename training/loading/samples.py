"""Stored samples, and the interface of their indexes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pairwright.datasets.rejects import Reject

SampleJson = Mapping[str, Any]
SampleCheck = Callable[[SampleJson], str]
"""Returns the reason why a sample cannot be used; empty if it can."""

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """Which samples are used, and how many units of an epoch each one is.

    Attributes:
        lacks: check of a sample's JSON, of which only the outline may be given (`datasets/shards/sample_json.py`); None: all
            samples are used.
        required: skip samples that lack something; False: use them, and count them in ``SampleIndex.lacking``.
        units: number of units of a sample by its JSON; None: one per sample.
        members: required members besides the JSON: ``image``, ``caption``.
        on_error: ``skip`` skips and counts broken and incomplete samples, ``stop`` raises.
    """

    lacks: SampleCheck | None = None
    required: bool = True
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

    @property
    def lacking(self) -> Mapping[str, int]:
        """Return the number of used samples that lack something, by reason."""

    def places(self) -> str:
        """Return a digest of the samples' positions; equal for copies of the files."""

    def find(self, numbers: Sequence[int]) -> Iterator[StoredSample | Reject]:
        """Yield the samples with these numbers, or the rejects of unusable ones, in order.

        Raises:
            PairwrightError: the file changed or is not readable any more.
        """


def read_samples(samples: SampleIndex, numbers: Sequence[int]) -> list[StoredSample]:
    """Return the samples with these numbers, in order.

    Raises:
        PairwrightError: a sample is unusable.
    """
    return [_sample_or_raise(found) for found in samples.find(numbers)]


def _sample_or_raise(found: StoredSample | Reject) -> StoredSample:
    if isinstance(found, Reject):
        raise found.error()
    return found
