"""Mean average precision of image-image retrieval: whether images with the same label are nearest neighbours.

The protocol of conditional retrieval (FocalLens, section 5.4): each image is a query to all others, ranked by cosine;
those with its label are relevant. A condition is one labelling: by colour, by shape, by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairwright.datasets.errors import InputError

FloatArray = npt.NDArray[np.float32]
_BLOCK = 256  # queries per block of 256 x n similarities


@dataclass(frozen=True, slots=True)
class RetrievalPrecision:
    """Mean average precision under one condition.

    Attributes:
        map: in 0-1, over the queries with relevant images.
        random: of a random order, in 0-1.
        queries: number of these queries.
        without_match: images whose label no other image has.
    """

    map: float
    random: float
    queries: int
    without_match: int

    @property
    def scaled(self) -> float:
        """Position of ``map`` between a random order (0) and a perfect one (1)."""
        return (self.map - self.random) / (1 - self.random) if self.random < 1 else 0.0

    def as_json(self) -> dict[str, float | int]:
        """Return this as JSON."""
        return {
            "map": self.map,
            "random": self.random,
            "scaled": self.scaled,
            "queries": self.queries,
            "alone": self.without_match,
        }


def unit_rows(embeddings: npt.NDArray[np.generic], where: str) -> FloatArray:
    """Return embeddings as float32 rows of length 1.

    Args:
        embeddings: (n, d), any numeric type.
        where: name of the file in messages.

    Raises:
        InputError: not a table of finite numbers, or a row of zeros.
    """
    if embeddings.ndim != 2 or not np.issubdtype(embeddings.dtype, np.floating):
        what = f"{embeddings.dtype} of shape {embeddings.shape} instead of floats (n, d)"
        raise InputError(what, where=where, fix="Save one row per image, with numpy.save.")
    rows = embeddings.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        what = f"{len(bad):,} rows are zero or not finite, the first is row {bad[0]}"
        raise InputError(what, where=where, fix="Embed those images again.")
    unit: FloatArray = (rows / lengths[:, None]).astype(np.float32)
    return unit


def mean_average_precision(embeddings: FloatArray, labels: Sequence[str]) -> RetrievalPrecision:
    """Return the mean average precision of the labels.

    The query itself is excluded. Of images with equal similarity those of another label rank first: embeddings that are
    all equal retrieve nothing by accident.

    Args:
        embeddings: float32 (n, d), rows of length 1.
        labels: n texts, aligned with the rows.

    Raises:
        InputError: no two images share a label.
    """
    found, others = average_precisions(embeddings, labels)
    return RetrievalPrecision(
        float(found.mean()), random_precision(others, len(labels) - 1), len(found), len(labels) - len(found)
    )


def average_precisions(
    embeddings: FloatArray, labels: Sequence[str]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Return the average precision and the number of relevant images of each query; see `mean_average_precision`.

    Raises:
        InputError: no two images share a label.
    """
    names, codes = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    others = np.bincount(codes, minlength=len(names))[codes] - 1
    queries = np.flatnonzero(others > 0)
    if not len(queries):
        raise InputError("no two rows share a label", where="labels", fix="Choose another --by.")
    blocks = [
        _precisions(embeddings, codes, queries[start : start + _BLOCK]) for start in range(0, len(queries), _BLOCK)
    ]
    return np.concatenate(blocks), others[queries]


def _precisions(
    embeddings: FloatArray, codes: npt.NDArray[np.intp], queries: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    similar = embeddings[queries] @ embeddings.T
    relevant = codes[queries][:, None] == codes[None, :]
    line = np.arange(len(queries))
    similar[line, queries] = -np.inf  # the query itself ranks last, and is not relevant
    relevant[line, queries] = False
    order = np.lexsort((relevant, -similar), axis=1)
    hits = np.take_along_axis(relevant, order, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    average: npt.NDArray[np.float64] = (precision * hits).sum(axis=1) / hits.sum(axis=1)
    return average


def random_precision(relevant: npt.NDArray[np.intp], of: int) -> float:
    """Return the mean average precision of a random order, 0-1.

    Args:
        relevant: number of relevant images of each query, each at least 1.
        of: number of ranked images.
    """
    # Expected average precision of a random order of N with R relevant: the i-th relevant one is at rank k with i - 1
    # before it; summed, (1/N) sum_k ((k-1)(R-1)/(N-1) + 1) / k.
    counts, times = np.unique(relevant, return_counts=True)
    harmonic = float((1 / np.arange(1, of + 1)).sum())
    expected = [
        1.0 if of == 1 else (harmonic + (of - harmonic) * (count - 1) / (of - 1)) / of for count in counts.tolist()
    ]
    return float(np.dot(expected, times) / times.sum())
