"""What a general noun means by the other captions of its image."""

import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.context import ImageWords
from pairwright.generators.rules.generality import meant_by, other_sex
from tests.generators.rule_fixtures import pair_of, tokens_of


def sex(caption: str, *others: str) -> str:
    made = Caption(pair_of(caption, *others), tokens_of(caption))
    return other_sex(made, made.phrases[0])


def test_a_room_is_what_other_captions_call_it_if_they_name_one() -> None:
    assert meant_by("room", ImageWords.of(pair_of("a bed in a room", "a small bedroom"))) == ("bedroom",)
    assert meant_by("room", ImageWords.of(pair_of("a bed in a room"))) == ()
    assert meant_by("room", ImageWords.of(pair_of("a room", "a kitchen", "a dining room"))) == ()


@pytest.mark.parametrize(
    ("caption", "others", "found"),
    [
        ("a person on a horse", ("a man on a horse",), "woman"),
        ("a surfer on a wave", ("a woman on a wave",), "man"),
        ("a child on a bed", ("a boy on a bed",), "girl"),
        ("two people on a bench", ("two men on a bench", "men sitting"), "woman"),
        ("a person on a horse", ("a horse",), ""),  # nobody tells
        ("a person on a horse", ("a man on a horse", "a woman on a horse"), ""),  # both are told
        ("a person on a horse", ("a man on a horse", "a group of riders"), ""),  # who of them
        ("a person and a dog next to a man", ("a man with a dog",), ""),  # somebody else
        ("two people on a bench", ("two men on a bench",), ""),  # one caption may be wrong
        ("people on a bench", ("two men on a bench", "men sitting"), ""),  # there may be more of them
        ("a person on his horse", ("a man on a horse",), ""),  # no woman on his horse
    ],
)
def test_somebody_gets_the_other_sex_only_where_captions_leave_no_doubt(
    caption: str, others: tuple[str, ...], found: str
) -> None:
    assert sex(caption, *others) == found
