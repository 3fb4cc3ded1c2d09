"""NEGATION: pairs that deny in the same words what is in the image and what is not."""

from collections import Counter
from functools import lru_cache

import pytest

from pairwright.datasets.colorshape.corpus import list_box_labels, make_sample, read_scene, sample_to_pair
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.records import Box
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.edit_model import load_bundled_model
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.edits.negation import Negations
from pairwright.generators.edits.proposals import WordProposals
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from tests.generators.edits.additions.small_world import caption_of, small_materials
from tests.generators.rule_fixtures import pair_of, tokens_of_all

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

SCENES = 250
LABELS = ("dog", "cat", "horse", "zebra")
DOG = Box("dog", 0.1, 0.1, 0.2, 0.2)
CAT = Box("cat", 0.3, 0.1, 0.4, 0.2)


@lru_cache(maxsize=1)
def small_negations() -> Negations:
    materials = small_materials()
    return Negations(materials.model.cloze, materials.knowledge.thesaurus, LABELS)


def texts_of(found: WordProposals) -> set[tuple[str, str]]:
    """Return the false and the true text of each pair."""
    source = found.caption.pair.caption
    return {
        (rewrite(source, [found.false_change(at)])[0], rewrite(source, [found.true_change(at)])[0])
        for at in range(len(found))
    }


def negated(text: str, *others: str, boxes: tuple[Box, ...] = (DOG,)) -> set[tuple[str, str]]:
    return texts_of(small_negations().propose([caption_of(text, *others, boxes=boxes)])[0])


def test_a_thing_that_the_caption_affirms_is_denied_beside_one_that_is_not_there() -> None:
    pairs = negated("a man with a dog on a street")
    assert ("a man without a dog on a street", "a man without a cat on a street") in pairs
    assert all("dog" in false and "dog" not in true for false, true in pairs)


def test_several_things_are_denied_in_the_plural() -> None:
    pairs = negated("a street with dogs", boxes=(DOG, DOG))
    assert ("a street without any dogs", "a street without any cats") in pairs


def test_a_thing_that_only_a_box_shows_is_denied_at_the_end() -> None:
    pairs = negated("a man on a street.", boxes=(DOG, CAT))
    assert ("a man on a street with no dog in sight.", "a man on a street with no horse in sight.") in pairs
    assert (
        "a man on a street, and there is no cat in sight.",
        "a man on a street, and there is no horse in sight.",
    ) in pairs


def test_both_texts_have_the_same_frame() -> None:
    for false, true in negated("a man on a street", boxes=(DOG, CAT)) | negated("a man with a dog"):
        assert Counter(false.split()) - Counter(true.split()) <= Counter(["dog", "cat"])


def test_nothing_is_denied_that_a_caption_names_by_another_word() -> None:
    assert not any("cat" in true for _, true in negated("a man with a dog", "a kitten sits"))
    assert not any("dog" in false for false, _ in negated("a man and a puppy on a street"))
    assert not any("dog" in false for false, _ in negated("a dog's ball on a street"))


def test_a_pronoun_names_a_person() -> None:
    negations = Negations(load_bundled_model().cloze, load_wordnet(), ("coco",))
    boxes = (Box("person", 0.1, 0.1, 0.2, 0.2),)
    for subject, named in (("A bike is", False), ("They are", True)):
        [found] = negations.propose([caption_of(f"{subject} standing on a street.", boxes=boxes)])
        assert any("no person" in false for false, _ in texts_of(found)) is not named


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("a man with a dog", ()),
        ("a man with no dog", (DOG,)),
        ("a man with a dog and a cat", (DOG, CAT)),
        ("kites", (DOG,)),
    ],
)
def test_without_proof_or_beside_another_negation_nothing_is_made(text: str, boxes: tuple[Box, ...]) -> None:
    assert not any(false.startswith("a man without") for false, _ in negated(text, boxes=boxes))


def test_without_a_vocabulary_nothing_is_made() -> None:
    materials = small_materials()
    negations = Negations(materials.model.cloze, materials.knowledge.thesaurus, ())
    assert not negations.propose([caption_of("a man with a dog", boxes=(DOG,))])[0]


def test_a_crowd_is_not_absent() -> None:
    text = "a man with a dog"
    crowded = Caption(pair_of(text, boxes=(DOG,), crowds=("cat",)), tokens_of_all([text])[0])
    assert small_negations().is_absent(caption_of(text, boxes=(DOG,)), "cat")
    assert not small_negations().is_absent(crowded, "cat")


def test_negations_of_drawn_scenes_are_false_and_true() -> None:
    pairs = [sample_to_pair(make_sample(11, index)) for index in range(SCENES)]
    captions = [pair.caption for pair in pairs]
    tokens, wordnet = tokens_of_all(captions), load_wordnet()
    negations = Negations(train_cloze_model(sample_slots(captions, tokens, wordnet)), wordnet, list_box_labels())
    made = 0
    for found in negations.propose([Caption(pair, words) for pair, words in zip(pairs, tokens, strict=True)]):
        scene = read_scene(found.caption.pair)
        for false, true in texts_of(found):
            made += 1
            assert judge(false, scene) is OracleVerdict.FALSE, false
            assert judge(true, scene) is OracleVerdict.TRUE, true
    assert made >= SCENES
