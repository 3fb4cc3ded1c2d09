"""Proposals: which words the cloze model lets stand in a slot instead."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import load_bundled_model
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.replacements import REPLACED_KINDS, PlaceChecks, Replacements
from pairwright.generators.edits.slots import Slot, context_of
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, small_pool, tokens_of

CAPTIONS = (
    "an obelisk is nowhere near a small granite table that she polishes",  # an unlikely adjective and relation
    "a black dog lying on a bed",
    "two women riding brown horses in a green field",
)


@pytest.mark.parametrize("name", REPLACED_KINDS)
def test_what_is_proposed_is_as_likely_as_the_floor_demands_however_unlikely_the_replaced_word_is(name: str) -> None:
    materials = EditMaterials.of(load_wordnet(), small_pool(), load_bundled_model())
    replacements, cloze = Replacements(materials, {name: PlaceChecks()}, floor=0.02), materials.model.cloze
    captions = [Caption(pair_of(caption), tokens_of(caption)) for caption in CAPTIONS]
    number = 0
    for proposals in replacements.propose(captions)[name]:
        contexts = [
            context_of(proposals.caption, s.start, s.end, s.before, s.after)
            for s in cast("Sequence[Slot]", proposals.slots)
        ]
        log_probs = cloze.log_probs(REPLACED_KINDS[name], contexts)
        assert (np.exp(log_probs[proposals.slot, proposals.new]) >= replacements.floor * 0.999).all()
        number += len(proposals)
    assert number
