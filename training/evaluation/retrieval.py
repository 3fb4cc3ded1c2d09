"""Image-text retrieval in both directions: recall@k.

An image may have several captions: a text retrieves its image, an image any of its texts. Ties rank before the correct
item, so a constant model retrieves nothing.

Memory: a block of queries times the number of searched items.
"""

import numpy as np
import numpy.typing as npt

from pairwright.filters.evaluation.readers import CaptionedImages
from pairwright.filters.evaluation.results import Metric, TaskResult
from pairwright.training.evaluation.embedding import Embedder, EmbeddingRows

RECALL_AT = (1, 5, 10)
_BLOCK = 512


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
