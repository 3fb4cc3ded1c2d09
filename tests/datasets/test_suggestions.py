"""What is said of a name that there is not."""

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import did_you_mean, require_known, suggest_alternatives

TYPES = ("replace-object", "swap-object", "shuffle")


def test_an_unknown_name_is_told_with_what_was_meant_and_what_there_is() -> None:
    """One reads what to write instead, without a look into the documentation."""
    told = "no such type: replace-objct. Did you mean replace-object? There are: replace-object, swap-object, shuffle."
    with pytest.raises(UsageError) as refused:
        require_known("no such type:", ["shuffle", "replace-objct"], TYPES)
    assert str(refused.value) == told


def test_names_that_are_known_pass() -> None:
    """And so does no name at all."""
    require_known("no such type:", ["shuffle", "swap-object"], TYPES)
    require_known("no such type:", [], TYPES)


def test_each_unknown_name_is_told_with_its_own_suggestion() -> None:
    """Several slips take one run to be mended, and a suggestion is made once."""
    told = suggest_alternatives(["shufle", "swap-objects", "swap-objets"], TYPES)
    assert told == "Did you mean shuffle, swap-object? There are: replace-object, swap-object, shuffle"


@pytest.mark.parametrize("written", ["SWAP-OBJECT", "swap_object", "swapobject", "swap object"])
def test_capitals_and_joints_make_no_other_name(written: str) -> None:
    """What people write who know a name by its sound."""
    assert did_you_mean([written], TYPES) == "Did you mean swap-object?"


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    """A wrong suggestion is worse than the list alone."""
    assert did_you_mean(["negate"], TYPES) == ""
    assert suggest_alternatives(["negate"], TYPES) == "There are: replace-object, swap-object, shuffle"


def test_a_mark_stands_around_what_was_meant() -> None:
    """Keys of a config are written so."""
    assert did_you_mean(["inptu"], ["input", "name"], mark="`") == "Did you mean `input`?"
