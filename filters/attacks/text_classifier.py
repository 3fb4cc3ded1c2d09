"""Linear classifier of positives and negatives, tested on held-out groups.

Logistic regression without intercept on the odd features of `evidence.py`: weights w that make w.f positive for the
training rows, under an L2 penalty. Rows are assigned to folds by group (their image), and each fold is judged by a
classifier of the others. Fitted by accelerated gradient descent with restarts (Nesterov, 1983; O'Donoghue and Candes,
2015) until the gradient itself is small: a tolerance relative to the first gradient takes longest on a balanced set,
where there is nothing to learn. Sparse products run on one thread: same input, same bytes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairwright.filters.scorers.text_scorers import assign_folds
from pairwright.generators.language.vocabulary import FloatArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

FOLDS = 5
STEPS = 80
GRADIENT_TOLERANCE = 1e-3


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
    gaps = np.zeros(features.shape[0])
    fold = assign_folds(groups, folds, seed)
    for number in np.unique(fold):
        tested = fold == number
        gaps[tested] = np.round(features[tested] @ fit_weights(features[~tested], cost), 9)
    return gaps


def fit_weights(features: "Differences", cost: float) -> FloatArray:
    """Return the weights w, float64 (d,), that minimise |w|^2 / 2 + cost * sum(log(1 + exp(-features w)))."""
    transposed = features.T  # a view
    step = 1.0 / (1.0 + cost * estimate_largest_eigenvalue(features, transposed) / 4.0)
    weights = np.zeros(features.shape[1])
    ahead, pace = weights, 1.0
    for _ in range(STEPS):
        residual = 1.0 / (1.0 + np.exp(np.clip(features @ ahead, -30.0, 30.0)))
        gradient = ahead - cost * (transposed @ residual)
        lower = ahead - step * gradient
        moved = lower - weights
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        momentum = (pace - 1.0) / faster
        if np.sum(gradient * moved) > 0:
            faster, momentum = 1.0, 0.0
        weights, ahead, pace = lower, lower + momentum * moved, faster
        if np.sqrt(np.sum(gradient * gradient)) < GRADIENT_TOLERANCE * cost * max(features.shape[0], 1) ** 0.5:
            break
    return weights


def estimate_largest_eigenvalue(
    features: "Differences", transposed: "Differences", weights: FloatArray | float = 1.0
) -> float:
    """Return slightly more than the largest eigenvalue of F diag(weights) F', by power iteration.

    Args:
        features: F, (n, d).
        transposed: F'.
        weights: float64 (d,), at least 0.
    """
    vector: FloatArray = 1.0 + 0.01 * (np.arange(features.shape[0]) % 7)
    size = 0.0
    for _ in range(20):
        size = float(np.sqrt(np.sum(vector * vector)))
        if not size:
            return 0.0
        vector = features @ (weights * (transposed @ (vector / size)))
    return 1.1 * float(np.sqrt(np.sum(vector * vector)))
