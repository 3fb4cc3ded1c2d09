"""Zero-shot classification: the class whose name in templates is most similar to the image (CLIP, section 3.1.4).

A class embedding is the normalized mean of the unit embeddings of its names in all templates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import InputError
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.filters.metrics.confidence_intervals import Z95
from pairwright.indexes.retrieval.queries import Query
from pairwright.training.evaluation.embedding import Embedder, EmbeddingRows

TEMPLATE = "a photo of a {}."
_FIVE = 5


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
    similar = embedder.images(given.images) @ class_embeddings(embedder, given.texts).T
    truth = np.array([classes.index(name) for name in given.classes])
    own = similar[np.arange(len(truth)), truth]
    # Ties rank before the correct class.
    rank = (similar >= own[:, None]).sum(axis=1)
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
    return Metric(
        "all",
        "mean of classes",
        value,
        low,
        high,
        int(counts.sum()),
        chance,
        units=np.stack([right * weights, weights]),
    )


def class_embeddings(embedder: Embedder, texts: Mapping[str, Sequence[str]]) -> EmbeddingRows:
    """Return one unit row per class, float32 (c, d)."""
    means = np.stack([embedder.texts(each).mean(axis=0) for each in texts.values()])
    rows: EmbeddingRows = means / np.linalg.norm(means, axis=1, keepdims=True)
    return rows
