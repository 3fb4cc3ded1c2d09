"""Linear classifier of positives and negatives, tested on held-out groups.

Logistic regression without intercept on the odd features of `evidence.py`: weights w that make w.f positive for the
training rows, under an L2 penalty. Rows are assigned to folds by group (their image), and each fold is judged by a
classifier of the others. Fitted by Newton's method whose steps are solved by conjugate gradients, inexactly far from
the minimum (Nocedal and Wright, 2006, algorithm 7.1), until the gradient itself is small: a tolerance relative to the
first gradient takes longest on a balanced set, where there is nothing to learn. It needs 25 to 80 sparse products, which
run on one thread: same input, same bytes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairwright.filters.scorers.text_scorers import assign_folds
from pairwright.generators.language.vocabulary import FloatArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

FOLDS = 5
GRADIENT_TOLERANCE = 1e-3
STEPS, CONJUGATE_STEPS = 20, 30
_SHORTEST_STEP, _SUFFICIENT_DECREASE = 1e-3, 1e-4


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
    tolerance = GRADIENT_TOLERANCE * cost * max(features.shape[0], 1) ** 0.5
    weights, margins = np.zeros(features.shape[1]), np.zeros(features.shape[0])
    for _ in range(STEPS):
        residual = 1.0 / (1.0 + np.exp(np.clip(margins, -30.0, 30.0)))
        gradient = weights - cost * (transposed @ residual)
        if _norm(gradient) < tolerance:
            break
        curvature = cost * residual * (1.0 - residual)
        step, moved = _solve_newton_step(features, transposed, curvature, gradient, tolerance)
        now, falls = _loss(weights, margins, cost), float(np.sum(gradient * step))
        length = 1.0
        while length > _SHORTEST_STEP and (
            _loss(weights + length * step, margins + length * moved, cost) > now + _SUFFICIENT_DECREASE * length * falls
        ):
            length /= 2.0
        weights, margins = weights + length * step, margins + length * moved
    return weights


def _solve_newton_step(
    features: "Differences", transposed: "Differences", curvature: FloatArray, gradient: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    # Conjugate gradients for (I + F' diag(curvature) F) step = -gradient; the step, and F step.
    step, moved = np.zeros(len(gradient)), np.zeros(len(curvature))
    left, ahead = -gradient, -gradient
    size = first = _norm(left)
    for _ in range(CONJUGATE_STEPS):
        product = features @ ahead
        bent = ahead + transposed @ (curvature * product)
        length = size**2 / float(np.sum(ahead * bent))
        step, moved, left = step + length * ahead, moved + length * product, left - length * bent
        before, size = size, _norm(left)
        if size <= max(0.5 * first, 0.3 * tolerance):
            break
        ahead = left + (size / before) ** 2 * ahead
    return step, moved


def _norm(vector: FloatArray) -> float:
    return float(np.sqrt(np.sum(vector * vector)))


def _loss(weights: FloatArray, margins: FloatArray, cost: float) -> float:
    return float(0.5 * np.sum(weights * weights) + cost * np.sum(np.logaddexp(0.0, -margins)))


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
