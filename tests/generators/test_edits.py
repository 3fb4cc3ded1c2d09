"""Edits at character level."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.edits import Change, plain, rewrite

TEXT = st.text(alphabet="aeiou bcdn AN.,'\"éあ\n", max_size=60)


@st.composite
def text_and_changes(draw: st.DrawFn) -> tuple[str, list[Change]]:
    """Any text with up to three changes that do not overlap, in any order."""
    text = draw(TEXT)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    changes = [Change(start, end, draw(TEXT)) for start, end in spans]
    return text, draw(st.permutations(changes))


@given(text_and_changes())
def test_spans_name_exactly_what_changed(case: tuple[str, list[Change]]) -> None:
    """Both spans hold what the edit says, in order, and everything between the edits is equal on both sides."""
    source, changes = case
    text, edits = rewrite(source, changes)
    done = made = 0
    for edit in edits:
        (start, end), (to_start, to_end) = edit.before_span, edit.after_span
        assert source[start:end] == edit.before
        assert text[to_start:to_end] == edit.after
        assert edit.before != edit.after
        assert source[done:start] == text[made:to_start]
        done, made = end, to_end
    assert source[done:] == text[made:]


@pytest.mark.parametrize(
    ("source", "before", "after", "text"),
    [
        ("A dog on a bed.", "dog", "elephant", "An elephant on a bed."),
        ("an  orange car", "orange", "red", "a  red car"),
        ("Dogs run.", "Dogs", "cats", "Cats run."),
        ("A BIG DOG", "DOG", "owl", "A BIG OWL"),
        ("AN OLD MAN", "OLD", "young", "A YOUNG MAN"),
        ('he said "a dog"', "dog", "ox", 'he said "an ox"'),
        ("the dog , running", "dog", "ox", "the ox , running"),
        ("pizza dog", "dog", "ox", "pizza ox"),
        ("an dog", "dog", "cat", "an cat"),
        ("an hour", "hour", "minute", "a minute"),
    ],
)
def test_articles_and_capitals_follow_the_new_word(source: str, before: str, after: str, text: str) -> None:
    start = source.index(before)
    assert rewrite(source, [Change(start, start + len(before), after)])[0] == text


def test_a_mended_article_belongs_to_the_edit() -> None:
    _, (edit,) = rewrite("A dog", [Change(2, 5, "owl")])
    assert (edit.before, edit.after) == ("A dog", "An owl")


def test_a_change_to_the_same_words_is_no_edit() -> None:
    assert rewrite("a dog", [Change(2, 5, "dog")]) == ("a dog", ())


@pytest.mark.parametrize("changes", [[Change(0, 3, "x"), Change(2, 4, "y")], [Change(0, 9, "x")], [Change(3, 2, "x")]])
def test_overlapping_and_impossible_changes_are_refused(changes: list[Change]) -> None:
    with pytest.raises(ValueError, match="overlaps another or leaves the text"):
        rewrite("a dog", changes)


@pytest.mark.parametrize(
    ("source", "start", "end", "said"),
    [("A dog runs", 0, 5, "a dog"), ("TV set", 0, 2, "TV"), ("the Dog", 4, 7, "Dog"), ("“A dog", 1, 6, "a dog")],
)
def test_words_that_opened_a_sentence_lose_their_capital(source: str, start: int, end: int, said: str) -> None:
    assert plain(source, start, end) == said
