"""The classifier of replaced relations: its features, its weights, and what it finds natural."""

import gc
import math
import weakref
from functools import lru_cache

import pytest

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.relation_classifier import (
    BIAS,
    LABELS,
    NONE,
    probabilities,
    relation_features,
)
from pairwright.generators.edits.constraints.table import EditExample
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.tables import read_rows
from tests.generators.edits.constraints.proposing import proposed
from tests.generators.rule_fixtures import counted

POOL = (
    *("a cat sitting on a table",) * 30, *("a man walking on a street",) * 30, *("a plate on a table",) * 30,
    *("a man holding a plate",) * 10, *("a cat near a table",) * 10, *("people sitting at a table",) * 10,
)  # fmt: skip
EDITS = (
    ("a cat [near] a table", "walk on"),
    ("a cat [sitting on] a table", "under"),
    ("a man [holding] a plate", "near"),
    ("a man [near] a plate", "hold"),
    ("people [sitting at] a table in a room", "stand on top of"),
    ("[near] a table", "on"),
    ("a wug [near] a zorb", "on"),
)


@lru_cache(maxsize=1)
def known() -> Knowledge:
    """Return what a small pool, and WordNet, tell."""
    return Knowledge(load_wordnet(), counted(POOL))


@lru_cache(maxsize=1)
def weights() -> dict[str, tuple[float, ...]]:
    """Return the weights of each feature."""
    return {row["feature"]: tuple(float(row[label]) for label in LABELS) for row in read_rows("relation_weights")}


def edit_of(caption: str, new: str, log_prob: float = -4.0) -> ProposedEdit:
    """Return the edit of a caption with its relation in brackets."""
    return proposed(EditExample(caption, new, "replace-relation"))._replace(log_prob=log_prob)


@pytest.mark.parametrize(("caption", "new"), EDITS)
def test_the_features_of_an_edit_have_unique_names_and_finite_values(caption: str, new: str) -> None:
    features = list(relation_features(edit_of(caption, new), known()))
    assert len({name for name, _ in features}) == len(features)
    assert all(math.isfinite(value) for _, value in features)


@pytest.mark.parametrize(("caption", "new"), EDITS)
def test_the_probabilities_are_those_of_all_features_with_their_weights(caption: str, new: str) -> None:
    edit = edit_of(caption, new)
    features = [(BIAS, 1.0), *relation_features(edit, known())]
    for at, probability in enumerate(probabilities(edit, known())):
        logit = sum(value * weights()[name][at] for name, value in features if name in weights())
        assert probability == pytest.approx(1 / (1 + math.exp(-logit)))


def test_features_of_a_relation_without_verb_or_preposition_have_weights() -> None:
    # Tables are read without the spaces around a cell, so a name must not end with the empty word.
    names = {name for edit in EDITS for name, _ in relation_features(edit_of(*edit), known())}
    assert all(name == name.strip() for name in names)
    without = {f"verb {NONE}", f"old verb {NONE}", f"preposition {NONE}", f"old preposition {NONE}"}
    assert without <= names
    assert without <= weights().keys()


def test_every_weight_is_of_one_feature_that_an_edit_may_have_and_finite() -> None:
    rows = read_rows("relation_weights")
    assert len(weights()) == len(rows)
    assert BIAS in weights()
    assert all(math.isfinite(value) for row in weights().values() for value in row)


def test_who_walks_on_something_is_alive() -> None:
    alive, inanimate = (
        probabilities(edit_of(f"a {noun} [near] a table", "walk on"), known()) for noun in ("cat", "plate")
    )
    assert inanimate[0] < alive[0]


def test_a_relation_is_judged_without_counts() -> None:
    empty = Knowledge(load_wordnet(), counted(()))
    for edit in EDITS:
        assert all(0 < each < 1 for each in probabilities(edit_of(*edit), empty))


def test_a_pool_of_earlier_edits_is_not_kept_in_memory() -> None:
    earlier = Knowledge(load_wordnet(), counted(POOL))
    probabilities(edit_of("a cat [near] a table", "walk on"), earlier)
    kept = weakref.ref(earlier)
    del earlier
    for number in range(8):  # the latest edits are
        probabilities(edit_of("a cat [near] a table", "walk on", float(-number)), known())
    gc.collect()
    assert kept() is None
