"""Counts of annotations: by type, kept or rejected by reason, and the lengths of both texts of a pair."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pairwright.datasets.records import Annotation
from pairwright.datasets.shards.content_counts import annotation_type


def count_type(row: Annotation) -> str:
    """Return the type under which a row is counted; a negative's own positive is counted separately."""
    kind = annotation_type(row)
    beside = row.kind == "hard_positive" and row.origin.generator.endswith("-negatives")
    return f"beside: {kind}" if beside else kind


@dataclass
class AnnotationCounts:
    """Counts of annotations by type (``replace-object``, ``conversation``); it grows by `add`."""

    kept: Counter[str] = field(default_factory=Counter)
    rejected: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, rows: Iterable[Annotation]) -> None:
        """Count annotations."""
        for row in rows:
            if row.status == "kept":
                self.kept[count_type(row)] += 1
            else:
                self.rejected[count_type(row)][row.reason] += 1

    def reasons(self) -> dict[str, int]:
        """Return how many were rejected for each reason, over all types."""
        counts: Counter[str] = Counter()
        for reasons in self.rejected.values():
            counts.update(reasons)
        return dict(sorted(counts.items()))

    def by_type(self) -> dict[str, dict[str, Any]]:
        """Return for each type ``made``, ``kept`` and ``rejected`` (reason to number); made = kept + rejected."""
        return {
            name: {
                "made": self.kept[name] + self.rejected[name].total(),
                "kept": self.kept[name],
                "rejected": dict(sorted(self.rejected[name].items())),
            }
            for name in sorted({*self.kept, *self.rejected})
        }


@dataclass
class LengthBalance:
    """Whether kept negatives are longer or shorter, in letters, than the true text that they are compared with."""

    counts: Counter[str] = field(default_factory=lambda: Counter({"longer": 0, "equal": 0, "shorter": 0}))

    def add(self, rows: Iterable[Annotation]) -> None:
        """Count the annotations of a pair."""
        kept = [row for row in rows if row.status == "kept"]
        positives = {row.id: row.text for row in kept if row.kind == "hard_positive"}
        for row in kept:
            if row.kind == "hard_negative":
                added = len(row.text) - len(positives.get(row.positive_id, row.source_text))
                self.counts["longer" if added > 0 else "shorter" if added else "equal"] += 1

    def as_json(self) -> dict[str, int]:
        """Return the number of negatives that are longer, equal and shorter; empty without negatives."""
        return dict(self.counts) if self.counts.total() else {}
