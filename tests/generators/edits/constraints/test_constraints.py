"""The table of constraints: each blocks and allows what it says, and nothing is asked of what it does not apply to."""

import pickle
from functools import lru_cache

import pytest

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import (
    CONSTRAINTS,
    Constraint,
    EditExample,
    applicable_constraints,
    first_violated,
)
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.edits.constraints.proposing import proposed
from tests.generators.rule_fixtures import counted

POOL = (
    *("a fork and a plate on a table",) * 30, *("a cat sitting on a table",) * 30, *("a boat sailing on the water",) * 60,
    *("a wooden chair at a table",) * 10, *("a red bus on a street",) * 30, *("a black cat sitting on a chair",) * 10,
    *("a cat on a table",) * 10, *("a cat walking on a table",) * 10, *("a cat jumping into a box",) * 30,
    *("a bowl of soup on a table",) * 10, *("a bowl of soup and chicken",) * 5, *("a bowl of rice on a table",) * 10, *("a sandwich on a table",) * 20,
    *("a man walks his dog",) * 30, *("a woman walks a dog",) * 30, *("a ham sandwich",) * 10, *("three boats on the water",) * 10, *("a field of cattle",) * 20,
)  # fmt: skip


@lru_cache(maxsize=1)
def known() -> Knowledge:
    """Return what a pool of few scenes, and WordNet, tell."""
    return Knowledge(load_wordnet(), counted(POOL))


def violated_by(edit: ProposedEdit, *, by_rules: bool = False, skip: frozenset[str] = frozenset()) -> Constraint | None:
    """Return the first constraint that an edit violates."""
    constraints = applicable_constraints(edit.kind, edit.form, edit.target, by_rules=by_rules, skip=skip)
    return first_violated(constraints, edit, known())


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda each: each.id)
def test_each_constraint_blocks_and_allows_its_examples(constraint: Constraint) -> None:
    kind = constraint.kind
    for example, violated in ((constraint.blocked, True), (constraint.allowed, False)):
        edit = proposed(example, kind)
        assert constraint.applies_to(kind, edit.form, edit.target, by_rules=not constraint.of_texts)
        assert constraint.violated(edit, known()) is violated, example


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda each: each.id)
def test_an_allowed_example_violates_no_constraint_but_those_of_plausibility(constraint: Constraint) -> None:
    skip = frozenset() if constraint.group == "plausibility" else frozenset({"plausibility"})
    edit = proposed(constraint.allowed, constraint.kind)
    assert violated_by(edit, by_rules=not constraint.of_texts, skip=skip) is None


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda each: each.id)
def test_a_blocked_example_violates_no_other_constraint_of_its_edits(constraint: Constraint) -> None:
    edit = proposed(constraint.blocked, constraint.kind)
    skip = {constraint.id} | ({"stated_object"} if constraint.id == "same_object" else set())  # the caption states it
    assert violated_by(edit, by_rules=not constraint.of_texts, skip=frozenset(skip)) is None


def test_twins_differ_in_what_they_block_of_edits_by_rules() -> None:
    by_id = {each.id: each for each in CONSTRAINTS}
    for one, other in (("frequent_cooccurrence", "probable_object"), ("unseen_attribute", "implausible")):
        for this, twin in ((by_id[one], by_id[other]), (by_id[other], by_id[one])):
            edit = proposed(this.blocked, this.kind)
            assert this.violated(edit, known())
            assert not twin.violated(edit, known())


def test_a_skipped_constraint_or_group_is_not_asked() -> None:
    edit = proposed(EditExample("a [dog] on a bed", "cat", "replace-object", ("a cat",)))
    found = violated_by(edit)
    assert (found.id, found.reason) == ("stated_object", "true_of_image") if found else False
    for skip in ({"stated_object", "plausibility"}, {"truth", "plausibility"}):
        assert violated_by(edit, skip=frozenset(skip)) is None


@pytest.mark.parametrize(
    ("caption", "new", "blocked"),
    [
        ("three [boats] on a table", "water", "countability"),
        ("three [boats] on a table", "cat", "countability"),
        ("a [boat] on the water", "cattle", "countability"),
        ("a ham [sandwich] on a table", "water", "unnatural_object"),
        ("a bowl of [soup] near a boat", "fork", "countability"),
        ("a [cat] on a table", "sandwich", ""),
    ],
)
def test_words_that_captions_never_use_so_are_not_written(caption: str, new: str, blocked: str) -> None:
    edit = proposed(EditExample(caption, new, "replace-object"))
    violated = {each.id for each in CONSTRAINTS if each.violated(edit, known())}
    asked = ("countability", "unnatural_object")
    assert next((each for each in asked if each in violated), "") == blocked


@pytest.mark.parametrize(("noun", "violated"), [("cat", True), ("house cat", True), ("walrus", False)])
def test_a_compound_is_described_as_its_head_and_a_rare_noun_by_any_attribute(noun: str, *, violated: bool) -> None:
    edit = proposed(EditExample("a [red] cat on a table", "wooden", "replace-attribute"))._replace(after=noun)
    constraint = next(each for each in CONSTRAINTS if each.id == "unseen_attribute")
    assert constraint.violated(edit, known()) is violated


def test_ids_are_unique() -> None:
    assert len({each.id for each in CONSTRAINTS}) == len(CONSTRAINTS)


@pytest.mark.parametrize(
    ("caption", "new", "kind", "other", "blocked"),
    [
        ("a [dog] on a bed", "puppy", "replace-object", "", "same_object"),
        ("a [car] on a street", "racket", "replace-object", "a man with two tennis rackets", "stated_object"),
        ("a [car] on a street", "tennis racket", "replace-object", "a man with a racket", "stated_object"),
        ("a [car] on a street", "boat", "replace-object", "a canoe", "stated_object"),
        ("a man in a [coat]", "hat", "replace-object", "a red-hatted man", "stated_object"),
        ("a man in a [red] hat", "blue", "replace-attribute", "a blue-hatted man", "stated_attribute"),
        ("a man in a [red] hat", "blue", "replace-attribute", "a man has a blue hat", "stated_attribute"),
        ("an [open] window", "closed", "replace-attribute", "a room with the window closed", "stated_attribute"),
        ("a man [riding] a horse", "chase", "replace-relation", "a horse being chased by a man", "stated_relation"),
        ("a man [riding] a horse", "chase", "replace-relation", "a horse ridden by a man", ""),
        ("a man [chasing] a horse", "ride", "replace-relation", "a horse ridden by a man", "stated_relation"),
        ("a man [standing on] a bench", "sit on", "replace-relation", "a man on a bench", ""),
        ("a man [standing on] a bench", "sit on", "replace-relation", "a guy is sitting on a bench", "stated_relation"),
        ("a man [standing near] a bench", "sit on", "replace-relation", "a man on a bench", "stated_relation"),
        ("a cat [under] a table", "on", "replace-relation", "a table with a cat on it", "stated_relation"),
        ("[two] dogs here", "three", "replace-attribute", "a trio of dogs", "possible_count"),
        ("[a] dog here", "two", "replace-attribute", "some dogs", "possible_count"),
        ("a street without a [car]", "bus", "replace-object", "", "negation_scope"),
        ("a man who is not [riding] a horse", "lead", "replace-relation", "", "negation_scope"),
        ("a street [without] cars", "with", "replace-relation", "", "negation_word"),
        ("a [black] or white dog", "red", "replace-attribute", "", "disjunction"),
        ("a dog [on] a bed", "under", "replace-relation", "two dogs", "one_of_several"),
    ],
)  # fmt: skip
def test_what_others_say_blocks_an_edit_however_they_say_it(
    caption: str, new: str, kind: str, other: str, blocked: str
) -> None:
    edit = proposed(EditExample(caption, new, kind, (other,) if other else ()))
    found = violated_by(edit, skip=frozenset({"plausibility"}))
    assert (found.id if found else "") == blocked


def test_lookups_are_pickled_without_their_caches() -> None:
    copy = pickle.loads(pickle.dumps(known()))  # noqa: S301 - our own bytes
    assert copy.nouns.exclusive("dog", "cat")
    assert copy.attributes.exclusive("red", "blue", "bus")
