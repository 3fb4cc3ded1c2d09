"""Cuts of a set by quota and cap: the same in any number of buckets, and for any part of the rows."""

from functools import partial

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.generators.excess import find_cut
from tests.example_counts import examples

WORDS = st.lists(st.sampled_from(["cat", "cow", "pig", "hen", "owl"]), max_size=2, unique=True)
rows_of_words = st.lists(WORDS, max_size=50)
quotas = st.one_of(st.none(), st.integers(0, 60))
shares = st.one_of(st.just(1.0), st.sampled_from([0.0, 0.01, 0.1, 0.29, 0.5]), st.floats(0, 1))


def frame_of(words: list[list[str]]) -> pl.DataFrame:
    """Return rows with keys that are out of order and not unique."""
    rows = [(f"{at * 7919 % 31:04}", f"id{at}", each) for at, each in enumerate(words)]
    return pl.DataFrame(rows, {"key": pl.String, "id": pl.String, "words": pl.List(pl.String)}, orient="row")


@settings(max_examples=examples(40), deadline=None)
@given(rows_of_words, quotas, shares, st.integers(1, 31), st.integers(0, 50))
def test_buckets_and_parts_do_not_matter(
    words: list[list[str]], quota: int | None, share: float, size: int, parted: int
) -> None:
    rows = frame_of(words)
    buckets = [
        rows.filter(pl.col("key").is_between(pl.lit(f"{low:04}"), pl.lit(f"{low + size:04}"), closed="left"))
        for low in range(0, 31, size)
    ]
    cut, counts = find_cut(partial(iter, [rows]), quota, share)
    same, same_counts = find_cut(partial(iter, buckets), quota, share)
    assert same_counts == counts
    reasons = cut.reasons(rows).to_list()
    assert same.reasons(rows[:parted]).to_list() + same.reasons(rows[parted:]).to_list() == reasons
    assert reasons.count("") == counts.given
