"""Counts of skipped input by reason: whole rows, and single captions, boxes and optional fields of accepted rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.rejects import Reject

REJECTED_PARTS = ("rejected_captions", "rejected_boxes", "rejected_fields")
"""Facts of a stage that reads rows: captions, boxes and fields that were rejected from kept rows, by reason."""
BROKEN_PARTS = ("broken_captions", "broken_boxes", "broken_fields")
"""The same in the result of a command (`SkipCounts.as_json`)."""


@dataclass
class SkipCounts:
    """Counts of skipped rows, captions, boxes and fields.

    Attributes:
        rows: by reason.
        captions: of rows with several, by reason.
        boxes: images without their boxes, since one is bad, by reason.
        fields: optional fields that are not usable, such as a width, by reason.
    """

    rows: Counter[str] = field(default_factory=Counter)
    captions: Counter[str] = field(default_factory=Counter)
    boxes: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of_kept_rows(cls, counts: Mapping[str, Any], names: Iterable[str] = BROKEN_PARTS) -> Self:
        """Return the counts of captions, boxes and fields by their ``names`` in a result; those that are absent are none."""
        return cls(Counter(), *(Counter(counts.get(name, {})) for name in names))

    def add(self, rejects: Iterable[Reject]) -> None:
        """Count rejects."""
        parts = {"row": self.rows, "caption": self.captions, "boxes": self.boxes, "field": self.fields}
        for each in rejects:
            parts[each.part][each.reason] += 1

    def __add__(self, other: "SkipCounts") -> "SkipCounts":
        """Return the sum of both."""
        both = zip(self._counters(), other._counters(), strict=True)
        return SkipCounts(*(mine + more for mine, more in both))

    def _counters(self) -> tuple[Counter[str], ...]:
        return self.rows, self.captions, self.boxes, self.fields

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return ``broken``, all together by reason, and those among them that are `BROKEN_PARTS`."""
        every = sum(self._counters(), Counter[str]())
        named = zip(("broken", *BROKEN_PARTS), (every, *self._counters()[1:]), strict=True)
        return {name: dict(sorted(counts.items())) for name, counts in named}

    def describe(self) -> str:
        """Return ``2 rows (broken_json 2) and the boxes of 1 image (bad_box 1)``; empty if nothing was skipped."""
        boxes = _format_reasons(self.boxes, "image")
        every = (
            _format_reasons(self.rows, "row"),
            _format_reasons(self.captions, "caption"),
            boxes and f"the boxes of {boxes}",
            _format_reasons(self.fields, "field"),
        )
        parts = [part for part in every if part]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def describe_skip_counts(result: Mapping[str, Mapping[str, int]]) -> str:
    """Return `SkipCounts.describe` for the result of `SkipCounts.as_json`."""
    parts = SkipCounts.of_kept_rows(result)
    rows = Counter(result["broken"]) - parts.captions - parts.boxes - parts.fields
    return replace(parts, rows=rows).describe()


def describe_rejected_parts(facts: Mapping[str, Any]) -> str:
    """Return what was rejected of rows that a stage of a build kept, by its facts (`REJECTED_PARTS`); empty if nothing."""
    return SkipCounts.of_kept_rows(facts, REJECTED_PARTS).describe()


def _format_reasons(reasons: Counter[str], what: str) -> str:
    number = reasons.total()
    why = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item))
    )
    return f"{count_phrase(number, what)} ({why})" if number else ""
