"""A place of a caption that wants another noun, and what the caption tells around it."""

from collections.abc import Sequence
from typing import NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import VERBS, before_it

_GOVERNS = frozenset({"IN", "TO", "VBG", "VBZ", "VBP", "VBD", "VB"})
_ACTS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VB"})
_BEFORE_ACTS = frozenset({"is", "are", "was", "were", "that", "which", "who"})
_AIR = frozenset({"air", "sky", "midair", "flying", "flies", "fly", "flight", "flown", "airborne"})


class NounSlot(NamedTuple):
    """A place of a caption that wants another noun.

    Attributes:
        noun: the lemma that stands there, compounds with spaces.
        governor: lemma of the verb or preposition right before it, or empty.
        context: lemmas of the content words of the caption.
        act: lemma of the verb that says what it does, or empty.
        contents: of what it is full, or consists, or a part: the lemma after "of", or empty.
        described: words that stay before it, adjectives and nouns.
        airborne: the caption speaks of the air.
        whole: what it fills, or is a part or a number of: the lemma before "of", or empty.
        placed: lemmas of what is said to be at it, things and deeds, each with the preposition.
        place: the preposition and the noun by which it is said where it is, or empty.
        uncounted: it is told of as a substance ("with chicken").
        single: "a" or "an" stands before it.
    """

    noun: str
    governor: str
    context: Sequence[str]
    act: str = ""
    contents: str = ""
    described: tuple[str, ...] = ()
    airborne: bool = False
    whole: str = ""
    placed: tuple[tuple[str, str], ...] = ()
    place: tuple[str, str] = ("", "")
    uncounted: bool = False
    single: bool = False


def noun_slot(caption: Caption, phrase: NounPhrase, start: int, noun: str) -> NounSlot:
    """Return the place of the words of a phrase from token ``start`` on, which a dictionary calls ``noun``."""
    staying = (at for at in (*phrase.adjectives, *phrase.nouns) if at < start)
    return NounSlot(
        noun,
        _governor(caption, phrase),
        caption.contents,
        act=_act(caption, phrase),
        contents=_contents(caption, phrase),
        described=tuple(caption.word(at) for at in staying),
        airborne=not _AIR.isdisjoint(caption.lower),
        whole=caption.lemmas[phrase.start - 2] if phrase.start > 1 and caption.word(phrase.start - 1) == "of" else "",
        placed=_placed(caption, phrase),
        place=_place(caption, phrase),
        uncounted=phrase.start > 0 and phrase.determiner < 0 and phrase.count < 0 and not caption.plural(phrase),
        single=caption.word(phrase.determiner) in {"a", "an"} and phrase.determiner >= 0,
    )


def _placed(caption: Caption, phrase: NounPhrase) -> tuple[tuple[str, str], ...]:
    """Return what is said to be at a phrase, things and deeds, each with the preposition."""
    found = next((found for found in caption.relations if found.end == phrase.start), None)
    if found is None:
        return ()
    thing, preposition = before_it(caption, found.start), " ".join(caption.lower[found.start : found.end])
    deeds = [caption.lemmas[found.start - 1]] if caption.tag(found.start - 1) in VERBS else []
    return tuple((left, preposition) for left in (*deeds, *([caption.head(thing)] if thing is not None else [])))


def _place(caption: Caption, phrase: NounPhrase) -> tuple[str, str]:
    """Return by which preposition, and at what, a phrase is said to be, verbs between; empty when it is not."""
    at = phrase.end
    while caption.tag(at)[:2] in {"VB", "RB"} or caption.word(at) in {"that", "which", "who"}:
        at += 1
    found = next((found for found in caption.relations if found.start == at), None)
    after = caption.starting_at(found.end) if found is not None else None
    if found is None or after is None:
        return "", ""
    return " ".join(caption.lower[found.start : found.end]), caption.head(after)


def _act(caption: Caption, phrase: NounPhrase) -> str:
    """Return the lemma of the verb right after a phrase, or after "is" or "that" there; empty when there is none."""
    at = phrase.end
    while caption.word(at) in _BEFORE_ACTS:
        at += 1
    return caption.tokens[at].lemma if caption.tag(at) in _ACTS else ""


def _contents(caption: Caption, phrase: NounPhrase) -> str:
    """Return the head of what stands after "of" ("a plate of | noodles"); empty when there is none."""
    after = caption.starting_at(phrase.end + 1) if caption.word(phrase.end) == "of" else None
    return caption.head(after) if after is not None else ""


def _governor(caption: Caption, phrase: NounPhrase) -> str:
    """Return the lemma of the preposition or verb right before a phrase; empty when there is none."""
    before = phrase.start - 1
    return caption.tokens[before].lemma if caption.tag(before) in _GOVERNS else ""
