"""ADD an attribute that is not true.

It is contradicted by a caption of the same image ("a red bus" forbids "blue"; sizes come last, being a matter of
opinion). Only where captions say nothing of a thing, it is one so rare of such things in the pool (a purple bus) that
five captions would hardly pass over it: a lively colour or a pattern, since a gray cat or a metal table goes unremarked.
A contradicted attribute is as sure as the caption that contradicts it; that a rare one is not this one's cannot be proven.

`both_attributes` gives a true one with it, which other captions say, in the same place. Pairs are taken as often as their
reverse, so that no word tells which one is true.
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.edited import BothOutcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.adjective_candidates import adjective_is_said, keeps_its_colour
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.rules.added_places import LONGER, Place, attribute_places
from pairwright.generators.rules.presence import (
    attributes_there,
)
from pairwright.generators.words.attributes import UNTOUCHED, exclude_each_other, is_colour, opposed
from pairwright.generators.words.attributes import place as class_of
from pairwright.generators.words.nouns import OF_PEOPLE
from pairwright.generators.words.wordlists import word_set

_NATURAL = word_set("water ocean sea snow sand river lake pond wave air cloud grass field dirt rock beach")
_UNREMARKED = frozenset({"brown", "gray", "black", "white"})  # colours that captions pass over


def add_attribute(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Add an attribute that is not true: what captions contradict first, then what would be rare of such a thing."""
    places = attribute_places(caption)
    unsaid: list[Place] = []
    for place in rng.shuffled(places):
        said = _said_of(caption, candidates, place.phrase)
        if said:
            yield from _each(place, _contradicted(caption, candidates, place.phrase, said, rng))
        else:
            unsaid.append(place)
    for place in unsaid:
        yield from _each(place, _rare(caption, candidates, place.phrase, rng))


def both_attributes(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[BothOutcome]:
    """Add an attribute that is not true and, in the same place, one that is."""
    places = attribute_places(caption)
    for place in rng.shuffled(places):
        known = attributes_there(caption, candidates, place.phrase)
        if not known:
            yield "no_positive"
            continue
        true = rng.choice(known)
        said = _said_of(caption, candidates, place.phrase)
        untrue = [word for word, _ in _contradicted(caption, candidates, place.phrase, said, rng) if word]
        near = [word for word in untrue if _excludes(word, true) and abs(len(word) - len(true)) <= LONGER]
        false = candidates.adjectives.told_instead(true, near, caption.head(place.phrase), rng)
        yield (place.change(false), place.change(true)) if false else "no_candidate"


def _each(place: Place, words: Iterator[tuple[str, str]]) -> Iterator[Outcome]:
    for word, reason in words:
        yield place.change(word) if word else reason


def _said_of(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> list[str]:
    """Return the adjectives that other captions put right before the noun."""
    nouns = tuple(caption.lower[at] for at in phrase.nouns)
    head = caption.head(phrase)
    found = [
        line[at - 1]
        for line in caption.words.others
        if nouns[0] in line
        for at, word in enumerate(line)
        if word == nouns[0]
        and at
        and line[at : at + len(nouns)] == nouns
        and candidates.usage.is_adjective(line[at - 1], head)
    ]
    return [word for word in dict.fromkeys(found) if word not in UNTOUCHED]


def _contradicted(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, said: Sequence[str], rng: RandomStream
) -> Iterator[tuple[str, str]]:
    """Yield attributes that exclude what captions say of a phrase, sizes last; a reason where one may be true."""
    known = candidates.adjectives.attributes_of(caption.head(phrase))
    words = [word.text for word in known if any(_excludes(word.text, other) for other in said)]
    drawn = sorted(rng.shuffled(words), key=_is_size)
    return _checked(caption, phrase, drawn)


def _rare(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: RandomStream) -> Iterator[tuple[str, str]]:
    """Yield attributes that captions would hardly pass over; a reason where one may be true."""
    head = caption.head(phrase)
    told = head not in OF_PEOPLE and not candidates.things.is_alive(head) and head not in _NATURAL
    rare = [word.text for word in candidates.adjectives.attributes_of(head) if word.rare and told]
    words = [word for word in rare if _is_remarked(word)]
    return _checked(caption, phrase, rng.shuffled(words))


def _checked(caption: Caption, phrase: NounPhrase, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if caption.words.several(caption.head(phrase)) and not caption.plural(phrase):
        yield "", "true_of_image"
        return
    keeps = keeps_its_colour(caption, phrase)
    fitting = [word for word in words if not (keeps and is_colour(word))]
    if not fitting:
        yield "", "no_candidate"
    for word in fitting:
        yield ("", "true_of_image") if adjective_is_said(word, caption.words) else (word, "")


def _is_remarked(word: str) -> bool:
    """Whether captions would hardly pass over a word of a colour, material or pattern that is rare."""
    found = class_of(word)
    return found is not None and found.group != "material" and found.concept not in _UNREMARKED


def _is_size(word: str) -> bool:
    found = class_of(word)
    return found is None or found.group == "size"


def _excludes(word: str, other: str) -> bool:
    return exclude_each_other(word, other) or opposed(word, other)
