"""Classifiers on features as a whole and as products of two matrices."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.attacks.text_classifier import Gram, compute_repeated_gaps, factor_equal_rows
from pairwright.filters.attacks.text_features import FactoredDifferences

ROWS = 60
GROUPS = np.arange(ROWS) // 2


def sparse(rows: int, columns: int, seed: str) -> csr_matrix:
    rng = make_numpy_rng(0, seed)
    return csr_matrix(
        np.where(rng.random((rows, columns)) < 0.3, rng.integers(-2, 3, (rows, columns)), 0).astype(float)
    )


PLAIN, FACTORED = sparse(ROWS, 12, "plain"), FactoredDifferences(sparse(ROWS, 9, "left"), sparse(9, 30, "right"))


def test_the_product_of_blocks_is_that_of_all_features_side_by_side() -> None:
    vectors = make_numpy_rng(0, "vectors").standard_normal((ROWS, 4))
    features = hstack([PLAIN, FACTORED.product(), PLAIN]).toarray()
    found = Gram.of([PLAIN, FACTORED, PLAIN]) @ vectors
    assert found == pytest.approx(features @ (features.T @ vectors))


def test_a_classifier_finds_the_same_in_factors_as_in_their_product() -> None:
    one = compute_repeated_gaps([PLAIN, FACTORED], GROUPS, ["a", "b"])
    other = compute_repeated_gaps(hstack([PLAIN, FACTORED.product()], format="csr"), GROUPS, ["a", "b"])
    assert np.stack(one) == pytest.approx(np.stack(other), abs=1e-6)
    assert np.abs(np.stack(one)).max() > 0.1


def test_equal_rows_are_kept_once() -> None:
    repeated = PLAIN[np.arange(ROWS) % 7]
    found = factor_equal_rows(repeated)
    assert found.right.shape[0] == 7
    assert (found.product() != repeated).nnz == 0


def test_rows_without_features_do_not_change_what_is_found_in_others() -> None:
    rare = PLAIN.copy()
    rare.data[rare.indptr[ROWS // 3] :] = 0.0
    rare.eliminate_zeros()
    assert 2 * np.count_nonzero(np.diff(rare.indptr)) < ROWS
    (found,) = compute_repeated_gaps(rare, GROUPS, ["a"])
    # A feature that is nearly 0 in all rows keeps them together.
    marked = hstack([rare, csr_matrix(np.full((ROWS, 1), 1e-9))], format="csr")
    assert found == pytest.approx(compute_repeated_gaps(marked, GROUPS, ["a"])[0], abs=1e-6)
    assert not found[ROWS // 3 :].any()
    assert found.any()
