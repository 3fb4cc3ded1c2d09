"""Hard negatives and hard positives: is the true text more like the image (SugarCrepe; The Hard Positive Truth)?

Scores are cosines. The figures are those of `filters.evaluation`, which judges scores given by any model.
"""

import numpy as np
import polars as pl

from pairwright.filters.evaluation import Evaluation, Result, Share, evaluated
from pairwright.filters.score_files import SCHEMA
from pairwright.training.evaluation.embedding import Embedder
from pairwright.training.evaluation.figures import Figure, Findings
from pairwright.training.evaluation.material import Contrasts


def told_apart(embedder: Embedder, given: Contrasts) -> Findings:
    """Return accuracy by type, and original, augmented accuracy and brittleness where rows have hard positives."""
    found = evaluated(scored(embedder, given))
    detail = {"evaluation": found.as_json()}
    return Findings(_figures(found), given.left_out, detail)


def scored(embedder: Embedder, given: Contrasts) -> pl.DataFrame:
    """Return the cosine of each image with its texts, as `score_files.read_scores` gives scores."""
    images = embedder.images([row.image for row in given.rows])
    texts = [text for row in given.rows for text in (row.caption, row.negative, row.positive or row.caption)]
    rows = embedder.texts(texts).reshape(len(images), 3, -1)
    cosines = np.einsum("nd,nkd->nk", images.astype(np.float64), rows.astype(np.float64))
    return pl.DataFrame(
        {
            "type": [row.type for row in given.rows],
            "s_caption": cosines[:, 0],
            "s_negative": cosines[:, 1],
            "s_positive": [
                score if row.positive else None for row, score in zip(given.rows, cosines[:, 2].tolist(), strict=True)
            ],
        },
        schema=SCHEMA,
    )


def _figures(found: Evaluation) -> tuple[Figure, ...]:
    parts = {**(found.by_type if len(found.by_type) > 1 else {}), "all": found.together}
    figures = [figure for name, result in parts.items() for figure in _of_part(name, result)]
    return tuple(figures)


def _of_part(part: str, result: Result) -> list[Figure]:
    # Guessing: one of two texts is first; of three, the negative is last, or between the others.
    measures: list[tuple[str, Share | None, int, float, str]] = [
        ("accuracy", result.accuracy, result.rows, 1 / 2, "more"),
        ("original", result.original, result.triples, 1 / 2, "more"),
        ("augmented", result.augmented, result.triples, 1 / 3, "more"),
        ("brittleness", result.brittleness, result.triples, 1 / 3, "less"),
    ]
    return [
        Figure(part, name, share.value, share.low, share.high, n, chance, better)
        for name, share, n, chance, better in measures
        if share is not None
    ]
