"""Repairs of the source, phrases, and texts of another type: clean edits that are kept, in the words of the source."""

from functools import lru_cache

import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.edits.written.checks import Checked, EditChecks
from pairwright.generators.edits.written.targets import RequestedEdit
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, tokens_of


@lru_cache(maxsize=1)
def checks() -> EditChecks:
    """Return the checks over the bundled statistics."""
    return EditChecks(load_wordnet(), load_bundled_statistics(), load_tagger())


def check(source: str, text: str, asked: str, *others: str, other_types: tuple[str, ...] = ()) -> Checked:
    """Check one text as a hard negative."""
    form, _, target = asked.partition("-")
    caption = Caption(pair_of(source, *others), tokens_of(source))
    return checks().check_all(caption, [(RequestedEdit("hard_negative", form, target), text)], other_types=other_types)[
        0
    ]


@pytest.mark.parametrize(
    ("source", "text", "asked", "made"),
    [
        ("A man reading a book on a bench", "A man sleeping on a bench", "replace-relation", ""),
        ("A woman is reading a book on a couch", "A woman is sleeping on a couch", "replace-relation", ""),
        ("a stop sign put upside down on a pole", "a stop sign put right side up on a pole", "replace-attribute", ""),
        ("A man with a remote in each hand", "A man with a remote in one hand", "replace-attribute", ""),
        # Swaps that need an article, or the source's spelling
        (
            "Very tall clock behind wooden fence", "Wooden clock behind a very tall fence", "swap-attribute",
            "Wooden clock behind very tall fence",
        ),
        (
            "a white sink a towel and some brown cabinets", "a brown sink, a towel and some white cabinets", "swap-attribute",
            "a brown sink a towel and some white cabinets",
        ),
        (
            "A black cat on a white lap top", "A white cat on a black laptop", "swap-attribute",
            "A white cat on a black lap top",
        ),
        (
            "A room with a white carpet and black furniture", "A room with black carpet and white furniture", "swap-attribute",
            "A room with a black carpet and white furniture",
        ),
        # Repairs beside the edit are not taken over.
        (
            "A base ball near a ball on a base and a dog", "A baseball near a ball on a base and a cat", "replace-object",
            "A base ball near a ball on a base and a cat",
        ),
        (
            "A bear is sitting in front a group of boxes", "A robot is sitting in front of a group of boxes", "replace-object",
            "A robot is sitting in front a group of boxes",
        ),
        (
            "a man holding a tennis rackett", "A man holding a tennis racket and an umbrella", "add-object",
            "a man holding a tennis rackett and an umbrella",
        ),
        (
            "A fire hydrant that is sitting in the grass", "A fire hydrant and an umbrella are sitting in the grass",
            "add-object", "A fire hydrant and an umbrella that are sitting in the grass",
        ),
        (
            "The plane is flying high", "A balloon and a plane are flying high", "add-object",
            "A balloon and the plane are flying high",
        ),
    ],
)  # fmt: skip
def test_a_clean_edit_is_kept_in_the_words_of_its_source(source: str, text: str, asked: str, made: str) -> None:
    found = check(source, text, asked)
    assert (found.reason, found.text) == ("", made or text)


@pytest.mark.parametrize(
    ("source", "text", "asked", "reason"),
    [
        ("A car covered in snow", "A car covecrimson in snow", "replace-attribute", "unknown_word"),
        ("A car covered in snow", "A car covecrimson in snow", "replace-relation", "unknown_word"),
        ("A red car and a blue bus", "A covecrimson car and a blue bus", "swap-attribute", "unknown_word"),
        ("A man riding a horse", "A man walking his dog", "replace-relation", "too_long"),
        ("A man holding a cup on a bench", "A man smiling on a bench", "replace-relation", "same_meaning"),
        ("A phone in each hand", "A phone in both hands", "replace-attribute", "same_meaning"),
        ("two skiers are coming down a hill", "Skiers are coming down two hills", "swap-attribute", "other_words"),
        ("A man is ready to eat", "A man is not ready to eat", "add-attribute", "another_target"),
    ],
)  # fmt: skip
def test_what_is_no_clean_edit_is_rejected_for_what_is_wrong_with_it(
    source: str, text: str, asked: str, reason: str
) -> None:
    assert check(source, text, asked).reason == reason


@pytest.mark.parametrize(
    ("source", "text", "asked", "kept_as"),
    [
        ("A man sitting next to a bike", "A woman sitting next to a bike", "replace-attribute", "replace-object"),
        ("A horse standing next to a cow", "A horse lying next to a cow", "replace-attribute", "replace-relation"),
        ("A man eating a pizza", "A man eating a burger", "add-object", "replace-object"),
    ],
)
def test_a_text_of_another_type_is_kept_as_one_of_that_type_if_it_was_asked_for(
    source: str, text: str, asked: str, kept_as: str
) -> None:
    found = check(source, text, asked, other_types=BENCHMARK_TYPES)
    assert (found.reason, f"{found.form}-{found.target}") == ("", kept_as)
    assert check(source, text, asked, other_types=(asked,)).reason in {"another_target", "another_form"}


def test_a_text_that_is_true_as_another_type_says_so() -> None:
    assert (
        check("A man on a couch", "A man on a sofa", "replace-attribute", other_types=BENCHMARK_TYPES).reason
        == "same_meaning"
    )


@pytest.mark.parametrize(
    ("text", "other", "reason"),
    [
        ("A man and a child walk in a park", "a man walks his dog", ""),
        ("A man and a child walk in a park", "a man and a boy walk", "true_of_image"),
        ("A man and a child walk in a park", "two men walk in a park", "true_of_image"),
        ("A man and a dog walk in a park", "a man with some toys", ""),
        ("A man and a dog walk in a park", "a man with a puppy", "true_of_image"),
    ],
)
def test_what_the_caption_itself_names_mentions_no_other_thing(text: str, other: str, reason: str) -> None:
    assert check("A man walks in a park", text, "add-object", other).reason == reason


def test_exchanged_numbers_are_false_unless_other_captions_have_both() -> None:
    source, text = "A zebra and two elephants on a field", "Two zebras and an elephant on a field"
    assert check(source, text, "swap-attribute", "a zebra and elephants, and an elephant calf").reason == ""
    assert check(source, text, "swap-attribute", "two zebras near an elephant").reason == "true_of_image"
