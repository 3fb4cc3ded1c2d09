"""Which positive goes beside a negative, and which negatives are none."""

from collections.abc import Sequence

import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.edits.written.sentence_extraction import comparison_key
from pairwright.generators.language.pool_statistics import PoolCounts
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.positives import rewrite_rules
from pairwright.generators.triples import (
    CachingTagger,
    TripleNegative,
    TriplePositive,
    Triples,
    overlap,
    rule_candidates,
)
from tests.generators.rule_fixtures import pair_of

NO_WORDS = PoolCounts().frozen()  # without counts every rewording is as good as another


def triples(*, any_type: bool = False, as_given: bool = False) -> Triples:
    wordnet, tagger = load_wordnet(), load_tagger()
    checks = EditChecks(wordnet, load_bundled_statistics(), tagger)
    return Triples(checks, tagger, any_type=any_type, as_given=as_given)


def caption_of(text: str, *others: str) -> Caption:
    return Caption(pair_of(text, *others), load_tagger().tag([text])[0])


def read(caption: Caption, text: str, told: str = "", *, as_given: bool = False) -> TripleNegative:
    return triples(as_given=as_given).read(caption, text, told, ())


def beside(caption: Caption, negative: TripleNegative, *, any_type: bool = False) -> TriplePositive | str:
    these = triples(any_type=any_type)
    rules = rewrite_rules(NO_WORDS)
    found: TriplePositive | str = ""
    for types in these.rounds(negative.type):
        found = these.choose(caption, negative, rule_candidates(rules, caption, types, 0), [negative.text])
        if isinstance(found, TriplePositive):
            break
    return found


@pytest.mark.parametrize(
    ("caption", "negative", "kind", "positives"),
    [
        ("a cutting board next to a pan", "a cutting board under a pan", "replace-relation",
         {f"a cutting board {said} a pan" for said in ("beside", "alongside", "adjacent to")}),
        ("a large dog in a field", "a small dog in a field", "replace-attribute", {"a big dog in a field"}),
        ("a man near a couch", "a man near a table", "replace-object", {"a man near a sofa"}),
        ("the crouched cat and the open door", "the open cat and the crouched door", "swap-attribute",
         {"the open door and the crouched cat"}),
    ],
)  # fmt: skip
def test_a_positive_is_of_the_negative_s_type_and_edits_its_words(
    caption: str, negative: str, kind: str, positives: set[str]
) -> None:
    found = read(caption_of(caption), negative)
    assert (found.type, found.reason) == (kind, "")
    positive = beside(caption_of(caption), found)
    assert isinstance(positive, TriplePositive)
    assert positive.text in positives
    assert overlap(positive.edits, found.edits)


def test_another_type_is_taken_only_where_that_is_allowed() -> None:
    caption = caption_of("a large dog in a field")
    negative = read(caption, "a large dog and a cat in a field")
    assert negative.type == "add-object"
    assert not isinstance(beside(caption, negative), TriplePositive)
    other = beside(caption, negative, any_type=True)
    assert isinstance(other, TriplePositive)
    assert other.type == "replace-attribute"


@pytest.mark.parametrize("said", ["a navy car on a road", "A navy car on a road.", "a blue car on a road"])
def test_a_positive_that_is_the_negative_or_the_caption_is_not_taken(said: str) -> None:
    caption = caption_of("a blue car on a road")
    negative = TripleNegative("a navy car on a road", "replace-attribute")
    assert triples().choose(caption, negative, [TriplePositive(said, "replace-attribute", ())], ()) == "on_both_sides"


def test_a_positive_that_says_what_the_negative_says_is_not_taken() -> None:
    caption = caption_of("a man on a couch")
    (sofa,) = offers("replace-object", caption, "sofa")
    known = TripleNegative("a man on a settee", "replace-object", sofa.edits, sofa.edits)
    unknown = TripleNegative("a man on a settee", "replace-object")
    for negative in (known, unknown):
        assert triples().choose(caption, negative, [sofa], ()) == "on_both_sides"


def offers(kind: str, caption: Caption, word: str) -> Sequence[TriplePositive]:
    rules = rewrite_rules(NO_WORDS)
    return [offer for offer in rule_candidates(rules, caption, [kind], 0) if word in offer.text]


def test_a_positive_is_none_of_the_other_negatives_of_its_caption() -> None:
    caption = caption_of("a large dog in a field")
    negative = read(caption, "a small dog in a field")
    offer = offers("replace-attribute", caption, "big")
    assert triples().choose(caption, negative, offer, ["A big dog in a field."]) == "on_both_sides"


@pytest.mark.parametrize(
    ("negative", "reason"),
    [
        ("A dog on a couch.", "identical"),
        ("a dog on a sofa", "same_meaning"),
        ("a cat on a couch", "true_of_image"),
        ("a bird sleeping under a tall red table", "several_edits"),
    ],
)
def test_what_is_no_negative_of_its_caption_says_why(negative: str, reason: str) -> None:
    assert read(caption_of("a dog on a couch", "a cat lies there"), negative).reason == reason


def test_a_negative_is_put_into_the_format_of_its_caption() -> None:
    found = read(caption_of("a dog on a couch"), "A horse on a couch.")
    assert (found.text, found.reformatted) == ("a horse on a couch", True)
    as_given = read(caption_of("a dog on a couch"), "A horse on a couch.", as_given=True)
    assert (as_given.text, as_given.reformatted, as_given.edits) == ("A horse on a couch.", False, ())
    assert [edit.before for edit in as_given.places] == ["dog"]


def test_a_negative_as_given_may_have_many_edits_but_not_say_the_same() -> None:
    caption = caption_of("a dog on a couch")
    wild = read(caption, "a bird sleeping under a tall red table", "replace-object", as_given=True)
    assert (wild.text, wild.type, wild.reason) == ("a bird sleeping under a tall red table", "replace-object", "")
    assert read(caption, "a dog on a sofa", "replace-object", as_given=True).reason == "same_meaning"


def test_a_type_that_the_edit_does_not_have_is_put_right() -> None:
    assert (
        read(caption_of("a large dog on a couch"), "a large cat on a couch", "replace-attribute").type
        == "replace-object"
    )


@pytest.mark.parametrize(
    ("caption", "negative", "kind"),
    [
        ("A painting with a gold frame", "A painting with a silver frame", "replace-attribute"),
        ("A car by a brick wall", "A car by a wooden wall", "replace-attribute"),
        ("A glass dining table", "A wooden dining table", "replace-attribute"),
        ("Two men wait for a train", "A solo man waits for a train", "replace-attribute"),
        ("a man riding horses", "a woman riding horses", "replace-object"),
        ("a man and a dog", "a horse and a dog", "replace-object"),
        ("A person on skis in snow", "A person on snowshoes in snow", "replace-object"),
        ("A dog under a table", "A dog on a table", "replace-relation"),
        ("A dog on a bed", "A dog on a wet bed", "add-attribute"),
    ],
)
def test_a_negative_of_unknown_type_gets_the_likeliest(caption: str, negative: str, kind: str) -> None:
    """A noun that only describes is an attribute; one that names somebody is not, whatever verb follows."""
    found = read(caption_of(caption), negative)
    assert (found.type, found.reason) == (kind, "")


def test_a_noun_that_describes_is_no_negative_when_it_may_say_the_same() -> None:
    assert read(caption_of("A car by a brick wall"), "A car by a stone wall").reason == "same_meaning"


def test_the_rules_offer_every_rewording_of_a_place_once() -> None:
    found = [offer.text for offer in offers("replace-relation", caption_of("a dog next to a cat"), "")]
    assert sorted(found) == [f"a dog {said} a cat" for said in ("adjacent to", "alongside", "beside", "by", "near")]
    assert len({comparison_key(text) for text in found}) == len(found)


def test_a_remembered_text_is_not_tagged_again() -> None:
    asked: list[str] = []

    class Counting:
        name = "counting"

        def tag(self, texts: Sequence[str]) -> list[list[object]]:
            asked.extend(texts)
            return [[] for _ in texts]

    remembering = CachingTagger(Counting())  # type: ignore[arg-type]  # tokens do not matter here
    remembering.learn(["a", "b", "a"])
    assert remembering.tag(["b", "c", "b"]) == [[], [], []]
    assert asked == ["a", "b", "c"]
    many = [str(number) for number in range(9_000)]
    assert len(remembering.tag(many)) == len(remembering.tag([*many, "new"])) - 1
