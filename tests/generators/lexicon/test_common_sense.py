"""What goes together where no captions have been counted."""

import pytest

from pairwright.generators.edits.general_english import SEEN_COUNT, GeneralEnglish
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.common_sense import is_plausible_pair


@pytest.mark.parametrize(
    ("first", "second", "there"),
    [
        ("sit", "on", True),
        ("sit", "through", False),
        ("on", "bed", True),
        ("under", "road", False),
        ("atop", "table", True),
        ("eat", "pizza", True),
        ("eat", "bus", False),
        ("ride", "horse", True),
        ("man", "talk", True),
        ("cat", "fly", False),
        ("seagull", "fly", True),
        ("bus", "park", True),
        ("vase", "walk", False),
        ("open", "door", None),
        ("red", "bus", None),
        ("near", "bus", None),
    ],
)
def test_common_sense_tells_what_goes_together(first: str, second: str, *, there: bool | None) -> None:
    wordnet = load_wordnet()
    assert is_plausible_pair(first, second, lambda noun, kind: wordnet.is_a(noun, kind, "NOUN")) is there
    general = GeneralEnglish(wordnet)
    assert (general.adjacency(first, second) > SEEN_COUNT) is (there is True)
    assert (general.adjacency(first, second) == 0) is (there is False)
