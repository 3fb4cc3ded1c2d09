"""Filters over pairs: shapes, near-duplicates, concept coverage."""

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair
from pairwright.filters.pairs.concept_coverage import ConceptCoverage, extract_concept_phrases
from pairwright.filters.pairs.size_limits import SizeLimits
from pairwright.generators.language.tagger import load_tagger
from tests.example_counts import examples

if TYPE_CHECKING:
    from pairwright.filters.pairs.near_duplicate_captions import NearDuplicates


@pytest.mark.parametrize(
    ("bounds", "pair", "reason"),
    [
        (SizeLimits(min_words=3), Pair("k", "two words"), "too_short"),
        (SizeLimits(max_words=3), Pair("k", "now there are four"), "too_long"),
        (SizeLimits(min_words=4, max_words=4), Pair("k", "now there are four"), ""),
        (SizeLimits(min_side=100), Pair("k", "x", width=640, height=99), "image_too_small"),
        (SizeLimits(max_aspect=2), Pair("k", "x", width=201, height=100), "extreme_aspect_ratio"),
        (SizeLimits(max_aspect=2), Pair("k", "x", width=100, height=200), ""),
        (SizeLimits(min_side=100, max_aspect=1), Pair("k", "x"), ""),
    ],
)
def test_pairs_outside_a_limit_are_rejected_with_its_reason(bounds: SizeLimits, pair: Pair, reason: str) -> None:
    assert bounds.violated_limit(pair) == reason


@pytest.mark.parametrize("wrong", [{"min_words": 3, "max_words": 2}, {"max_aspect": 0.5}])
def test_limits_that_no_pair_can_meet_are_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        SizeLimits(**wrong)  # type: ignore[arg-type]


def near_duplicates(threshold: float) -> "NearDuplicates":
    from pairwright.filters.pairs.near_duplicate_captions import NearDuplicates  # imports scipy, which takes a second

    return NearDuplicates(threshold)


def test_of_near_duplicate_captions_the_first_is_kept() -> None:
    said = near_duplicates(0.8)
    assert said.is_new("A man is riding a brown horse on the beach.", "1")
    assert not said.is_new("a man is riding a brown horse on the beach", "2")
    assert said.is_new("a brown man on the beach is riding a horse", "4")
    assert said.is_new("two dogs on a couch", "5")
    assert said.is_new("!", "6")


def test_captions_of_one_image_may_be_near_duplicates() -> None:
    said = near_duplicates(0.8)
    assert said.is_new("a dog on a couch", "1")
    assert said.is_new("A dog on a couch.", "1")
    assert not said.is_new("a dog on a couch", "2")


@pytest.mark.parametrize("threshold", [0.01, 0.5, 0.98, 0.99, 1.0])
def test_any_threshold_is_respected(threshold: float) -> None:
    said = near_duplicates(threshold)
    assert said.is_new("a dog on a couch", "1")
    assert not said.is_new("A dog on a couch.", "2")
    assert said.is_new("two zebras by the river", "3")


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), min_size=1, max_size=6), max_size=12))
def test_every_dropped_caption_has_a_kept_near_duplicate(captions: list[list[str]]) -> None:
    said = near_duplicates(0.7)
    staying: list[frozenset[str]] = []
    for at, words in enumerate(captions):
        shingles = frozenset([*words, *map(" ".join, pairwise(words))])
        alike = any(len(shingles & other) / len(shingles | other) >= 0.7 for other in staying)
        if said.is_new(" ".join(words), str(at)):
            staying.append(shingles)
        else:
            assert alike


def concepts_of(
    captions: list[str], floor: int, cap: int, seed: int = 0
) -> tuple[list[bool], list[bool], ConceptCoverage]:
    concepts = ConceptCoverage(floor, cap, seed)
    for at, tokens in enumerate(load_tagger().tag(captions)):
        concepts.add(f"{at:032d}", tokens)
    found = concepts.covered()
    return found.kept.tolist(), found.rare.tolist(), concepts


def test_phrases_are_adjectives_and_nouns_without_articles_and_counts() -> None:
    (tokens,) = load_tagger().tag(["Two large red buses near the fire hydrant"])
    assert extract_concept_phrases(tokens) == {"large red bus", "fire hydrant"}


def test_every_frequent_concept_is_kept_and_a_common_one_is_capped() -> None:
    captions = ["a dog on a beach"] * 30 + ["a cat on a beach"] * 3 + ["a walrus"] * 2
    kept, rare, concepts = concepts_of(captions, floor=3, cap=5)
    assert sum(kept[:30]) <= 10  # five for the dog, and what the beach draws
    assert all(kept[30:33])
    assert not any(kept[33:])
    assert rare == [False] * 33 + [True] * 2
    found = concepts.covered()
    assert (found.phrases, found.counted, found.capped) == (4, 3, 2)


@settings(max_examples=examples(30))
@given(st.lists(st.sampled_from(["a dog", "a cat", "a dog and a cat", "a red car"]), min_size=1), st.integers(0, 3))
def test_a_frequent_phrase_is_in_as_many_captions_as_its_cap_allows_at_least(captions: list[str], seed: int) -> None:
    kept, _, _ = concepts_of(captions, floor=2, cap=3, seed=seed)
    tokens = load_tagger().tag(captions)
    held = Counter(phrase for words in tokens for phrase in extract_concept_phrases(words))
    left = Counter(
        phrase for words, one in zip(tokens, kept, strict=True) if one for phrase in extract_concept_phrases(words)
    )
    assert all(left[phrase] >= min(count, 3) for phrase, count in held.items() if count >= 2)


def test_another_seed_selects_other_captions() -> None:
    captions = ["a dog"] * 100
    assert concepts_of(captions, 1, 10)[0] != concepts_of(captions, 1, 10, seed=1)[0]
    assert concepts_of(captions, 1, 10)[0] == concepts_of(captions, 1, 10)[0]
