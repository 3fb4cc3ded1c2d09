"""Accuracy on hard negatives and hard positives, from scores computed elsewhere.

With s(c), s(n), s(p) the scores of an image with its caption, a hard negative and a hard positive:

- *accuracy*: s(c) > s(n) (SugarCrepe, chapter 4). Chance level is 1/2.
- *augmented accuracy*: s(c) > s(n) and s(p) > s(n) (The Hard Positive Truth). Chance level is 1/3.
- *brittleness*: s(c) > s(n) > s(p) or s(p) > s(n) > s(c): the negative is between two texts that are both true
  (ibid.). Chance level is 1/3.

All comparisons are strict: a tie is wrong. A model that gives one score to all texts gets 0, not 50%.
"""

from dataclasses import dataclass

import polars as pl

from pairwright.filters.metrics.confidence_intervals import wilson_interval

MICRO = "micro"
MACRO = "macro"


@dataclass(frozen=True, slots=True)
class ShareWithInterval:
    """A share of rows with its 95% Wilson interval, each in 0-1."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, rows: int) -> "ShareWithInterval":
        """Return the share that ``hits`` are of ``rows``, which is at least 1."""
        return cls(hits / rows, *wilson_interval(hits, rows))

    def as_json(self) -> dict[str, float]:
        """Return ``value``, ``low``, ``high``."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class AccuracyResult:
    """Accuracies of a model on a set of rows.

    Attributes:
        rows: number of rows with both scores.
        ties: of them, rows whose caption and negative have equal scores.
        accuracy: None without rows.
        triples: number of rows that also have the score of a hard positive.
        original: accuracy on the triples; None without any, as the next two.
        augmented: augmented accuracy.
        brittleness: see the module.
    """

    rows: int
    ties: int
    accuracy: ShareWithInterval | None
    triples: int
    original: ShareWithInterval | None
    augmented: ShareWithInterval | None
    brittleness: ShareWithInterval | None

    def as_json(self) -> dict[str, object]:
        """Return the numbers and shares."""
        shares = {
            "accuracy": self.accuracy,
            "original_accuracy": self.original,
            "augmented_accuracy": self.augmented,
            "brittleness": self.brittleness,
        }
        values = {name: share.as_json() if share else None for name, share in shares.items()}
        return {"rows": self.rows, "ties": self.ties, "triples": self.triples, **values}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results on all rows and by type; ``unscored`` rows lack a score and are in none of them."""

    unscored: int
    together: AccuracyResult
    by_type: dict[str, AccuracyResult]

    @property
    def macro(self) -> float | None:
        """Mean of the accuracies of the types."""
        shares = [result.accuracy.value for result in self.by_type.values() if result.accuracy]
        return sum(shares) / len(shares) if shares else None

    def as_json(self) -> dict[str, object]:
        """Return the shares of all rows as plain numbers, and the types with their intervals."""
        every = self.together
        accuracy = {name: result.accuracy and result.accuracy.value for name, result in self.by_type.items()}
        return {
            "rows": every.rows,
            "unscored": self.unscored,
            "ties": every.ties,
            "triples": every.triples,
            "accuracy": {**accuracy, MICRO: every.accuracy and every.accuracy.value, MACRO: self.macro},
            "original_accuracy": every.original and every.original.value,
            "augmented_accuracy": every.augmented and every.augmented.value,
            "brittleness": every.brittleness and every.brittleness.value,
            "all": every.as_json(),
            "by_type": {name: result.as_json() for name, result in self.by_type.items()},
        }


def evaluate_scores(scores: pl.DataFrame) -> Evaluation:
    """Return the accuracies of scored rows.

    Args:
        scores: as `score_files.read_scores` returns them.
    """
    usable = scores.filter(pl.col("s_caption").is_not_null() & pl.col("s_negative").is_not_null())
    types = sorted(usable["type"].unique())
    by_type = {name: _compute_result(usable.filter(pl.col("type") == name)) for name in types}
    return Evaluation(len(scores) - len(usable), _compute_result(usable), by_type)


def _compute_result(rows: pl.DataFrame) -> AccuracyResult:
    caption, negative, positive = (pl.col(name) for name in ("s_caption", "s_negative", "s_positive"))
    right = caption > negative
    between = (right & (negative > positive)) | ((positive > negative) & (negative > caption))
    triple = positive.is_not_null()
    counts = rows.select(
        ties=(caption == negative).sum(),
        right=right.sum(),
        triples=triple.sum(),
        original=(right & triple).sum(),
        augmented=(right & (positive > negative)).sum(),
        brittle=between.sum(),
    ).row(0, named=True)
    triples = counts["triples"]

    def share(name: str) -> ShareWithInterval | None:
        return ShareWithInterval.of(counts[name], triples) if triples else None

    accuracy = ShareWithInterval.of(counts["right"], len(rows)) if len(rows) else None
    shares = share("original"), share("augmented"), share("brittle")
    return AccuracyResult(len(rows), counts["ties"], accuracy, triples, *shares)
