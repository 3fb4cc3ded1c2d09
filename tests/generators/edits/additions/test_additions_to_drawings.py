"""Additions to captions of drawn scenes, whose truth is known."""

import pytest

from pairwright.datasets.colorshape.corpus import make_sample, read_scene, sample_to_pair
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.additions.insertion_points import ATTRIBUTE, OBJECT
from pairwright.generators.edits.additions.proposals import Additions
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from tests.generators.rule_fixtures import tokens_of_all

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

SCENES = 250


@pytest.fixture(scope="module")
def captions() -> list[Caption]:
    pairs = [sample_to_pair(make_sample(11, index)) for index in range(SCENES)]
    tokens = tokens_of_all([pair.caption for pair in pairs])
    return [Caption(pair, words) for pair, words in zip(pairs, tokens, strict=True)]


@pytest.fixture(scope="module")
def additions(captions: list[Caption]) -> Additions:
    texts, tokens = [each.pair.caption for each in captions], [each.tokens for each in captions]
    model = EditModel(train_cloze_model(sample_slots(texts, tokens, load_wordnet())))
    return Additions(EditMaterials.of(load_wordnet(), count_captions(tokens).frozen(), model))


@pytest.mark.parametrize(("target", "share"), [(OBJECT, 0.8), (ATTRIBUTE, 0.1)])
def test_additions_are_false(captions: list[Caption], additions: Additions, target: str, share: float) -> None:
    made = 0
    for found in additions.propose(captions, target):
        made += len(found) > 0
        for at in range(len(found)):
            text = rewrite(found.caption.pair.caption, [found.false_change(at)])[0]
            assert judge(text, read_scene(found.caption.pair)) is OracleVerdict.FALSE, text
    assert made >= share * SCENES


@pytest.mark.parametrize(("target", "share"), [(OBJECT, 0.05), (ATTRIBUTE, 0.1)])
def test_pairs_are_false_and_true(captions: list[Caption], additions: Additions, target: str, share: float) -> None:
    made = 0
    for found in additions.propose(captions, target, paired=True):
        scene = read_scene(found.caption.pair)
        made += len(found) > 0
        for at in range(len(found)):
            source = found.caption.pair.caption
            assert judge(rewrite(source, [found.false_change(at)])[0], scene) is OracleVerdict.FALSE
            assert judge(rewrite(source, [found.true_change(at)])[0], scene) is OracleVerdict.TRUE
    assert made >= share * SCENES
