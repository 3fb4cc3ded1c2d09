"""Hard-negative accuracy: is the true text more similar to the image (SugarCrepe; The Hard Positive Truth)?

Scores are cosines. The metrics are those of `filters.metrics.hard_negative_accuracy`, which evaluates scores of any model.
"""

import numpy as np
import polars as pl

from pairwright.filters.evaluation.hard_negative_metrics import SCORE_SCHEMA, hard_negative_metrics
from pairwright.filters.evaluation.readers import HardNegativeRows
from pairwright.filters.evaluation.results import TaskResult
from pairwright.filters.metrics.hard_negative_accuracy import evaluate_scores
from pairwright.filters.metrics.question_scores import QUESTION_COLUMNS
from pairwright.training.evaluation.embedding import Embedder


def hard_negative_accuracy(embedder: Embedder, given: HardNegativeRows) -> TaskResult:
    """Return accuracy by type; for rows with hard positives also original and augmented accuracy and brittleness."""
    scores = score_texts(embedder, given)
    found = evaluate_scores(scores)
    metrics = [one for one in hard_negative_metrics(found, scores) if one.measure in given.scores]
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
        schema=SCORE_SCHEMA,
    )
