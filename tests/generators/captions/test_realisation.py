"""Edits at character level."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.captions.realisation import (
    Change,
    Style,
    caption_style,
    joined_word_spans,
    lowercase_span,
    normalize_capitals,
    rewrite,
    splits_any_span,
)

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
        ("A DOG ON A COUCH", "DOG", "owl", "AN OWL ON A COUCH"),
        ("A Dog on a Couch", "Dog", "owl", "An Owl on a Couch"),
        ("Two Dogs on a Couch", "Couch", "old bed", "Two Dogs on an Old Bed"),
        ("A TV on a wall", "TV", "mirror", "A mirror on a wall"),
        ("A man with a Frisbee", "Frisbee", "ball", "A man with a ball"),
        ("It rains. Dogs run", "Dogs", "cats", "It rains. Cats run"),
        ("<b>a dog</b> on “a bed”", "dog", "owl", "<b>an owl</b> on “a bed”"),
    ],
)
def test_articles_follow_the_new_word_and_its_capitals_the_caption(
    source: str, before: str, after: str, text: str
) -> None:
    start = source.index(before)
    assert rewrite(source, [Change(start, start + len(before), after)])[0] == text


@pytest.mark.parametrize(
    ("source", "style"),
    [
        ("A dog on a bed.", Style.SENTENCE),
        ("A dog near the Eiffel Tower", Style.SENTENCE),
        ("A STOP sign on a TV", Style.SENTENCE),
        ("A DOG ON A COUCH", Style.CAPITALS),
        ("THE DOG ON a BIG COUCH", Style.CAPITALS),
        ("A Dog on a Couch", Style.TITLE),
        ("A Dog On A Couch", Style.ALL_WORDS),
        ("", Style.SENTENCE),
        ("12", Style.SENTENCE),
    ],
)
def test_a_caption_has_a_style_of_capitals(source: str, style: Style) -> None:
    assert caption_style(source) is style


@pytest.mark.parametrize(
    ("source", "after", "text"),
    [
        ("A DOG ON A COUCH", " with a cat", "A DOG ON A COUCH WITH A CAT"),
        ("A Dog on a Couch", " with a cat", "A Dog on a Couch with a Cat"),
        ("A Dog On A Couch", " with a cat", "A Dog On A Couch With A Cat"),
        ("A Dog on a Couch", " with a farmer's hat", "A Dog on a Couch with a Farmer's Hat"),
        ("a dog on a couch", " with a cat", "a dog on a couch with a cat"),
    ],
)
def test_what_is_added_has_the_capitals_of_the_caption(source: str, after: str, text: str) -> None:
    assert rewrite(source, [Change(len(source), len(source), after)])[0] == text


@pytest.mark.parametrize(
    ("source", "part", "cut"),
    [
        ("a walk-in closet", "in", True),
        ("a walk- in closet", "walk", True),
        ("an open -air market", "air market", True),
        ("a dog's bed", "dog", True),
        ("a man/woman", "man", True),
        ("<PERSON> on a bench", "PERSON", True),
        ("a <b>dog</b>", "b", True),
        ("a &quot;dog&quot;", "quot", True),
        ("5 < a dog > 3", "dog", False),
        ("<PERSON> on a bench", "bench", False),
        ("a walk-in closet", "walk-in", False),
        ("a walk-in closet", "closet", False),
        ("a man - a dog", "man", False),
    ],
)
def test_a_part_of_a_joined_word_is_told(source: str, part: str, cut: bool) -> None:  # noqa: FBT001 - a table
    start = source.index(part)
    assert splits_any_span(joined_word_spans(source), [Change(start, start + len(part), "x")]) is cut


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
    assert lowercase_span(source, start, end) == said


def test_a_text_loses_the_capitals_of_all_its_words_unless_its_source_has_them() -> None:
    assert normalize_capitals("A WOMAN IN PARIS WITH A TV", "a man in Paris with a TV") == "a woman in Paris with a TV"
    assert normalize_capitals("A WOMAN IN PARIS", "A MAN IN PARIS") == "A WOMAN IN PARIS"
    assert normalize_capitals("A DOG ON GRASS WITH A BALL.", "A dog on grass.") == "A dog on grass with a ball."
    assert normalize_capitals("THE MAN HOLDS THE BOTTLE", "The man holds the cup") == "The man holds the bottle"
    assert normalize_capitals("A Dog Sits. A Cat Too.", "A dog sits.") == "A dog sits. A cat too."
    assert normalize_capitals("A woman in Rome with a TV", "a man in Paris with a TV") == "A woman in Rome with a TV"
