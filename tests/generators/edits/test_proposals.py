"""Proposals: which words the cloze model lets stand in a slot instead."""

import numpy as np
import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import load_carried_model
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import score_captions
from pairwright.generators.edits.replacements import REPLACEMENT_TYPES, build_replacements
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, small_pool, tokens_of

CAPTIONS = (
    "an obelisk is nowhere near a small granite table that she polishes",  # an unlikely adjective and relation
    "a black dog lying on a bed",
    "two women riding brown horses in a green field",
)


@pytest.mark.parametrize("name", REPLACEMENT_TYPES)
def test_what_is_proposed_is_as_likely_as_the_floor_demands_however_unlikely_the_replaced_word_is(name: str) -> None:
    materials = EditMaterials.of(load_wordnet(), small_pool(), load_carried_model())
    proposer, kind = build_replacements(name, materials, floor=0.02).proposer, REPLACEMENT_TYPES[name].kind
    captions = [Caption(pair_of(caption), tokens_of(caption)) for caption in CAPTIONS]
    scored = score_captions(captions, load_wordnet(), materials.model.cloze, [kind])
    number = 0
    for each, proposals in zip(scored, proposer.propose(scored), strict=True):
        assert (np.exp(each.log_probs[kind][proposals.slot, proposals.new]) >= 0.02 * 0.999).all()
        number += len(proposals)
    assert number
