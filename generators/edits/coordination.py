"""Swaps of coordinated noun phrases that keep the meaning of a caption: hard positives.

"A and B" may be exchanged if both are complete noun phrases with their own determiners, or both are bare nouns of one
word ("cups and plates"; in "red apples and oranges" the colour may modify both). Nothing before them may attach to the
first only ("on a horse and a dog" may be a man on a horse, and a dog; "a man with a hat and a woman" is a man and a
woman), nothing after them to the second only ("a man and a dog on a leash"); neither refers to the other ("a man and
his dog") or is a name, they are no fixed phrase ("odds and ends"), and the verb must agree in the new order.
``coordination.tsv`` has the words.
"""

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pairwright.generators.captions.caption import ANAPHORS, Caption, EditOutcome
from pairwright.generators.captions.phrases import PROPER, NounPhrase
from pairwright.generators.lexicon.nouns import nouns_of_class
from pairwright.generators.lexicon.tables import read_rows

_START: Final = "|"  # marks the start of a caption
_MOST_NOUNS: Final = 2  # of a phrase; more may be a clause with tagging errors
# "containing white flowers and a bench", "Mario and Luigi"
_VERBS_AND_NAMES: Final = frozenset({"VBG", "VBZ"}) | PROPER
_SENTENCE_ENDS: Final = frozenset({"", ".", "!", ";"})


def swap_around_and(caption: Caption, rng: random.Random) -> Iterator[EditOutcome]:
    """Exchange two coordinated noun phrases."""
    places = [at for at, word in enumerate(caption.lower) if word == "and"]
    for at in rng.sample(places, len(places)):
        one, other = caption.ending_at(at), caption.starting_at(at + 1)
        if one is None or other is None:
            continue
        if _words_of(caption, one) == _words_of(caption, other):
            yield "identical"
        elif not _are_exchangeable(caption, one, other):
            yield "not_grammatical"
        elif not (_is_clear_before(caption, one, other) and _is_clear_after(caption, other)):
            yield "may_be_false"
        else:
            yield caption.exchange((one.start, one.end), (other.start, other.end))


@lru_cache(maxsize=16)
def _words(feature: str) -> frozenset[str]:
    return frozenset(row["words"] for row in read_rows("coordination") if feature in row["features"].split())


def _before(caption: Caption, phrase: NounPhrase, steps: int = 1) -> str:
    """Return the word ``steps`` before a phrase; `_START` at the start of the caption."""
    return caption.word(phrase.start - steps) or _START


def _words_of(caption: Caption, phrase: NounPhrase) -> tuple[str, ...]:
    return caption.lower[phrase.start : phrase.end]


def _is_person(caption: Caption, phrase: NounPhrase) -> bool:
    return caption.head(phrase) in nouns_of_class("person")


def _are_exchangeable(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Return whether each phrase is grammatical in the position of the other."""
    inside = {*_words_of(caption, one), *_words_of(caption, other)}
    tags = {caption.tag(at) for phrase in (one, other) for at in range(phrase.start, phrase.end)}
    if not (ANAPHORS | _words("other")).isdisjoint(inside) or not tags.isdisjoint(_VERBS_AND_NAMES):
        return False
    if f"{caption.head(one)} and {caption.head(other)}" in _words("fixed"):
        return False
    if max(len(one.nouns), len(other.nouns)) > _MOST_NOUNS or one.is_bare is not other.is_bare:
        return False
    return not one.is_bare or all(_needs_no_determiner(caption, phrase) for phrase in (one, other))


def _needs_no_determiner(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether a noun needs no determiner and has no modifier that may attach to both."""
    alone = len(phrase.nouns) == phrase.end - phrase.start == 1
    substance = caption.head(phrase) in _words("substance") and _before(caption, phrase) != _START
    return alone and (caption.plural(phrase) or substance)


def _is_clear_before(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Return whether nothing before two phrases may attach to the first of them only."""
    before, holder = _before(caption, one), _before(caption, one, 2)
    has, bare = before in _words("has"), one.is_bare
    if before in _words("be"):
        return holder == "there" and caption.plural(one) == caption.plural(other)
    if before == "of":
        return holder in _words("picture") or (bare and holder in _words("mixed"))
    if bare:
        return before in _words("opens_bare")
    owned = _is_person(caption, one) is not _is_person(caption, other)  # "a man with a hat and a woman"
    if has and (owned or holder in _words("holder") | _words("other")):
        return False
    return before in _words("opens") or (before == "," and holder not in _words("opens"))


def _is_clear_after(caption: Caption, other: NounPhrase) -> bool:
    """Return whether nothing after two phrases may attach to the second of them only."""
    after, tag = caption.word(other.end), caption.tag(other.end)
    if after in _SENTENCE_ENDS:
        return not tag.startswith(("NN", "JJ", "CD"))
    return after in _words("be")
