"""What a blind classifier reads, held against counting by hand."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.attacks.text_features import (
    compute_format_differences,
    compute_letter_differences,
    compute_word_differences,
)
from pairwright.generators.language.vocabulary import tokenize

caption = st.lists(st.sampled_from(["a", "red", "cat", "cart", "."]), max_size=6).map(" ".join)
rows = st.lists(st.tuples(caption, caption), min_size=1, max_size=8)


def word_runs(text: str) -> Counter[tuple[str, ...]]:
    framed = ["<", *tokenize(text), ">"]
    return Counter(tuple(framed[at : at + size]) for size in (1, 2, 3) for at in range(len(framed) - size + 1))


def letter_runs(text: str) -> Counter[str]:
    framed = [f"<{word}>" for word in tokenize(text)]
    return Counter(word[at : at + size] for word in framed for size in (2, 3, 4) for at in range(len(word) - size + 1))


def columns_by_hand(pairs: list[tuple[str, str]], runs: Callable[[str], Counter[Any]]) -> Counter[tuple[int, ...]]:
    """Return the columns of the differences as a multiset of rows and values; only those of at least two rows."""
    columns: dict[object, list[int]] = {}
    for row, (better, worse) in enumerate(pairs):
        counts = runs(better)
        counts.subtract(runs(worse))
        for run, number in counts.items():
            columns.setdefault(run, [0] * len(pairs))[row] = number
    return Counter(tuple(column) for column in columns.values() if sum(map(bool, column)) > 1)


@given(rows)
def test_word_and_letter_differences_equal_a_plain_count(pairs: list[tuple[str, str]]) -> None:
    better, worse = (list(side) for side in zip(*pairs, strict=True))
    for found, runs in (
        (compute_word_differences(better, worse), word_runs),
        (compute_letter_differences(better, worse).product(), letter_runs),
    ):
        columns = Counter(tuple(int(value) for value in column) for column in found.toarray().T)
        assert columns == columns_by_hand(pairs, runs)


@given(rows)
def test_exchanging_the_texts_changes_the_sign_of_every_difference(pairs: list[tuple[str, str]]) -> None:
    better, worse = (list(side) for side in zip(*pairs, strict=True))

    def letters(positives: list[str], negatives: list[str]) -> Any:
        return compute_letter_differences(positives, negatives).product()

    for differences in (compute_word_differences, letters, compute_format_differences):
        one, other = differences(better, worse).toarray(), differences(worse, better).toarray()
        assert sorted(map(tuple, one.T)) == sorted(map(tuple, -other.T))


def test_format_features_count_marks_and_not_words() -> None:
    assert not compute_format_differences(["A cat."], ["A dog."]).nnz
    for untidy in ("A cat", "a cat.", "A cat .", "A  cat.", "A cat. "):
        assert compute_format_differences(["A cat."], [untidy]).nnz
