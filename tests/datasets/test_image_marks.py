"""Texts with image marks, in parts and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.image_marks import count_marks, join_parts, mark_before, split_at_marks
from pairwright.datasets.records import IMAGE_TOKEN
from tests.example_counts import examples

pieces = st.sampled_from([IMAGE_TOKEN, "\n", " ", "a", "What?", "Image 1: ", "<video>", "<imag", "é\n"])
texts = st.lists(pieces, min_size=1, max_size=8).map("".join).map(str.strip).filter(bool)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("What?", ["What?"]),
        ("<image>\n<image>\nWhich?", ["<image>", "<image>", "Which?"]),
        ("Image 1: <image> Image 2: <image>", ["Image 1: ", "<image>", " Image 2: ", "<image>"]),
        ("<image><image>A\n\nB", ["<image>", "<image>", "A\n\nB"]),
    ],
)
def test_a_text_is_split_at_its_marks(text: str, parts: list[str]) -> None:
    assert split_at_marks(text) == parts


@given(texts)
@settings(max_examples=examples(200))
def test_parts_are_the_same_after_they_were_joined(text: str) -> None:
    parts = split_at_marks(text)
    assert split_at_marks(join_parts(parts)) == parts
    assert parts.count(IMAGE_TOKEN) == count_marks([text])
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_marks_before_a_text_are_the_first_parts() -> None:
    assert split_at_marks(mark_before("What?", 3)) == [IMAGE_TOKEN] * 3 + ["What?"]
