"""Linear classifier of positives and negatives, tested on held-out groups.

Logistic regression without intercept on the odd features of `evidence.py`: weights w that make w.f positive for the
training rows, under an L2 penalty. Rows are assigned to folds by group (their image), and each fold is judged by a
classifier of the others. Fitted by accelerated gradient descent with restarts (Nesterov, 1983; O'Donoghue and Candes,
2015) until the gradient itself is small: a tolerance relative to the first gradient takes longest on a balanced set,
where there is nothing to learn. It stops after `STEPS` steps, which regularises a little more.

The weights are sums of training rows, w = F'a, and so are all steps. So the descent works on a and on the margins F w:
only the product F F' of each step reads the features, equal features count once there, and all classifiers of one matrix
(each fold of each set of folds) are columns of one product. The margins of the rows that a column did not train on are its held-out gaps. Sparse
products run on one thread: same input, same bytes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.scorers.text_scorers import assign_folds
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

FOLDS = 5
STEPS = 80
POWER_STEPS, COLUMN_POWER_STEPS = 20, 4
GRADIENT_TOLERANCE = 1e-3
_DECIMALS = 9


def compute_held_out_gaps(
    features: "Differences", groups: Sequence[str], seed: int | str, *, cost: float = 1.0, folds: int = FOLDS
) -> FloatArray:
    """Return how much the classifier prefers the positive of each row, float64 (n,); 0 without training rows.

    Args:
        features: (n, d) differences.
        groups: group of each row; the classifier that judges a row saw no row of its group.
        seed: of the folds.
        cost: inverse strength of the L2 penalty.
        folds: number of folds; fewer where there are fewer groups.
    """
    return compute_repeated_gaps(features, groups, [seed], cost=cost, folds=folds)[0]


def compute_repeated_gaps(
    features: "Differences",
    groups: Sequence[str] | IntArray,
    seeds: Sequence[int | str],
    *,
    cost: float = 1.0,
    folds: int = FOLDS,
) -> list[FloatArray]:
    """Return `compute_held_out_gaps` under each of several sets of folds, in one fit.

    Args:
        features: as of `compute_held_out_gaps`.
        groups: likewise.
        seeds: of each set of folds.
        cost: likewise.
        folds: likewise.
    """
    assigned = [assign_folds(groups, folds, seed) for seed in seeds]
    tested = [fold == number for fold in assigned for number in np.unique(fold)]
    if not tested:
        return [np.zeros(features.shape[0]) for _ in seeds]
    margins = _fit_columns(_merge_equal_features(features), ~np.stack(tested, axis=1), cost)[1]
    found, column = list[FloatArray](), 0
    for fold in assigned:
        gaps = np.zeros(features.shape[0])
        for _ in range(len(np.unique(fold))):
            gaps[tested[column]] = np.round(margins[tested[column], column], _DECIMALS)
            column += 1
        found.append(gaps)
    return found


def _merge_equal_features(features: "Differences") -> "Differences":
    # A matrix with the same F F': of equal or opposite columns, as those of n-grams that only occur together, the first,
    # times the root of their number. Columns are compared by two random sums.
    from scipy.sparse import diags

    sums = features.T @ make_numpy_rng(0, "equal features").standard_normal((features.shape[0], 2))
    sums = np.ascontiguousarray(np.where(sums[:, :1] < 0, -sums, sums))
    _, first, number = np.unique(sums.view(np.complex128)[:, 0], return_index=True, return_counts=True)
    merged = features[:, first]
    used = np.bincount(merged.indices, minlength=merged.shape[1]) > 0
    return (merged @ diags(np.sqrt(number))).tocsr()[:, used]


def fit_weights(features: "Differences", cost: float) -> FloatArray:
    """Return the weights w, float64 (d,), for which |w|^2 / 2 + cost * sum(log(1 + exp(-features w))) is small."""
    shares, _ = _fit_columns(features, np.ones((features.shape[0], 1), np.bool_), cost)
    weights: FloatArray = features.T @ shares[:, 0]
    return weights


def _fit_columns(
    features: "Differences", training: npt.NDArray[np.bool_], cost: float
) -> tuple[FloatArray, FloatArray]:
    # Shares a of the training rows in the weights F'a, and margins F F'a of all rows, each (n, columns).
    transposed = features.T  # a view
    step = 1.0 / (1.0 + cost * _estimate_largest_eigenvalues(features, transposed, training) / 4.0)
    limits = GRADIENT_TOLERANCE * cost * np.sqrt(np.maximum(training.sum(axis=0), 1))
    found = np.zeros((2, *training.shape))
    columns, mask = np.arange(training.shape[1]), training.astype(np.float64)
    # Each array holds the shares and the margins, (2, n, columns): all steps are the same for both.
    now, ahead, pace = found.copy(), found.copy(), np.ones(len(columns))
    for _ in range(STEPS):
        residual = mask / (1.0 + np.exp(np.clip(ahead[1], -30.0, 30.0)))
        slope = ahead[0] - cost * residual
        gradient = np.stack([slope, features @ (transposed @ slope)])
        lower = ahead - step * gradient
        moved = lower - now
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        momentum = (pace - 1.0) / faster
        restart = np.sum(gradient[1] * moved[0], axis=0) > 0
        faster[restart], momentum[restart] = 1.0, 0.0
        now, ahead, pace = lower, lower + momentum * moved, faster
        ended = np.sqrt(np.maximum(np.sum(gradient[0] * gradient[1], axis=0), 0.0)) < limits
        if ended.any():
            found[:, :, columns[ended]] = now[:, :, ended]
            left = ~ended
            columns, limits, pace, step = columns[left], limits[left], pace[left], step[left]
            mask = mask[:, left].copy()
            now, ahead = now[:, :, left].copy(), ahead[:, :, left].copy()
            if not len(columns):
                break
    found[:, :, columns] = now
    return found[0], found[1]


def _estimate_largest_eigenvalues(
    features: "Differences", transposed: "Differences", training: npt.NDArray[np.bool_]
) -> FloatArray:
    # `estimate_largest_eigenvalue` of the training rows of each column, float64 (columns,).
    vectors = training * _iterate_power(features, transposed)[:, np.newaxis]
    for _ in range(COLUMN_POWER_STEPS):
        vectors /= np.maximum(_column_norms(vectors), 1e-300)
        vectors = training * (features @ (transposed @ vectors))
    return 1.1 * _column_norms(vectors)


def _iterate_power(features: "Differences", transposed: "Differences", weights: FloatArray | float = 1.0) -> FloatArray:
    # The product of F diag(weights) F' and about its first eigenvector of unit length.
    vector: FloatArray = 1.0 + 0.01 * (np.arange(features.shape[0]) % 7)
    for _ in range(POWER_STEPS):
        size = float(np.sqrt(np.sum(vector * vector)))
        if not size:
            break
        vector = features @ (weights * (transposed @ (vector / size)))
    return vector


def _column_norms(vectors: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(np.sum(vectors * vectors, axis=0))
    return norms


def estimate_largest_eigenvalue(
    features: "Differences", transposed: "Differences", weights: FloatArray | float = 1.0
) -> float:
    """Return slightly more than the largest eigenvalue of F diag(weights) F', by power iteration.

    Args:
        features: F, (n, d).
        transposed: F'.
        weights: float64 (d,), at least 0.
    """
    vector = _iterate_power(features, transposed, weights)
    return 1.1 * float(np.sqrt(np.sum(vector * vector)))
