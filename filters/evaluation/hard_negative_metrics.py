"""Metrics of scored rows of captions and hard negatives, whatever model scored them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.evaluation.results import Metric
from pairwright.filters.metrics.hard_negative_accuracy import Evaluation
from pairwright.filters.metrics.question_scores import QUESTION_COLUMNS, class_accuracies, question_measures
from pairwright.filters.metrics.score_files import SCHEMA

SCORE_SCHEMA: Final = {
    **SCHEMA,
    "t_positives": pl.Float64(),
    "t_negative": pl.Float64(),
    **dict.fromkeys(QUESTION_COLUMNS, pl.String()),
}
"""Of `score_files`, similarities of texts (both captions; the negative and the closer caption), and question ids."""
_MOST_PARTS: Final = 25  # types in the table; of more, only the metrics of all rows


def hard_negative_metrics(found: Evaluation, scores: pl.DataFrame) -> tuple[Metric, ...]:
    """Return all metrics that the rows allow, by type and together.

    Args:
        found: result of `evaluate_scores` on the scores.
        scores: with `SCORE_SCHEMA`.
    """
    caption, negative, positive = (scores[f"s_{name}"].to_numpy() for name in ("caption", "negative", "positive"))
    types = scores["type"].to_numpy()
    triple = scores["s_positive"].is_not_null().to_numpy()
    right = caption > negative
    # Chance level: one of two texts is first; of three, the negative is last, or in the middle.
    measures = (
        ("accuracy", right, np.ones(len(right), dtype=bool), 1 / 2, "more"),
        ("original", right, triple, 1 / 2, "more"),
        ("augmented", right & (positive > negative), triple, 1 / 3, "more"),
        (
            "brittleness",
            (right & (negative > positive)) | ((positive > negative) & (negative > caption)),
            triple,
            1 / 3,
            "less",
        ),
        (
            "text-only",
            (scores["t_positives"] > scores["t_negative"]).fill_null(value=False).to_numpy(),
            triple,
            1 / 3,
            "more",
        ),
    )
    parts = [*(found.by_type if 1 < len(found.by_type) <= _MOST_PARTS else ()), "all"]
    metrics = tuple(
        Metric.rate(part, name, hit, chance, counted=counted, better=better)
        for part in parts
        for name, hit, of, chance, better in measures
        if (counted := of & ((types == part) | (part == "all"))).any()
    )
    return metrics + tuple(_question_metrics(scores, parts, types))


def _question_metrics(scores: pl.DataFrame, parts: Sequence[str], types: npt.NDArray[np.object_]) -> Iterator[Metric]:
    measures = question_measures(scores)
    for part in parts:
        for one in measures:
            counted = one.counted & ((types == part) | (part == "all"))
            if counted.any():
                yield Metric.rate(part, one.name, one.right, float(one.chance[counted].mean()), counted=counted)
    if (means := class_accuracies(scores)).size:
        yield Metric.mean("all", "class mean", means)
