"""Counts of skipped input by reason: whole rows, and single captions of accepted rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pairwright.datasets.rejects import Reject


@dataclass
class SkipCounts:
    """Counts of skipped rows and captions.

    Attributes:
        rows: by reason.
        captions: of rows with several, by reason.
    """

    rows: Counter[str] = field(default_factory=Counter)
    captions: Counter[str] = field(default_factory=Counter)

    def add(self, rejects: Iterable[Reject]) -> None:
        """Count rejects."""
        for each in rejects:
            (self.captions if each.is_single_caption else self.rows)[each.reason] += 1

    def __add__(self, other: "SkipCounts") -> "SkipCounts":
        """Return the sum of both."""
        return SkipCounts(self.rows + other.rows, self.captions + other.captions)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return ``broken``, rows and captions together by reason, and ``broken_captions``, the captions among them."""
        return {
            "broken": dict(sorted((self.rows + self.captions).items())),
            "broken_captions": dict(sorted(self.captions.items())),
        }

    def describe(self) -> str:
        """Return ``2 rows (broken_json 2) and 1 caption (empty_caption 1)``; empty if nothing was skipped."""
        return " and ".join(
            filter(None, (_format_reasons(self.rows, "row"), _format_reasons(self.captions, "caption")))
        )


def describe_skip_counts(result: Mapping[str, Mapping[str, int]]) -> str:
    """Return `SkipCounts.describe` for the result of `SkipCounts.as_json`."""
    captions = Counter(result["broken_captions"])
    return SkipCounts(Counter(result["broken"]) - captions, captions).describe()


def _format_reasons(reasons: Counter[str], what: str) -> str:
    number = reasons.total()
    why = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item))
    )
    return f"{number:,} {what}{'s' * (number != 1)} ({why})" if number else ""
