"""Suggestions for unknown names."""

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import did_you_mean, require_known, suggest_alternatives

TYPES = ("replace-object", "swap-object", "shuffle")


def test_an_unknown_name_is_an_error_with_suggestion_and_valid_names() -> None:
    """One reads what to write instead, without a look into the documentation."""
    message = (
        "no such type: replace-objct. Did you mean replace-object? There are: replace-object, swap-object, shuffle."
    )
    with pytest.raises(UsageError) as refused:
        require_known("no such type:", ["shuffle", "replace-objct"], TYPES)
    assert str(refused.value) == message


def test_names_that_are_known_pass() -> None:
    """And so does no name at all."""
    require_known("no such type:", ["shuffle", "swap-object"], TYPES)
    require_known("no such type:", [], TYPES)


def test_each_unknown_name_has_its_own_suggestion() -> None:
    """All slips are reported in one run, and a suggestion is made once."""
    message = suggest_alternatives(["shufle", "swap-objects", "swap-objets"], TYPES)
    assert message == "Did you mean shuffle, swap-object? There are: replace-object, swap-object, shuffle"


@pytest.mark.parametrize("written", ["SWAP-OBJECT", "swap_object", "swapobject", "swap object"])
def test_case_and_hyphens_do_not_prevent_a_suggestion(written: str) -> None:
    """What people write who know a name by its sound."""
    assert did_you_mean([written], TYPES) == "Did you mean swap-object?"


def test_nothing_is_suggested_without_a_similar_name() -> None:
    """A wrong suggestion is worse than the list alone."""
    assert did_you_mean(["negate"], TYPES) == ""
    assert suggest_alternatives(["negate"], TYPES) == "There are: replace-object, swap-object, shuffle"


def test_a_mark_is_printed_around_the_suggestion() -> None:
    """Keys of a config are written so."""
    assert did_you_mean(["inptu"], ["input", "name"], mark="`") == "Did you mean `input`?"
