"""Hard-negative accuracy: is the true text more similar to the image (SugarCrepe; The Hard Positive Truth)?

Scores are cosines. The metrics are those of `filters.metrics.hard_negative_accuracy`, which evaluates scores of any model.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.filters.metrics.hard_negative_accuracy import Evaluation, evaluate_scores
from pairwright.filters.metrics.question_scores import QUESTION_COLUMNS, class_accuracies, question_measures
from pairwright.filters.metrics.score_files import SCHEMA
from pairwright.training.evaluation.data import HardNegativeRows
from pairwright.training.evaluation.embedding import Embedder
from pairwright.training.evaluation.results import Metric, TaskResult

_MOST_PARTS: Final = 25  # types in the table; of more, only the metrics of all rows


def hard_negative_accuracy(embedder: Embedder, given: HardNegativeRows) -> TaskResult:
    """Return accuracy by type; for rows with hard positives also original and augmented accuracy and brittleness."""
    scores = score_texts(embedder, given)
    found = evaluate_scores(scores)
    metrics = [one for one in _metrics(found, scores) if one.measure in given.scores]
    return TaskResult(tuple(metrics), given.left_out, {"evaluation": found.as_json()})


def score_texts(embedder: Embedder, given: HardNegativeRows) -> pl.DataFrame:
    """Return the cosines of each image with its texts, in the schema of `score_files.read_scores`."""
    images = embedder.images([row.image for row in given.rows])
    texts = [text for row in given.rows for text in (row.caption, row.negative, row.positive or row.caption)]
    rows = embedder.texts(texts).reshape(len(images), 3, -1)
    cosines = np.einsum("nd,nkd->nk", images.astype(np.float64), rows.astype(np.float64))
    texts_only = np.einsum("nid,njd->nij", rows, rows, dtype=np.float64)
    return pl.DataFrame(
        {
            "type": [row.type for row in given.rows],
            "s_caption": cosines[:, 0],
            "s_negative": cosines[:, 1],
            "s_positive": [
                score if row.positive else None for row, score in zip(given.rows, cosines[:, 2].tolist(), strict=True)
            ],
            "t_positives": texts_only[:, 0, 2],
            "t_negative": texts_only[:, 1].take([0, 2], axis=1).max(axis=1),
            **{name: [row.question.get(name) for row in given.rows] for name in QUESTION_COLUMNS},
        },
        schema=SCHEMA
        | {"t_positives": pl.Float64(), "t_negative": pl.Float64()}
        | dict.fromkeys(QUESTION_COLUMNS, pl.String()),
    )


def _metrics(found: Evaluation, scores: pl.DataFrame) -> tuple[Metric, ...]:
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
        ("text-only", (scores["t_positives"] > scores["t_negative"]).to_numpy(), triple, 1 / 3, "more"),
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
