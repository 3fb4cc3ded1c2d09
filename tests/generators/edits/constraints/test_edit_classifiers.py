"""The classifiers of replaced relations and objects: their features, their weights, and what they find natural."""

import gc
import math
import weakref
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pytest

from pairwright.generators.edits.constraints import object_classifier, relation_classifier
from pairwright.generators.edits.constraints.edit_classifier import BIAS, LABELS, NONE, Candidates, Feature
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import EditExample
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.tables import read_rows
from tests.generators.edits.constraints.proposing import proposed
from tests.generators.rule_fixtures import counted

POOL = (
    *("a cat sitting on a table",) * 30, *("a man walking on a street",) * 30, *("a plate on a table",) * 30,
    *("a man holding a plate",) * 10, *("a cat near a table",) * 10, *("people sitting at a table",) * 10,
)  # fmt: skip
RELATIONS = (
    ("a cat [near] a table", "walk on"),
    ("a cat [sitting on] a table", "under"),
    ("a man [holding] a plate", "near"),
    ("a man [near] a plate", "hold"),
    ("people [sitting at] a table in a room", "stand on top of"),
    ("[near] a table", "on"),
    ("a wug [near] a zorb", "on"),
)
OBJECTS = (
    ("a [cat] on a table", "plate"),
    ("a [cat] sitting on a table", "fire hydrant"),
    ("a red and white [plate]", "cat"),
    ("a man holding [plates]", "cat"),
    ("a dinner [plate] near a man", "table"),
    ("a [wug]", "zorb"),
)
FEATURES: dict[str, Callable[[ProposedEdit, Knowledge], Iterator[Feature]]] = {
    "relation": relation_classifier.relation_features,
    "object": object_classifier.object_features,
}
CLASSIFIERS = {"relation": relation_classifier.RELATION_CLASSIFIER, "object": object_classifier.OBJECT_CLASSIFIER}
EDITS = [*(("relation", *edit) for edit in RELATIONS), *(("object", *edit) for edit in OBJECTS)]


@lru_cache(maxsize=1)
def known() -> Knowledge:
    """Return what a small pool, and WordNet, tell."""
    return Knowledge(load_wordnet(), counted(POOL))


@lru_cache(maxsize=2)
def weights(target: str) -> dict[str, tuple[float, ...]]:
    """Return the weights of each feature."""
    return {row["feature"]: tuple(float(row[label]) for label in LABELS) for row in read_rows(f"{target}_weights")}


def probabilities(target: str, edit: ProposedEdit, of_pool: Knowledge) -> list[float]:
    """Return the probabilities of one edit."""
    found = CLASSIFIERS[target].probabilities(edit, [edit.new], np.array([edit.log_prob]), of_pool)
    return [float(each) for [each] in found]


def edit_of(target: str, caption: str, new: str, log_prob: float = -4.0) -> ProposedEdit:
    """Return the edit of a caption with the replaced words in brackets."""
    return proposed(EditExample(caption, new, f"replace-{target}"))._replace(log_prob=log_prob)


@pytest.mark.parametrize(("target", "caption", "new"), EDITS)
def test_the_features_of_an_edit_have_unique_names_and_finite_values(target: str, caption: str, new: str) -> None:
    features = list(FEATURES[target](edit_of(target, caption, new), known()))
    assert len({name for name, _ in features}) == len(features)
    assert all(name == name.strip() for name, _ in features)  # tables are read without the spaces around a cell
    assert all(math.isfinite(value) for _, value in features)


@pytest.mark.parametrize(("target", "caption", "new"), EDITS)
def test_the_probabilities_are_those_of_all_features_with_their_weights(target: str, caption: str, new: str) -> None:
    edit = edit_of(target, caption, new)
    features = [(BIAS, 1.0), *FEATURES[target](edit, known())]
    for at, probability in enumerate(probabilities(target, edit, known())):
        logit = sum(value * weights(target)[name][at] for name, value in features if name in weights(target))
        assert probability == pytest.approx(1 / (1 + math.exp(-logit)))


@pytest.mark.parametrize(
    ("target", "new"), [("relation", ("walk on", "under", "near")), ("object", ("plate", "fire hydrant", "man"))]
)
def test_candidates_of_a_slot_are_judged_as_each_alone(target: str, new: tuple[str, ...]) -> None:
    edit = edit_of(target, "a [cat] near a table" if target == "object" else "a cat [sitting on] a table", "")
    log_probs = np.array([-2.0, -3.0, -4.0])
    together = CLASSIFIERS[target].probabilities(edit, new, log_probs, known())
    alone = [edit._replace(new=word, log_prob=log_prob) for word, log_prob in zip(new, log_probs.tolist(), strict=True)]
    assert together.T.tolist() == [pytest.approx(probabilities(target, each, known())) for each in alone]


@pytest.mark.parametrize("target", FEATURES)
def test_slots_of_several_captions_are_judged_as_each_alone_bit_by_bit(target: str) -> None:
    edits = [edit_of(*each) for each in EDITS if each[0] == target]
    at, log_probs = np.arange(len(edits)), np.array([edit.log_prob for edit in edits])
    together = CLASSIFIERS[target].judge(Candidates(edits, at, [edit.new for edit in edits], log_probs), known())
    assert together.T.tolist() == [probabilities(target, edit, known()) for edit in edits]


def test_features_of_what_is_absent_have_weights() -> None:
    relations = {f"verb {NONE}", f"old verb {NONE}", f"preposition {NONE}", f"old preposition {NONE}"}
    for target, without in (("relation", relations), ("object", {f"link by {NONE}", f"links by {NONE}"})):
        edits = [edit_of(*edit) for edit in EDITS if edit[0] == target]
        assert without <= {name for edit in edits for name, _ in FEATURES[target](edit, known())}
        assert without <= weights(target).keys()


@pytest.mark.parametrize("target", FEATURES)
def test_every_weight_is_of_one_feature_and_finite(target: str) -> None:
    assert len(weights(target)) == len(read_rows(f"{target}_weights"))
    assert BIAS in weights(target)
    assert all(math.isfinite(value) for row in weights(target).values() for value in row)


def test_who_walks_on_something_is_alive() -> None:
    alive, inanimate = (
        probabilities("relation", edit_of("relation", f"a {noun} [near] a table", "walk on"), known())
        for noun in ("cat", "plate")
    )
    assert inanimate[0] < alive[0]


def test_a_noun_that_captions_have_beside_the_words_of_a_caption_reads_more_naturally() -> None:
    seen, unseen = (
        probabilities("object", edit_of("object", "a [cat] on a table", noun), known()) for noun in ("plate", "street")
    )
    assert unseen[0] < seen[0]


def test_sentences_before_and_behind_change_nothing() -> None:
    """Replaced objects of captions of four sentences were rejected for the length alone: 7% instead of 41% of them had one."""
    around = " ".join(["A man is holding a plate."] * 6)
    alone, within = (
        probabilities("object", edit_of("object", caption, "plate"), known())
        for caption in ("A [cat] is on a table.", f"{around} A [cat] is on a table. {around}")
    )
    assert within == alone


@pytest.mark.parametrize(("target", "caption", "new"), EDITS)
def test_an_edit_is_judged_without_counts(target: str, caption: str, new: str) -> None:
    empty = Knowledge(load_wordnet(), counted(()))
    assert all(0 < each < 1 for each in probabilities(target, edit_of(target, caption, new), empty))


@pytest.mark.parametrize("target", FEATURES)
def test_a_pool_of_earlier_edits_is_not_kept_in_memory(target: str) -> None:
    caption, new = next(edit[1:] for edit in EDITS if edit[0] == target)
    earlier = Knowledge(load_wordnet(), counted(POOL))
    probabilities(target, edit_of(target, caption, new), earlier)
    kept = weakref.ref(earlier)
    del earlier
    for number in range(8):  # the latest edits are
        probabilities(target, edit_of(target, caption, new, float(-number)), known())
    gc.collect()
    assert kept() is None
