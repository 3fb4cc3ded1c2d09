"""Kinds of words, for a classifier that judges a yak by what it read of cows.

Words fall into kinds by the company they keep in captions (k-means of the vectors of `guards.KinshipScorer`), coarse and
fine, and a text is read as how often it names each kind. A classifier of sentence embeddings generalises in much the
same way, so a set that is balanced in kinds tells such a one less. No weights but the captions' own are needed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.scorers.auxiliary import SimilarityScorer
from pairwright.filters.scorers.cooccurrence import content_words
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

CLUSTER_COUNTS = (8, 32, 128, 512)
MAX_CAPTIONS = 100_000
_ITERATIONS = 12
_DECIMALS = 9


def cluster_differences(positives: Sequence[str], negatives: Sequence[str], captions: Sequence[str]) -> "Differences":
    """Return how often each kind of word is in the positive more than in the negative, float64 (n, kinds).

    Args:
        positives: n texts.
        negatives: n texts.
        captions: that tell which words keep like company; of more than 100,000 the first.
    """
    from scipy.sparse import csr_matrix, hstack

    model = SimilarityScorer.train(captions[:MAX_CAPTIONS])
    known = np.flatnonzero((model.vectors**2).sum(axis=1))
    place = np.full(len(model.vocabulary), len(known), np.int64)
    place[known] = np.arange(len(known))
    flat, lengths = model.vocabulary.encode([content_words(text) for text in (*positives, *negatives)])
    text = np.repeat(np.arange(len(lengths)), lengths)
    rows = len(positives)
    sign = np.where(text < rows, 1.0, -1.0)
    # Unknown words have a column of their own, which counts for nothing.
    said = csr_matrix((sign, (text % max(rows, 1), place[flat])), shape=(rows, len(known) + 1))[:, : len(known)]
    blocks = []
    for size in CLUSTER_COUNTS:
        kind = cluster_directions(model.vectors[known], size)
        blocks.append(said @ csr_matrix((np.ones(len(known)), (np.arange(len(known)), kind)), (len(known), size)))
        blocks[-1].eliminate_zeros()
    return hstack(blocks, format="csr")


def cluster_directions(vectors: FloatArray, size: int) -> IntArray:
    """Return which of ``size`` kinds each vector is of, int64 (n,) in 0 to size - 1, by k-means of directions.

    Args:
        vectors: float64 (n, d), of unit length.
        size: at least 1; some kinds stay empty where there are fewer vectors.
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
