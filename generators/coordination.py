"""Swapping what "and" joins, only where the two orders mean the same.

"A and B" may be exchanged when both are plain noun phrases with their own determiners (or both without any and without
adjectives that could belong to both), nothing before them belongs to the first only ("on a horse and a dog" may be a
man on a horse, and a dog), nothing after them belongs to the second only ("a man and a dog on a leash"), neither speaks
of the other ("a man and his dog"), and the verb stays right in number.
"""

import random
from collections.abc import Iterator

from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.swapping import changing_places
from pairwright.generators.wordlists import word_set

# After these the whole of "A and B" is meant, as far as it goes.
_OPENS = frozenset(
    {"", "with", "between", "showing", "shows", "features", "featuring", "containing", "contains", "has"}
)
_OPENS_BARE = frozenset({"of", "with", "and", ",", "between", "containing", "like"})
_PICTURES = word_set("picture photo photograph image painting drawing illustration close-up closeup")
_BE = frozenset({"is", "are", "was", "were"})
_CLOSES = frozenset({"", ".", "!", ";"})
_SUBJECT_ENDS = frozenset({"are", "were"})
# Said in one order only.
_FIXED = frozenset(
    {("salt", "pepper"), ("mac", "cheese"), ("macaroni", "cheese"), ("bed", "breakfast"), ("bride", "groom")}
    | {("butter", "jelly"), ("rock", "roll"), ("fish", "chip"), ("suit", "tie"), ("lady", "gentleman")}
)


def swap_around_and(caption: Caption, rng: random.Random) -> Iterator[Outcome]:
    """Exchange two co-ordinated noun phrases."""
    places = [at for at in range(len(caption.tokens)) if caption.word(at) == "and"]
    for at in rng.sample(places, len(places)):
        one, other = caption.ending_at(at), caption.starting_at(at + 1)
        if one is None or other is None:
            continue
        if _noun_form(caption, one) == _noun_form(caption, other):
            yield "identical"
        elif not _alike(caption, one, other):
            yield "not_grammatical"
        elif not (_nothing_before(caption, one, other) and _nothing_after(caption, other)):
            yield "may_be_false"
        else:
            yield changing_places(caption, one, other)


def _noun_form(caption: Caption, phrase: NounPhrase) -> tuple[str, ...]:
    return caption.lower[phrase.start : phrase.end]


def _alike(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether each phrase can stand where the other stands."""
    inside = {*_noun_form(caption, one), *_noun_form(caption, other)}
    bare = _is_bare(one) and _is_bare(other)
    both_own = not _is_bare(one) and not _is_bare(other)
    if not ANAPHORS.isdisjoint(inside) or not (bare or both_own):
        return False
    if any(caption.tag(at) in {"VBG", "VBZ"} for phrase in (one, other) for at in range(phrase.start, phrase.head)):
        return False  # "a garden containing white flowers and a black bench": the second may be in the first
    if bare and (one.adjectives or len(one.nouns) > 1 or not _alone(caption, one) or not _alone(caption, other)):
        return False
    return (caption.head(one), caption.head(other)) not in _FIXED


def _is_bare(phrase: NounPhrase) -> bool:
    return phrase.determiner < 0 and phrase.count < 0


def _alone(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a noun without a determiner can do without: a plural or a substance, and no telegram style."""
    return caption.plural(phrase) or caption.word(phrase.start - 1) in {"of", "with"}


def _nothing_before(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    before = caption.word(one.start - 1)
    if before in _BE:
        there = caption.word(one.start - 2) == "there"
        return there and caption.plural(one) == caption.plural(other)
    if before == "of":
        return caption.word(one.start - 2) in _PICTURES or (_is_bare(one) and _is_bare(other))
    if _is_bare(one):
        return before in _OPENS_BARE | {""}
    return before in _OPENS or (before == "," and caption.word(one.start - 2) not in _OPENS)


def _nothing_after(caption: Caption, other: NounPhrase) -> bool:
    after = caption.word(other.end)
    closed = after in _CLOSES and not caption.tag(other.end).startswith(("NN", "JJ", "CD"))
    return closed or after in _SUBJECT_ENDS
