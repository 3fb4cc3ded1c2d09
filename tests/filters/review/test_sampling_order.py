"""The order of review: any beginning of it is a fair sample."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.review.sampling_order import review_order

rows = st.lists(st.sampled_from(["replace-object", "swap-object", "add-attribute"]), max_size=60)


@given(rows, st.integers(0, 5))
def test_every_row_comes_once(types: list[str], seed: int) -> None:
    order = review_order([str(n) for n in range(len(types))], types, seed)
    assert sorted(order) == list(range(len(types)))


@given(rows, st.integers(0, 5), st.integers(0, 60))
def test_a_beginning_holds_each_type_in_its_proportion(types: list[str], seed: int, first: int) -> None:
    first = min(first, len(types))
    order = review_order([str(n) for n in range(len(types))], types, seed)
    found = Counter(types[row] for row in order[:first])
    for kind, count in Counter(types).items():
        assert abs(found[kind] - first * count / len(types)) <= len(set(types))


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(types: list[str], shuffler: object) -> None:
    ids = [f"row {n}" for n in range(len(types))]
    places = list(range(len(types)))
    shuffler.shuffle(places)  # type: ignore[attr-defined]
    one = [ids[row] for row in review_order(ids, types, 3)]
    turned = review_order([ids[at] for at in places], [types[at] for at in places], 3)
    assert [ids[places[row]] for row in turned] == one


def test_another_seed_gives_another_order() -> None:
    ids = [str(n) for n in range(50)]
    assert review_order(ids, ["a"] * 50, 0) != review_order(ids, ["a"] * 50, 1)


def test_each_row_is_as_likely_to_be_in_a_sample() -> None:
    """90 rows of one type and 10 of another, ten drawn, 600 seeds: each row is in a tenth of the samples."""
    types = ["common"] * 90 + ["rare"] * 10
    ids = [str(n) for n in range(100)]
    found = Counter(row for seed in range(600) for row in review_order(ids, types, seed)[:10])
    # Standard deviation 7.3 of 60; four and a half of them either side.
    assert all(27 < found[row] < 93 for row in range(100))
