"""Mean average precision: against scikit-learn, against a random order, and on ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.filters.metrics.retrieval_precision import mean_average_precision, unit_rows


@given(st.integers(0, 10_000), st.integers(3, 40), st.integers(1, 4))
def test_mean_average_precision_equals_its_definition(seed: int, rows: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    embeddings = unit_rows(rng.normal(size=(rows, 8)), "test")
    names = [str(name) for name in rng.integers(0, labels, rows)]
    literal = [value for query in range(rows) if (value := literal_precision(embeddings, names, query)) is not None]
    if not literal:
        return
    found = mean_average_precision(embeddings, names)
    assert found.queries == len(literal)
    assert found.without_match == rows - len(literal)
    assert found.map == pytest.approx(np.mean(literal), abs=1e-6)


def literal_precision(embeddings: np.ndarray, names: list[str], query: int) -> float | None:
    """Return the average precision of one query, as its definition says; None when nothing is to be found."""
    others = [other for other in range(len(names)) if other != query]
    others.sort(key=lambda other: -float(embeddings[query] @ embeddings[other]))
    hits = [names[other] == names[query] for other in others]
    at = [sum(hits[: rank + 1]) / (rank + 1) for rank, hit in enumerate(hits) if hit]
    return sum(at) / len(at) if at else None


def test_random_embeddings_have_the_precision_of_a_random_order() -> None:
    rng = np.random.default_rng(0)
    names = [str(number % 4) for number in range(800)]
    found = mean_average_precision(unit_rows(rng.normal(size=(800, 64)), "test"), names)
    assert found.map == pytest.approx(found.random, abs=0.01)
    assert abs(found.scaled) < 0.02


def test_embeddings_of_the_label_are_perfect_and_equal_embeddings_retrieve_nothing() -> None:
    names = ["a", "b"] * 20
    embeddings = unit_rows(np.eye(2)[[int(name == "b") for name in names]], "test")
    assert mean_average_precision(embeddings, names).map == 1.0
    alike = mean_average_precision(unit_rows(np.ones((40, 3)), "test"), names)
    assert alike.map < alike.random


@pytest.mark.parametrize(
    "broken", [np.zeros((2, 3)), np.array([[1.0, np.nan]]), np.ones(3), np.ones((2, 2), dtype=int)]
)
def test_zero_and_non_finite_embeddings_are_an_error(broken: np.ndarray) -> None:
    with pytest.raises(InputError):
        unit_rows(broken, "e.npy")


def test_labels_without_a_match_are_an_error() -> None:
    with pytest.raises(InputError, match="share"):
        mean_average_precision(unit_rows(np.eye(3), "test"), ["a", "b", "c"])
