"""Evaluation of images against texts: hard negatives, retrieval in both directions, zero-shot classification.

Scores are cosines. Ties rank before the correct item, so a constant model retrieves and classifies nothing.

- *hard negatives*: is the true text more similar to the image (SugarCrepe; The Hard Positive Truth)? The metrics are
  those of `filters.metrics.hard_negative_accuracy`, which evaluates scores of any model.
- *retrieval*: recall@k. A text retrieves its image, an image any of its texts, in blocks of queries.
- *zero-shot*: the class whose name in templates is most similar to the image (CLIP, section 3.1.4). Its embedding is
  the normalized mean of the unit embeddings of its names in all templates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.filters.evaluation.hard_negative_metrics import SCORE_SCHEMA, hard_negative_metrics
from pairwright.filters.evaluation.readers import CaptionedImages, HardNegativeRows
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.filters.metrics.hard_negative_accuracy import evaluate_scores
from pairwright.filters.metrics.question_scores import QUESTION_COLUMNS
from pairwright.indexes.retrieval.queries import Query
from pairwright.training.evaluation.embedding import Embedder, EmbeddingRows

RECALL_AT = (1, 5, 10)
TEMPLATE = "a photo of a {}."
_FIVE = 5
_BLOCK = 512


def hard_negative_accuracy(embedder: Embedder, given: HardNegativeRows) -> TaskResult:
    """Return accuracy by type; for rows with hard positives also original and augmented accuracy and brittleness."""
    scores = _score_texts(embedder, given)
    found = evaluate_scores(scores)
    metrics = [one for one in hard_negative_metrics(found, scores) if one.measure in given.scores]
    return TaskResult(tuple(metrics), given.left_out, {"evaluation": found.as_json()})


def _score_texts(embedder: Embedder, given: HardNegativeRows) -> pl.DataFrame:
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


def retrieval_recall(embedder: Embedder, given: CaptionedImages) -> TaskResult:
    """Return recall@k of texts for images and images for texts, for each k below the number of searched items."""
    images, texts = embedder.images(given.images), embedder.texts(given.captions)
    owners = np.asarray(given.owners)
    found = {
        "text to image": (best_ranks(texts, images, owners, np.arange(len(images))), len(images)),
        "image to text": (best_ranks(images, texts, np.arange(len(images)), owners), len(texts)),
    }
    wanted = {"text to image": np.ones(len(texts), dtype=np.intp), "image to text": np.bincount(owners)}
    metrics = [
        Metric.rate(way, f"recall@{k}", rank <= k, chance_recall(wanted[way], searched, k))
        for way, (rank, searched) in found.items()
        for k in RECALL_AT
        if k < searched
    ]
    return TaskResult(tuple(metrics), {}, {"images": len(images), "texts": len(texts)})


def chance_recall(wanted: npt.NDArray[np.intp], searched: int, k: int) -> float:
    """Return the recall@k of a random order of ``searched`` items; ``wanted``: correct ones of each query, (q,)."""
    # Probability that none of m is among the first k of n: product of (n - m - i) / (n - i) for i below k.
    places = np.arange(k)
    missed = np.clip(searched - wanted[:, None] - places, 0, None) / (searched - places)
    return float((1 - missed.prod(axis=1)).mean())


def best_ranks(
    queries: EmbeddingRows, searched: EmbeddingRows, of_queries: npt.NDArray[np.intp], of_searched: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the rank, from 1, of the best correct item of each query: one of its image.

    Queries are float32 (q, d) and searched items (s, d), unit rows, with the image index of each, (q,) and (s,).
    """
    ranks = np.empty(len(queries), dtype=np.intp)
    for start in range(0, len(queries), _BLOCK):
        rows = slice(start, start + _BLOCK)
        similar = queries[rows] @ searched.T
        wanted = of_queries[rows, None] == of_searched
        best = np.where(wanted, similar, -np.inf).max(axis=1, keepdims=True)
        ranks[rows] = ((similar >= best) & ~wanted).sum(axis=1) + 1
    return ranks


@dataclass(frozen=True, slots=True)
class ClassifiedImages:
    """Images, their classes, and the texts of each class."""

    images: Sequence[str]  # locators
    classes: Sequence[str]  # one per image
    texts: Mapping[str, Sequence[str]]  # class to its names in all templates


def join_classes(
    images: Sequence[str], labels: Sequence[str], queries: Sequence[Query], where: str
) -> ClassifiedImages:
    """Join images and the names of their classes with a class list; without one labels are the classes, in `TEMPLATE`."""
    names: dict[str, str] = {}
    texts: dict[str, list[str]] = {}
    for query in queries:
        names.setdefault(query.name, query.concept)
        texts.setdefault(query.concept, []).append(query.text)
    names |= {concept: concept for concept in texts}
    if not queries:
        names = {label: label for label in sorted(set(labels))}
        texts = {label: [TEMPLATE.replace("{}", label)] for label in names}
    unknown = [label for label in labels if label not in names]
    if unknown:
        what = f"{len(unknown):,} images without a class; the first label is {unknown[0]!r}"
        raise InputError(what, where=where, fix="Add it to --classes.")
    if len(texts) < 2:
        raise InputError("only one class", where=where, fix="At least two are required.")
    return ClassifiedImages(images, [names[label] for label in labels], texts)


def zero_shot_accuracy(embedder: Embedder, given: ClassifiedImages) -> TaskResult:
    """Return accuracy, top-5 accuracy with more than five classes, and mean class accuracy."""
    classes = list(given.texts)
    means = np.stack([embedder.texts(each).mean(axis=0) for each in given.texts.values()])
    similar = embedder.images(given.images) @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    truth = np.array([classes.index(name) for name in given.classes])
    own = similar[np.arange(len(truth)), truth]
    rank = (similar >= own[:, None]).sum(axis=1)  # ties first
    metrics = [Metric.rate("all", "accuracy", rank == 1, 1 / len(classes))]
    if len(classes) > _FIVE:
        metrics.append(Metric.rate("all", "in first 5", rank <= _FIVE, _FIVE / len(classes)))
    metrics.append(_mean_class_accuracy(rank == 1, truth, 1 / len(classes)))
    return TaskResult(tuple(metrics), {}, {"classes": len(classes), "texts": sum(map(len, given.texts.values()))})


def _mean_class_accuracy(right: npt.NDArray[np.bool_], truth: npt.NDArray[np.intp], chance: float) -> Metric:
    """Return the mean of the class accuracies; its variance is the mean of theirs over the number of classes."""
    classes, places, counts = np.unique(truth, return_inverse=True, return_counts=True)
    shares = np.array([right[truth == one].mean() for one in classes])
    spread = float(np.sqrt((shares * (1 - shares) / np.maximum(counts - 1, 1)).sum())) / len(classes)
    weights = 1 / (len(classes) * counts[places])
    value = float(shares.mean())
    low, high = max(0.0, value - Z95 * spread), min(1.0, value + Z95 * spread)
    units = np.stack([right * weights, weights])
    return Metric("all", "mean of classes", value, low, high, int(counts.sum()), chance, units=units)
