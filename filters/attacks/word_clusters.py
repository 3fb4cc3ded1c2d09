"""Features of word clusters, for a classifier that generalises over similar words.

Words are clustered by their co-occurrence in captions (k-means of the vectors of `auxiliary.SimilarityScorer`), coarse
and fine; the features of a text are how often it names each cluster. A classifier of sentence embeddings generalises
in a similar way, so it detects less in a set that is balanced in word clusters. No pretrained weights are needed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.scorers.auxiliary import SimilarityScorer
from pairwright.filters.scorers.cooccurrence import extract_content_words
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

CLUSTER_COUNTS = (8, 32, 128, 512)
MAX_CAPTIONS = 100_000
_ITERATIONS = 12
_DECIMALS = 9


def compute_cluster_differences(
    positives: Sequence[str], negatives: Sequence[str], captions: Sequence[str]
) -> "Differences":
    """Return how much more often each word cluster is in the positive than in the negative, float64 (n, clusters).

    Args:
        positives: n texts.
        negatives: n texts.
        captions: to learn the word vectors from; only the first 100,000 are used.
    """
    from scipy.sparse import csr_matrix, hstack

    model = SimilarityScorer.train(captions[:MAX_CAPTIONS])
    known = np.flatnonzero((model.vectors**2).sum(axis=1))
    place = np.full(len(model.vocabulary), len(known), np.int64)
    place[known] = np.arange(len(known))
    flat, lengths = model.vocabulary.encode([extract_content_words(text) for text in (*positives, *negatives)])
    text = np.repeat(np.arange(len(lengths)), lengths)
    rows = len(positives)
    sign = np.where(text < rows, 1.0, -1.0)
    # Unknown words share one column, which is dropped.
    counts = csr_matrix((sign, (text % max(rows, 1), place[flat])), shape=(rows, len(known) + 1))[:, : len(known)]
    blocks = []
    for size in CLUSTER_COUNTS:
        kind = cluster_directions(model.vectors[known], size)
        blocks.append(counts @ csr_matrix((np.ones(len(known)), (np.arange(len(known)), kind)), (len(known), size)))
        blocks[-1].eliminate_zeros()
    return hstack(blocks, format="csr")


def cluster_directions(vectors: FloatArray, size: int) -> IntArray:
    """Return the cluster of each vector, int64 (n,) in 0 to size - 1, by k-means of directions.

    Args:
        vectors: float64 (n, d), of unit length.
        size: number of clusters, at least 1; some stay empty where there are fewer vectors.
    """
    nearest = np.zeros(len(vectors), np.int64)
    if not len(vectors):
        return nearest
    centres = vectors[make_numpy_rng(size, "kinds").permutation(len(vectors))[:size]]
    with limit_blas_to_one_thread():
        for _ in range(_ITERATIONS):
            nearest = np.argmax(np.round(vectors @ centres.T, _DECIMALS), axis=1).astype(np.int64)
            sums = np.zeros_like(centres)
            np.add.at(sums, nearest, vectors)
            length = np.sqrt((sums**2).sum(axis=1, keepdims=True))
            centres = np.where(length > 0, sums / np.maximum(length, 1e-9), centres)
    return nearest
