"""What differs between a caption and a candidate."""

from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.review.text_diff import mark_differences


def edit(before: str, after: str, at: tuple[int, int], to: tuple[int, int]) -> dict[str, object]:
    return {"from": before, "to": after, "from_span": list(at), "to_span": list(to)}


def test_edits_that_fit_are_marked_at_their_spans() -> None:
    caption, candidate = mark_differences("a red bus", "a blue bus", [edit("red", "blue", (2, 5), (2, 6))])
    assert caption == [("a ", False), ("red", True), (" bus", False)]
    assert candidate == [("a ", False), ("blue", True), (" bus", False)]


def test_edits_of_other_texts_are_ignored() -> None:
    caption, candidate = mark_differences("a red bus", "a blue bus", [edit("bus", "car", (2, 5), (2, 6))])
    assert [text for text, differs in caption if differs] == ["red"]
    assert [text for text, differs in candidate if differs] == ["blue"]


def test_without_edits_the_texts_are_compared_word_by_word() -> None:
    caption, candidate = mark_differences("A man on a horse.", "A horse on a man.")
    assert [text for text, differs in caption if differs] == ["man", "horse"]
    assert [text for text, differs in candidate if differs] == ["horse", "man"]


def test_an_insertion_marks_one_side_only() -> None:
    caption, candidate = mark_differences("a cup", "a cup and a knife", [edit("", " and a knife", (5, 5), (5, 17))])
    assert caption == [("a cup", False)]
    assert candidate == [("a cup ", False), ("and a knife", True)]


spans = st.lists(st.integers(-2, 30), max_size=2)


@given(
    st.text(),
    st.text(),
    st.lists(st.builds(lambda a, b: {"from": "", "to": "", "from_span": a, "to_span": b}, spans, spans)),
)
def test_the_spans_add_up_to_the_texts_whatever_the_edits(one: str, other: str, edits: list[dict[str, object]]) -> None:
    caption, candidate = mark_differences(one, other, edits)
    assert "".join(text for text, _ in caption) == one
    assert "".join(text for text, _ in candidate) == other
