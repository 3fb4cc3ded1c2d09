"""Stored samples, and which of them are used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

SampleJson = Mapping[str, Any]
SampleCheck = Callable[[SampleJson], str]
"""Returns the reason why a sample cannot be used; empty if it can."""

OnError = Literal["skip", "stop"]


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """Which samples are used, and how many units of an epoch each one is."""

    # Check of a sample's JSON, of which only the outline may be given (`datasets/shards/sample_json.py`); None: all
    # samples are used
    lacks: SampleCheck | None = None
    # Skip samples that lack something; False: use them, and count them in ``ShardSamples.lacking``
    required: bool = True
    units: Callable[[SampleJson], int] | None = None  # number of units of a sample by its JSON; None: one per sample
    members: frozenset[str] = frozenset()  # required members besides the JSON: ``image``, ``caption``
    on_error: OnError = "skip"  # ``skip`` skips and counts broken and incomplete samples, ``stop`` raises


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample as stored in its file."""

    key: str  # of the sample
    where: str  # file and key, for messages
    caption: str  # contents of ``.txt``; empty if missing
    body: SampleJson  # contents of ``.json``; empty if missing
    image: bytes  # bytes of the image; empty for text-only samples
    unit: int = 0  # selected unit of the sample, from 0 (`SampleSelection.units`)
    further_images: tuple[bytes, ...] = ()  # of a conversation of several images, those after the first


def count_images(sample: StoredSample) -> int:
    """Return the number of images of a sample."""
    return 1 + len(sample.further_images) if sample.image else 0
