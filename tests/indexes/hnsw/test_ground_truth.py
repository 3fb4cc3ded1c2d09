"""Ground truth of sample queries: independent of batches and parts; recall."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from pairwright.datasets.errors import StorageError
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.ground_truth import (
    TRUE_NEIGHBOURS,
    GroundTruth,
    GroundTruthSearch,
    merge_ground_truths,
    read_ground_truth,
    write_ground_truth,
)
from tests.indexes.corpus import mixture

QUERIES = mixture(6, 32, 40, "queries")
ROWS = mixture(400)


def truth_of(rows: Vectors, piece: int = 1000) -> GroundTruth:
    search = GroundTruthSearch(QUERIES)
    for start in range(0, len(rows), piece):
        search.add(rows[start : start + piece], start)
    return search.truth


def test_the_number_of_threads_changes_no_bit_of_the_truth() -> None:
    rows = np.random.default_rng(3).standard_normal((300, 256), np.float32)  # enough for BLAS to share out
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            search = GroundTruthSearch(rows)
            search.add(rows, 0)
        found.append(search.truth.scores.tobytes())
    assert found[0] == found[1]


@given(st.integers(1, 300), st.integers(0, 400))
def test_pieces_and_parts_give_the_truth_of_all(piece: int, cut: int) -> None:
    order = np.argsort(-(QUERIES @ ROWS.T), axis=1)[:, :TRUE_NEIGHBOURS]
    assert (truth_of(ROWS, piece).numbers == order).all()
    parts = [(truth_of(ROWS[:cut]), 0), (truth_of(ROWS[cut:]), cut)]
    assert (merge_ground_truths(parts).numbers == order).all()


def test_a_ground_truth_can_be_extended(tmp_path: Path) -> None:
    write_ground_truth(tmp_path / "probes.npz", truth_of(ROWS[:150]))
    begun = read_ground_truth(tmp_path / "probes.npz")
    search = GroundTruthSearch(begun.queries, begun)
    search.add(ROWS[150:], 150)
    assert (search.truth.numbers == truth_of(ROWS).numbers).all()


def test_recall_counts_ties_whichever_is_named_and_nothing_that_is_missing() -> None:
    rows = ROWS[[0, 1, 1, 2, 3]]
    search = GroundTruthSearch(ROWS[1:2])
    search.add(rows, 0)
    truth = search.truth
    assert truth.numbers[0, :2].tolist() == [1, 2]
    assert [truth.recall(np.array([[number]])) for number in (1, 2, 0, -1)] == [1, 1, 0, 0]
    assert truth.recall(np.array([[2, 1]])) == 1
    assert truth.recall(np.array([[2, -1]])) == 0.5


def test_a_damaged_file_is_detected(tmp_path: Path) -> None:
    (tmp_path / "probes.npz").write_bytes(b"PK no zip")
    with pytest.raises(StorageError, match="damaged"):
        read_ground_truth(tmp_path / "probes.npz")
