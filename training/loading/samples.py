"""Stored samples, which of them are used, and what is said of the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import rank_reasons

SampleJson = Mapping[str, Any]
SampleCheck = Callable[[SampleJson], str]
"""Returns the reason why a sample cannot be used; empty if it can."""

OnError = Literal["skip", "stop"]

_CONVERSATIONS: Final = "Build shards with the section `conversations` (and method.types, if set)."
_FIXES: Final = {
    "missing_image": "Use shards with images.",
    "several_images": "Conversations about several images are for recipes of generative models.",
    "missing_caption": "Use shards with captions, as .txt.",
    "no_hard_negatives": "Build shards with the section `negatives`, or set method.online.",
    "no_hard_positives": "Build shards with the section `positives`.",
    "no_hard_texts": "Build shards with the sections `negatives` and `positives`.",
    "no_triplets": _CONVERSATIONS,
    "no_conversations": _CONVERSATIONS,
    "no_rationales": "Build shards with the section `rationales`; the split must be the same.",
}


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


def skip_notes(left_out: Mapping[str, int]) -> list[str]:
    """Return sentences on skipped samples, by their number for each reason."""
    return [
        f"{count_phrase(count, 'sample')} skipped: {reason.replace('_', ' ')}."
        for reason, count in rank_reasons(left_out)
    ]


def check_usable(used: int, left_out: Mapping[str, int], lacking: Mapping[str, int], data: str) -> None:
    """Raise InputError if each of the ``used`` samples of ``data`` lacks some kind of text, or none is used."""
    if sum(lacking.values()) < used:
        return
    counts = rank_reasons({**left_out, **lacking})
    found = ", ".join(f"{count:,}: {reason.replace('_', ' ')}" for reason, count in counts)
    raise InputError(
        f"no sample has what the recipe needs ({found})",
        where=data,
        fix=_FIXES.get(counts[0][0], "Write the shards again."),
    )
