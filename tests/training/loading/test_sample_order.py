"""Sample order: properties over all sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.sample_order import Ends, SampleOrder

sizes = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda counts: sum(counts) > 0).map(tuple)


def seen(order: SampleOrder, epoch: int = 0) -> list[list[list[int]]]:
    """The numbers of each step and rank."""
    return [[order.take(epoch, step, rank).tolist() for rank in range(order.ranks)] for step in range(order.steps)]


def flat(steps: list[list[list[int]]]) -> list[int]:
    """The numbers of all steps and ranks, in order."""
    return [number for step in steps for rank in step for number in rank]


@given(sizes, st.integers(1, 7), st.integers(1, 4), st.integers(0, 20), st.integers(0, 3))
def test_an_even_epoch_sees_every_sample_exactly_once_in_batches_of_one_size_or_one_less(
    counts: tuple[int, ...], batch: int, ranks: int, window: int, epoch: int
) -> None:
    if sum(counts) < ranks or (batch == 1 and sum(counts) % ranks):
        with pytest.raises(UsageError, match=r"too few for one step|cannot divide"):
            SampleOrder(counts, batch, ranks)
        return
    steps = seen(SampleOrder(counts, batch, ranks, seed=3, window=window), epoch)
    assert sorted(flat(steps)) == list(range(sum(counts)))
    lengths = {len(rank) for step in steps for rank in step}
    assert max(lengths) - min(lengths) <= 1
    assert max(lengths) <= batch
    assert min(lengths) >= 1


@given(sizes, st.integers(1, 7), st.integers(1, 4), st.integers(0, 20))
def test_a_repeating_epoch_has_full_batches_and_repeats_less_than_a_step(
    counts: tuple[int, ...], batch: int, ranks: int, window: int
) -> None:
    if sum(counts) < batch * ranks:  # a sample would come twice in one batch
        with pytest.raises(UsageError, match="too few for one step"):
            SampleOrder(counts, batch, ranks, ends="repeat")
        return
    order = SampleOrder(counts, batch, ranks, seed=3, window=window, ends="repeat")
    numbers = flat(seen(order))
    assert sum(counts) <= len(numbers) == order.steps * batch * ranks < sum(counts) + batch * ranks
    assert set(numbers) == set(range(sum(counts)))
    steps = [flat([step]) for step in seen(order)]
    assert all(len(set(step)) == len(step) for step in steps)
    assert numbers[: sum(counts)] == flat(seen(SampleOrder(counts, 1, 1, seed=3, window=window)))


@given(sizes, st.integers(1, 7), st.integers(1, 4))
def test_a_dropping_epoch_has_full_batches_without_repeats_and_skips_less_than_a_step(
    counts: tuple[int, ...], batch: int, ranks: int
) -> None:
    if sum(counts) < batch * ranks:
        with pytest.raises(UsageError, match="too few for one step"):
            SampleOrder(counts, batch, ranks, ends="drop")
        return
    order = SampleOrder(counts, batch, ranks, seed=3, ends="drop")
    numbers = flat(seen(order))
    assert len(set(numbers)) == len(numbers) == sum(counts) // (batch * ranks) * batch * ranks


@given(sizes, st.integers(1, 5), st.sampled_from(["even", "repeat", "drop"]))
def test_two_ranks_take_together_what_one_rank_takes_of_twice_the_size(
    counts: tuple[int, ...], batch: int, ends: Ends
) -> None:
    if sum(counts) < 2 * batch or (batch == 1 and sum(counts) % 2):
        return
    together = [flat([step]) for step in seen(SampleOrder(counts, batch, 2, seed=5, ends=ends))]
    assert together == [flat([step]) for step in seen(SampleOrder(counts, 2 * batch, 1, seed=5, ends=ends))]


def test_another_epoch_and_another_seed_give_another_order_and_the_same_the_same() -> None:
    order = SampleOrder((50, 50), 10, seed=1)
    assert seen(order, 0) == seen(SampleOrder((50, 50), 10, seed=1), 0)
    assert seen(order, 0) != seen(order, 1)
    assert seen(order, 0) != seen(SampleOrder((50, 50), 10, seed=2), 0)


def test_a_window_stays_within_the_shards_it_reaches() -> None:
    for step in seen(SampleOrder((10, 10, 10), 10, seed=1, window=10)):
        assert len({number // 10 for number in flat([step])}) == 1
        assert flat([step]) != sorted(flat([step]))


def test_without_a_window_samples_keep_the_order_of_the_shards() -> None:
    assert flat(seen(SampleOrder((3, 0, 4), 2, window=0))) == list(range(7))


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"ranks": 0}, {"window": -1}, {"ranks": 6}])
def test_too_few_samples_for_a_step_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        SampleOrder(**{"counts": (2, 3), "batch_size": 2, **wrong})  # type: ignore[arg-type]
