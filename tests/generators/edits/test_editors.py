"""Editors of negatives: in which order the edits of a caption are drawn."""

import numpy as np
import pytest

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import are_preferred
from pairwright.generators.edits.edit_model import load_bundled_model, load_bundled_statistics
from pairwright.generators.edits.editors import CLASSIFIERS, WordEditor, build_editors
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, tokens_of

CAPTIONS = ("a cat standing next to a table", "a boy lying on a street", "a plate of food on a table")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_edits_that_read_well_go_before_all_others(name: str) -> None:
    materials = EditMaterials.of(load_wordnet(), load_bundled_statistics(), load_bundled_model())
    editors = build_editors(materials, [name], DEFAULT_FLOOR)
    editor = editors.by_type[name]
    assert isinstance(editor, WordEditor)
    captions = [Caption(pair_of(caption), tokens_of(caption)) for caption in CAPTIONS]
    ranks = list[list[bool]]()
    for proposals in editors.propose(captions)[name]:
        preferred = dict[object, bool]()
        for at in range(len(proposals)):
            edit = proposals.proposed_edit(at)
            probabilities = CLASSIFIERS[name].probabilities(
                edit, [edit.new], np.array([edit.log_prob]), materials.knowledge
            )
            preferred[proposals.outcome(at)] = bool(are_preferred(probabilities)[0])
        for seed in range(5):
            [outcomes] = editor.outcomes([proposals], [seed])
            ranks.append([preferred[edit] for edit in outcomes if not isinstance(edit, str)])
    assert all(each == sorted(each, reverse=True) for each in ranks)
    assert any(len(set(each)) == 2 for each in ranks)
