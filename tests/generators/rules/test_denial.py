"""What a caption denies."""

import pytest

from pairwright.generators.edits.realisation import Change
from pairwright.generators.rules.denial import denied_in, touches


@pytest.mark.parametrize(
    ("caption", "denied"),
    [
        ("No dogs on a bed.", [" dogs on a bed"]),
        ("a man without a hat, in a park", [" a hat"]),
        ("It rains. A dog isn't there! A cat is", [" A dog isn't there"]),
        ("a dog that is not on the bed", ["a dog that is not on the bed"]),
        ("a nottingham notice of a northern knot", []),
    ],
)
def test_denial_reaches_to_the_next_mark(caption: str, denied: list[str]) -> None:
    assert [caption[each.start : each.end] for each in denied_in(caption)] == denied


def test_a_change_of_the_denying_word_itself_touches_nothing_denied() -> None:
    caption = "a dog without a ball"
    denied = denied_in(caption)
    assert not touches(denied, [Change(6, 13, "with")])
    assert not touches(denied, [Change(2, 5, "cat")])
    assert not touches(denied, [Change(0, len(caption), "a ball without a dog")])
    assert touches(denied, [Change(16, 20, "bone")])


def test_what_is_put_in_right_behind_is_denied_too_but_after_a_comma() -> None:
    denied = denied_in("no dog on the couch")
    assert touches(denied, [Change(19, 19, " with a cat")])
    assert not touches(denied, [Change(19, 19, ", with a cat in view")])
