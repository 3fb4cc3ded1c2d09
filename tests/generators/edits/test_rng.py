"""Chance for the makers of edits."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.edits.rng import RandomStream, WeightedWords

SEEDS = st.integers(min_value=0, max_value=2**64 - 1)


@given(seed=SEEDS, items=st.lists(st.integers()))
def test_a_shuffle_keeps_the_items_and_leaves_the_given_list_alone(seed: int, items: list[int]) -> None:
    before = list(items)
    assert sorted(RandomStream(seed).shuffled(items)) == sorted(items)
    assert items == before


@given(seed=SEEDS, number=st.integers(min_value=1, max_value=2**31))
def test_draws_stay_below_their_number_and_a_seed_gives_the_same_ones(seed: int, number: int) -> None:
    one, other = RandomStream(seed), RandomStream(seed)
    drawn = [one.below(number) for _ in range(5)]
    assert all(0 <= each < number for each in drawn)
    assert drawn == [other.below(number) for _ in range(5)]
    assert 0 <= one.share() < 1


def test_every_order_of_three_comes_equally_often() -> None:
    draws = RandomStream(1)
    orders = Counter(tuple(draws.shuffled("abc")) for _ in range(6000))
    assert len(orders) == 6
    assert all(850 < often < 1150 for often in orders.values())


@given(seed=SEEDS, most=st.integers(min_value=1, max_value=6))
def test_an_urn_gives_no_word_twice_and_no_more_than_asked_for(seed: int, most: int) -> None:
    urn = WeightedWords.of(("ant", "bee", "cow", "dog"), iter((1.0, 2.0, 3.0, 4.0)))
    drawn = list(RandomStream(seed).weighted_sample(urn, most))
    assert 1 <= len(drawn) == len(set(drawn)) <= most
    assert set(drawn) <= set(urn.words)


def test_an_urn_gives_heavier_words_sooner_in_the_measure_of_their_weights() -> None:
    draws, urn = RandomStream(7), WeightedWords.of(("light", "heavy"), iter((1.0, 3.0)))
    first = Counter(next(draws.weighted_sample(urn, 1)) for _ in range(4000))
    assert 0.72 < first["heavy"] / 4000 < 0.78


def test_an_urn_without_words_gives_none() -> None:
    assert list(RandomStream(0).weighted_sample(WeightedWords.of((), iter(())), 3)) == []
