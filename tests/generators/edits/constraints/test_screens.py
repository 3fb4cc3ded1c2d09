"""Screens: what they find for many proposals at once is what the constraints say of each."""

from dataclasses import replace
from functools import lru_cache

import pytest

from pairwright.datasets.records import Box, Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import load_carried_model
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import Proposals, proposed_edit, score_captions
from pairwright.generators.edits.replacements import REPLACEMENT_TYPES, Replacements, build_replacements
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.edits.constraints.test_constraints import POOL
from tests.generators.rule_fixtures import counted

PAIRS = (
    Pair("1", "A cat sitting on a table next to a plate.", captions=("a dog lying under a chair", "a black cat")),
    Pair("2", "Two men riding horses near a red-roofed house.", captions=("three people standing by a house",)),
    Pair("3", "a wooden chair at a table", captions=("a man holding a fork", "a bird on a red-backed chair")),
    Pair("4", "a street with no cars or a red bus on it", boxes=(Box("bus", 0.1, 0.1, 0.4, 0.4),)),
    Pair("5", "a ham sandwich and rice in a bowl", captions=("several bowls of soup on a small table",)),
    Pair("6", "a large white boat sails into the harbor", boxes=(Box("boat", 0.1, 0.1, 0.4, 0.4),) * 2),
    Pair("7", "a fan of the Red Sox walking into a walk-in closet", captions=("the man is young and tall",)),
)


@lru_cache(maxsize=3)
def proposed(name: str) -> tuple[Replacements, tuple[tuple[Caption, Proposals], ...]]:
    """Return the maker of a type of edits, and captions with its proposals."""
    materials = EditMaterials.of(load_wordnet(), counted(POOL * 3), load_carried_model())
    made, kind = build_replacements(name, materials, 1e-4), REPLACEMENT_TYPES[name].kind
    captions = [
        Caption(pair, tokens)
        for pair, tokens in zip(PAIRS, load_tagger().tag([pair.caption for pair in PAIRS]), strict=True)
    ]
    scored = score_captions(captions, materials.knowledge.thesaurus, materials.model.cloze, [kind])
    return made, tuple(zip(captions, made.proposer.propose(scored), strict=True))


@pytest.mark.parametrize("name", REPLACEMENT_TYPES)
def test_a_screen_finds_what_the_constraints_say(name: str) -> None:
    made, found = proposed(name)
    screen, decided = made.proposer.screen, set()
    for caption, proposals in found:
        for at in range(0, len(proposals), 3):
            edit = proposed_edit(caption, *proposals.at(at))
            asked, first = int(proposals.screened.asked[at]), int(proposals.screened.violated[at])
            truth = [each.violated(edit, screen.known) for each in screen.constraints]
            assert first == len(truth) or truth[first], (edit, screen.constraints[first].id)
            missed = [
                each.id
                for number, each in enumerate(screen.constraints)
                if truth[number] and not asked >> number & 1 and number < first
            ]
            assert not missed, edit
            decided.add(first)
    assert len(decided) > 2


@pytest.mark.parametrize("name", REPLACEMENT_TYPES)
def test_a_proposal_is_screened_the_same_in_any_batch(name: str) -> None:
    made, found = proposed(name)
    materials = EditMaterials.of(load_wordnet(), counted(POOL * 3), load_carried_model())
    for caption, proposals in found[:3]:
        kind = made.proposer.kind
        (alone,) = made.proposer.propose(
            score_captions([caption], materials.knowledge.thesaurus, materials.model.cloze, [kind])
        )
        assert alone.screened.asked.tolist() == proposals.screened.asked.tolist()
        assert alone.screened.violated.tolist() == proposals.screened.violated.tolist()


def test_edits_are_the_same_without_a_screen() -> None:
    for name in REPLACEMENT_TYPES:
        made, found = proposed(name)
        for caption, proposals in found:
            asked = replace(proposals, screened=made.proposer.screen.pass_all(len(proposals)))
            one, other = (
                [each for each in made.outcomes(caption, given, 7) if not isinstance(each, str)]
                for given in (proposals, asked)
            )
            assert one == other
