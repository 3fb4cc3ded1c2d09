"""Linear classifier of positives and negatives, tested on held-out groups.

Logistic regression without intercept on the odd features of `evidence.py`: weights w that make w.f positive for the
training rows, under an L2 penalty. Rows are assigned to folds by group (their image), and each fold is judged by a
classifier of the others. Fitted by accelerated gradient descent with restarts (Nesterov, 1983; O'Donoghue and Candes,
2015) until the gradient itself is small: a tolerance relative to the first gradient takes longest on a balanced set,
where there is nothing to learn. It stops after `STEPS` steps, which regularises a little more.

The weights are sums of training rows, w = F'a, and so are all steps. So the descent works on a and on the margins F w:
only the product F F' of each step reads the features, and all classifiers of one matrix (each fold of each set of folds)
are columns of one product. Equal features count once there, and features that are a product of two matrices are
multiplied by one after the other (`Gram`). The margins of the rows that a column did not train on are its held-out gaps.
Sparse products run on one thread: same input, same bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.text_features import FactoredDifferences
from pairwright.filters.scorers.text_scorers import assign_folds
from pairwright.generators.language.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from pairwright.filters.attacks.text_features import Differences

FOLDS = 5
STEPS = 80
POWER_STEPS, COLUMN_POWER_STEPS = 20, 4
GRADIENT_TOLERANCE = 1e-3
_DECIMALS = 9


Features: TypeAlias = "Differences | FactoredDifferences"


def compute_repeated_gaps(
    features: "Features | Sequence[Features]",
    groups: Sequence[str] | IntArray,
    seeds: Sequence[int | str],
    *,
    cost: float = 1.0,
) -> list[FloatArray]:
    """Return how much the classifier prefers the positive of each row, float64 (n,), under each of several sets of folds.

    A row is 0 without training rows. All classifiers are one fit.

    Args:
        features: (n, d) differences, or several of them, side by side.
        groups: group of each row; the classifier that judges a row saw no row of its group.
        seeds: of each set of folds.
        cost: inverse strength of the L2 penalty.
    """
    blocks = features if isinstance(features, list) else [features]
    has_features = np.any([_has_features(block) for block in blocks], axis=0)
    rows = len(has_features)
    assigned = [assign_folds(groups, FOLDS, seed) for seed in seeds]
    tested = [fold == number for fold in assigned for number in np.unique(fold)]
    if not tested:
        return [np.zeros(rows) for _ in seeds]
    margins = _fit_margins(blocks, has_features, ~np.stack(tested, axis=1), cost)
    found, column = list[FloatArray](), 0
    for fold in assigned:
        gaps = np.zeros(rows)
        for _ in range(len(np.unique(fold))):
            gaps[tested[column]] = np.round(margins[tested[column], column], _DECIMALS)
            column += 1
        found.append(gaps)
    return found


def _has_features(features: Features) -> npt.NDArray[np.bool_]:
    # Whether a row has any feature.
    matrix = features.left if isinstance(features, FactoredDifferences) else features
    return np.asarray(np.diff(matrix.indptr) > 0, np.bool_)


def _fit_margins(
    blocks: Sequence[Features], has_features: npt.NDArray[np.bool_], training: npt.NDArray[np.bool_], cost: float
) -> FloatArray:
    # Margins of all rows, (n, columns). Rows without features have none, and teach nothing: where most are so, as of
    # the format, the others are fitted alone.
    if 2 * np.count_nonzero(has_features) > len(has_features):
        return _fit_columns(Gram.of(blocks), training, cost)[1]
    margins = np.zeros(training.shape)
    own = [
        block.of(has_features) if isinstance(block, FactoredDifferences) else block[has_features] for block in blocks
    ]
    sizes, places = training.sum(axis=0), np.flatnonzero(has_features)
    margins[has_features] = _fit_columns(Gram.of(own), training[has_features], cost, sizes, places)[1]
    return margins


def factor_equal_rows(features: "Differences") -> FactoredDifferences:
    """Return the features as the different rows, and which of them each row is; rows are compared by two random sums."""
    from scipy.sparse import csr_matrix

    sums = features @ make_numpy_rng(0, "equal rows").standard_normal((features.shape[1], 2))
    _, first, number = np.unique(sums.view(np.complex128)[:, 0], return_index=True, return_inverse=True)
    rows = len(number)
    return FactoredDifferences(
        csr_matrix((np.ones(rows), (np.arange(rows), number)), (rows, len(first))), features[first]
    )


@dataclass(frozen=True, eq=False)
class Gram:
    """The matrix F F' of features that stand side by side, as a product with vectors.

    Attributes:
        plain: features, and their transpose.
        factored: left factors and their transposes, right factors and their transposes.
    """

    plain: Sequence[tuple["Differences", "Differences"]]
    factored: Sequence[tuple["Differences", "Differences", "Differences", "Differences"]]

    @classmethod
    def of(cls, blocks: Sequence[Features]) -> "Gram":
        """Return the product of the blocks."""
        from scipy.sparse import block_diag, hstack

        plain = [block for block in blocks if not isinstance(block, FactoredDifferences)]
        factored = [_drop_unused(block) for block in blocks if isinstance(block, FactoredDifferences)]
        found, products = [], []
        if plain:
            merged = _merge_equal_features(hstack(plain, format="csr") if len(plain) > 1 else plain[0])
            found.append((merged, merged.T))  # a view
        if factored:
            left = hstack([block.left for block in factored], format="csr")
            right = block_diag([_merge_equal_features(block.right) for block in factored], format="csr")
            products.append((left, left.T, right, right.T))
        return cls(found, products)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int((self.plain or self.factored)[0][0].shape[0])

    def __matmul__(self, vectors: FloatArray) -> FloatArray:
        """Return the product with vectors, (n,) or (n, columns)."""
        found: FloatArray | None = None
        for features, transposed in self.plain:
            found = features @ (transposed @ vectors)
        for left, left_transposed, right, right_transposed in self.factored:
            more = left @ (right @ (right_transposed @ (left_transposed @ vectors)))
            found = more if found is None else np.add(found, more, out=more)
        assert found is not None
        return found


def _drop_unused(block: FactoredDifferences) -> FactoredDifferences:
    used = np.bincount(block.left.indices, minlength=block.left.shape[1]) > 0
    return FactoredDifferences(block.left[:, used], block.right[used])


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
    gram = Gram([(features, features.T)], [])
    shares, _ = _fit_columns(gram, np.ones((features.shape[0], 1), np.bool_), cost)
    weights: FloatArray = features.T @ shares[:, 0]
    return weights


def _fit_columns(
    gram: Gram,
    training: npt.NDArray[np.bool_],
    cost: float,
    sizes: IntArray | None = None,
    places: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    # Shares a of the training rows in the weights F'a, and margins F F'a of all rows, each (n, columns). If rows without
    # features are left out, ``sizes`` counts all training rows, and ``places`` are those of the others among all.
    places = np.arange(gram.rows) if places is None else places
    step = 1.0 / (1.0 + cost * _estimate_largest_eigenvalues(gram, training, places) / 4.0)
    sizes = training.sum(axis=0) if sizes is None else sizes
    limits = GRADIENT_TOLERANCE * cost * np.sqrt(np.maximum(sizes, 1))
    found = np.zeros((2, *training.shape))
    columns, mask = np.arange(training.shape[1]), training.astype(np.float64)
    # Each array holds the shares and the margins, (2, n, columns): all steps are the same for both. They are allocated
    # once, as an array of some MB takes longer to allocate than to compute.
    now, ahead, gradient, lower, moved, spare = (np.zeros_like(found) for _ in range(6))
    pace = np.ones(len(columns))
    for _ in range(STEPS):
        residual: FloatArray = _divide_by_odds(mask, ahead[1], spare[0])
        residual *= cost
        np.subtract(ahead[0], residual, out=gradient[0])
        gradient[1] = gram @ gradient[0]
        np.subtract(ahead, np.multiply(step, gradient, out=spare), out=lower)
        np.subtract(lower, now, out=moved)
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        momentum = (pace - 1.0) / faster
        restart = np.sum(np.multiply(gradient[1], moved[0], out=spare[0]), axis=0) > 0
        faster[restart], momentum[restart] = 1.0, 0.0
        now, lower, pace = lower, now, faster
        np.add(now, np.multiply(momentum, moved, out=spare), out=ahead)
        size = np.sum(np.multiply(gradient[0], gradient[1], out=spare[0]), axis=0)
        ended = np.sqrt(np.maximum(size, 0.0)) < limits
        if ended.any():
            found[:, :, columns[ended]] = now[:, :, ended]
            left = ~ended
            columns, limits, pace, step = columns[left], limits[left], pace[left], step[left]
            mask = mask[:, left].copy()
            now, ahead = now[:, :, left].copy(), ahead[:, :, left].copy()
            if not len(columns):
                break
            gradient, lower, moved, spare = (np.zeros_like(now) for _ in range(4))
    found[:, :, columns] = now
    return found[0], found[1]


def _divide_by_odds(mask: FloatArray, margins: FloatArray, out: FloatArray) -> FloatArray:
    # Return mask divided by one plus the odds, in ``out``.
    np.clip(margins, -30.0, 30.0, out=out)
    np.exp(out, out=out)
    out += 1.0
    np.divide(mask, out, out=out)
    return out


def _estimate_largest_eigenvalues(gram: Gram, training: npt.NDArray[np.bool_], places: IntArray) -> FloatArray:
    # `estimate_largest_eigenvalue` of the training rows of each column, float64 (columns,).
    vectors = training * _iterate_power(gram.__matmul__, places)[:, np.newaxis]
    for _ in range(COLUMN_POWER_STEPS):
        vectors /= np.maximum(_column_norms(vectors), 1e-300)
        vectors = training * (gram @ vectors)
    return 1.1 * _column_norms(vectors)


def _iterate_power(product: Callable[[FloatArray], FloatArray], places: IntArray) -> FloatArray:
    # The product with about the first eigenvector of unit length.
    vector: FloatArray = np.asarray(1.0 + 0.01 * (places % 7), np.float64)
    for _ in range(POWER_STEPS):
        size = float(np.sqrt(np.sum(vector * vector)))
        if not size:
            break
        vector = product(vector / size)
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
    vector = _iterate_power(lambda vector: features @ (weights * (transposed @ vector)), np.arange(features.shape[0]))
    return 1.1 * float(np.sqrt(np.sum(vector * vector)))
