"""Features of word clusters, for a classifier that generalises over similar words.

Words are clustered by their co-occurrence in captions (k-means of the vectors of `auxiliary.SimilarityScorer`), coarse
and fine; the features of a text are how often it names each cluster. A classifier of sentence embeddings generalises
in a similar way, so it detects less in a set that is balanced in word clusters. No pretrained weights are needed.
"""

from collections.abc import Sequence

import numpy as np

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.text_features import CHUNK_SIZE, FactoredDifferences
from pairwright.filters.scorers.auxiliary import SimilarityScorer
from pairwright.filters.scorers.cooccurrence import extract_content_words
from pairwright.generators.language.vocabulary import FloatArray, IntArray

CLUSTER_COUNTS = (8, 32, 128, 512)
MAX_CAPTIONS = 100_000
_ITERATIONS = 12
_DECIMALS = 9


def compute_cluster_differences(
    positives: Sequence[str], negatives: Sequence[str], captions: Sequence[str]
) -> FactoredDifferences:
    """Return how much more often each word cluster is in the positive than in the negative, (n, clusters).

    Args:
        positives: n texts.
        negatives: n texts.
        captions: to learn the word vectors from; only the first 100,000 are used.

    Returns:
        The known words in which the texts differ, times the clusters of each word.
    """
    from scipy.sparse import csr_matrix, hstack, vstack

    model = SimilarityScorer.train(captions[:MAX_CAPTIONS])
    known = np.flatnonzero((model.vectors**2).sum(axis=1))
    place = np.full(len(model.vocabulary), len(known), np.int64)
    place[known] = np.arange(len(known))
    counts = [csr_matrix((0, len(known)))]
    for start in range(0, len(positives), CHUNK_SIZE):
        some = slice(start, start + CHUNK_SIZE)
        texts = [extract_content_words(text) for text in (*positives[some], *negatives[some])]
        flat, lengths = model.vocabulary.encode(texts)
        text, rows = np.repeat(np.arange(len(lengths)), lengths), len(lengths) // 2
        sign = np.where(text < rows, 1.0, -1.0)
        # Unknown words share one column, which is dropped.
        found = csr_matrix((sign, (text % rows, place[flat])), shape=(rows, len(known) + 1))[:, : len(known)]
        found.eliminate_zeros()
        counts.append(found)
    clusters = [
        csr_matrix(
            (np.ones(len(known)), (np.arange(len(known)), cluster_directions(model.vectors[known], size))),
            (len(known), size),
        )
        for size in CLUSTER_COUNTS
    ]
    return FactoredDifferences(vstack(counts, format="csr"), hstack(clusters, format="csr"))


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
