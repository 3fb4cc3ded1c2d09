"""Duplicate detection: all equal and nearly all near duplicates are found, independent of batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.duplicates import DuplicateFinder, mark_new_rows
from pairwright.indexes.encoders.protocols import Vectors
from tests.example_counts import examples
from tests.indexes.corpus import mixture, unit

DIM = 32


def matched(
    rows: Vectors, near: float, batch: int = 1000, copies: DuplicateFinder | None = None, kept: Vectors | None = None
) -> tuple[NDArray[np.int64], DuplicateFinder, Vectors]:
    """Answers for all rows, the object that gave them, and the stored vectors."""
    copies = copies or DuplicateFinder(rows.shape[1], near)
    stored = list(kept) if kept is not None else []
    answers = [np.empty(0, np.int64)]

    def known(numbers: NDArray[np.int64]) -> Vectors:
        return np.array([stored[n] for n in numbers], np.float32).reshape(-1, rows.shape[1])

    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        before = copies.vectors
        assert before == len(stored)
        found = copies.match(part, known)
        stored.extend(part[mark_new_rows(found, before)])
        answers.append(found)
    return np.concatenate(answers), copies, np.array(stored, np.float32).reshape(-1, rows.shape[1])


def turned(rows: Vectors, cosine: float, *names: str) -> Vectors:
    """Rows of exactly that cosine to the given ones, each in a random direction."""
    rng = make_numpy_rng("turned", *names).normal(size=rows.shape)
    across = rng - (rng * rows).sum(axis=1, keepdims=True) * rows
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return unit(cosine * rows + np.sqrt(1 - cosine**2) * across)


def one_by_one(rows: Vectors, near: float) -> list[int]:
    """What is meant, as a loop: a copy of the equal stored vector, else of the oldest near one, else new."""
    stored: list[Vectors] = []
    answers = []
    for row in rows:
        equal = [n for n, other in enumerate(stored) if np.array_equal(row, other)]
        alike = [
            n for n, other in enumerate(stored) if near < 1 and float(row.astype(float) @ other.astype(float)) >= near
        ]
        answers.append((equal or alike or [len(stored)])[0])
        if not equal and not alike:
            stored.append(row)
    return answers


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 720), max_size=60), st.sampled_from([1.0, 0.999, 0.98]), st.integers(1, 70))
def test_small_pools_are_settled_as_one_by_one(steps: list[int], near: float, batch: int) -> None:
    angles = np.array(steps) * np.pi / 360
    rows = np.zeros((len(steps), DIM), np.float32)
    rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    assert matched(rows, near, batch)[0].tolist() == one_by_one(rows + np.float32(0), near)


@pytest.fixture(scope="module")
def stream() -> Vectors:
    """Vectors with equal and near copies among them, some of them adjacent."""
    base = mixture(6000)
    rng = make_numpy_rng("stream")
    rows = np.concatenate(
        [base, base[rng.integers(0, 6000, 900)], turned(base[:1500], 0.9995), turned(base[:600], 0.99)]
    )
    return rows[rng.permutation(len(rows))]


def test_the_answers_do_not_depend_on_batches(stream: Vectors) -> None:
    whole, copies, _ = matched(stream, 0.999, len(stream))
    for batch in (250, 999):
        again, others, _ = matched(stream, 0.999, batch)
        assert np.array_equal(whole, again)
        assert (copies.equal, copies.near) == (others.equal, others.near)


def test_every_equal_vector_is_found_at_any_distance() -> None:
    base = mixture(5000)
    for near in (1.0, 0.999):
        answers, copies, _ = matched(np.concatenate([base, base[::-1]]), near)
        assert np.array_equal(answers[5000:], answers[:5000][::-1])
        assert copies.equal >= 5000
        assert copies.vectors + copies.equal + copies.near == 10000


def test_nothing_else_is_a_copy(stream: Vectors) -> None:
    answers, _, stored = matched(stream, 0.999)
    assert ((stream * stored[answers]).sum(axis=1) >= 0.999 - 1e-6).all()


def test_near_duplicates_are_found_at_the_documented_rate(stream: Vectors) -> None:
    _, copies, stored = matched(stream, 0.999)
    asked = stored[: len(stored) - 300]
    answers, _, _ = matched(turned(asked, 0.99901, "asked"), 0.999, copies=copies, kept=stored)
    assert (answers < len(stored)).mean() >= 0.99


def test_near_copies_are_found_in_a_narrow_cone() -> None:
    axis = np.zeros(DIM)
    axis[0] = 1.5
    base = unit(axis + mixture(6000))
    _, copies, stored = matched(base, 0.999)
    answers, _, _ = matched(turned(stored[:4000], 0.9995), 0.999, copies=copies, kept=stored)
    assert (answers < len(stored)).mean() >= 0.99


def test_at_one_only_equal_vectors_are_copies(stream: Vectors) -> None:
    answers, copies, _ = matched(stream, 1.0)
    assert copies.vectors == len(np.unique(stream, axis=0)) == answers.max() + 1
    assert copies.near == 0


def test_signed_zeros_are_equal() -> None:
    rows = np.zeros((2, DIM), np.float32)
    rows[:, 0] = 1
    rows[1, 1] = -0.0
    assert matched(rows, 1.0)[0].tolist() == [0, 0]


def test_a_chain_of_near_duplicates_does_not_join_different_vectors() -> None:
    angles = np.arange(40) * 0.03  # neighbours have 0.99955, the first and third 0.9982
    rows = np.zeros((40, DIM), np.float32)
    rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    answers, copies, stored = matched(rows, 0.999)
    assert copies.vectors == 20
    assert ((rows * stored[answers]).sum(axis=1) >= 0.999).all()


def test_extending_an_index_equals_building_it_at_once(stream: Vectors) -> None:
    whole, _, _ = matched(stream, 0.999)
    first, _, stored = matched(stream[:7000], 0.999)
    copies = DuplicateFinder(DIM, 0.999)
    for start in range(0, len(stored), 777):
        copies.add_known(stored[start : start + 777])
    more, _, _ = matched(stream[7000:], 0.999, copies=copies, kept=stored)
    assert np.array_equal(np.concatenate([first, more]), whole)


@pytest.mark.parametrize("near", [1.0, 0.999])
def test_memory_is_at_most_eighty_bytes_a_vector(near: float) -> None:
    count = 40_000
    rows = unit(make_numpy_rng("many").normal(size=(count, DIM)))
    copies = DuplicateFinder(DIM, near)
    for start in range(0, count, 10_000):
        copies.match(rows[start : start + 10_000], lambda numbers: rows[numbers])
        assert start < 10_000 or copies.bytes <= 80 * copies.vectors


def test_thousands_in_one_place_stay_apart_and_their_copies_are_found() -> None:
    elsewhere, crowd = 2500, 3000
    dense = turned(np.repeat(mixture(1), crowd, axis=0), 0.9965)  # cosines of about 0.993 among them
    rows = np.concatenate([mixture(elsewhere, DIM, 40, "elsewhere"), dense])
    answers, _, _ = matched(np.concatenate([rows, dense[:100]]), 0.999)
    assert np.array_equal(answers[: len(rows)], np.arange(len(rows)))
    assert np.array_equal(answers[len(rows) :], np.arange(elsewhere, elsewhere + 100))
