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
    """Which samples are used, and how many units of an epoch each one is.

    Attributes:
        lacks: check of a sample's JSON, of which only the outline may be given (`datasets/shards/sample_json.py`); None: all
            samples are used.
        required: skip samples that lack something; False: use them, and count them in ``ShardSamples.lacking``.
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
