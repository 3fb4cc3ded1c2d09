"""Format normalisation of candidate rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.candidates.format_normalization import normalize_format, normalize_rows
from pairwright.filters.candidates.rows import candidate_frame


@pytest.mark.parametrize(
    ("text", "tidied_text"),
    [("a cat .", "A cat"), ("  A  cat , a dog. ", "A cat, a dog"), ("A cat!", "A cat!"), ("a\tcat..", "A cat")],
)
def test_case_spacing_and_final_period_are_normalised(text: str, tidied_text: str) -> None:
    assert normalize_format(text) == tidied_text


@given(st.text())
def test_normalised_text_is_unchanged(text: str) -> None:
    assert normalize_format(normalize_format(text)) == normalize_format(text)


def test_spans_of_edits_are_adjusted() -> None:
    edit = {"from": "red", "to": "blue", "from_span": [4, 7], "to_span": [3, 7]}
    frame = candidate_frame([("here", {"caption": " a  red cat .", "negative": "a  blue cat.", "edit": [edit]})])
    row = normalize_rows(frame).row(0, named=True)
    assert (row["caption"], row["negative"]) == ("A red cat", "A blue cat")
    assert row["edit"] == [{"from": "red", "to": "blue", "from_span": [2, 5], "to_span": [2, 6]}]


def test_a_row_with_a_text_of_punctuation_only_is_unchanged() -> None:
    frame = candidate_frame([("here", {"caption": " a cat .", "negative": " . "})])
    assert normalize_rows(frame).equals(frame)
