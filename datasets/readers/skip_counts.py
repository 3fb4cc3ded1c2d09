"""Counts of skipped input by reason: whole rows, and single captions and the boxes of accepted rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.rejects import Reject

REJECTED_PARTS = ("rejected_captions", "rejected_boxes")
"""Facts of a stage that reads rows: captions and boxes that were rejected from kept rows, by reason."""


@dataclass
class SkipCounts:
    """Counts of skipped rows, captions and boxes.

    Attributes:
        rows: by reason.
        captions: of rows with several, by reason.
        boxes: images without their boxes, since one is bad, by reason.
    """

    rows: Counter[str] = field(default_factory=Counter)
    captions: Counter[str] = field(default_factory=Counter)
    boxes: Counter[str] = field(default_factory=Counter)

    def add(self, rejects: Iterable[Reject]) -> None:
        """Count rejects."""
        parts = {"row": self.rows, "caption": self.captions, "boxes": self.boxes}
        for each in rejects:
            parts[each.part][each.reason] += 1

    def __add__(self, other: "SkipCounts") -> "SkipCounts":
        """Return the sum of both."""
        return SkipCounts(self.rows + other.rows, self.captions + other.captions, self.boxes + other.boxes)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return ``broken``, all together by reason, and ``broken_captions`` and ``broken_boxes``, those among them."""
        return {
            "broken": dict(sorted((self.rows + self.captions + self.boxes).items())),
            "broken_captions": dict(sorted(self.captions.items())),
            "broken_boxes": dict(sorted(self.boxes.items())),
        }

    def describe(self) -> str:
        """Return ``2 rows (broken_json 2) and the boxes of 1 image (bad_box 1)``; empty if nothing was skipped."""
        boxes = _format_reasons(self.boxes, "image")
        every = (
            _format_reasons(self.rows, "row"),
            _format_reasons(self.captions, "caption"),
            boxes and f"the boxes of {boxes}",
        )
        parts = [part for part in every if part]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def describe_skip_counts(result: Mapping[str, Mapping[str, int]]) -> str:
    """Return `SkipCounts.describe` for the result of `SkipCounts.as_json`."""
    captions, boxes = Counter(result["broken_captions"]), Counter(result["broken_boxes"])
    return SkipCounts(Counter(result["broken"]) - captions - boxes, captions, boxes).describe()


def describe_rejected_parts(facts: Mapping[str, Any]) -> str:
    """Return what was rejected of rows that a stage of a build kept, by its facts (`REJECTED_PARTS`); empty if nothing."""
    captions, boxes = (Counter(facts.get(name, {})) for name in REJECTED_PARTS)
    return SkipCounts(captions=captions, boxes=boxes).describe()


def _format_reasons(reasons: Counter[str], what: str) -> str:
    number = reasons.total()
    why = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item))
    )
    return f"{count_phrase(number, what)} ({why})" if number else ""
