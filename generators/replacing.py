"""REPLACE: put another object, attribute or relation in the place of one.

Each maker goes through the places of a caption in random order and yields an outcome for each: the change, or why
there is none. What a maker may put in: see `candidates.py` and the tables. Kept out here are the cases where the new
text could still be true: a relation between things of which there are several, a thing that other captions describe
with the new word.
"""

import random
from collections.abc import Iterator

from pairwright.generators.attributes import UNTOUCHED, place
from pairwright.generators.candidates import Candidates, adjective_is_said, is_colour
from pairwright.generators.captions import GENDERED, Caption, Outcome
from pairwright.generators.edits import Change
from pairwright.generators.language.inflection import inflect
from pairwright.generators.nouns import GATHERINGS, KINDS, OF_PEOPLE
from pairwright.generators.phrases import NUMBER_WORDS, NounPhrase
from pairwright.generators.wordlists import word_set

_VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN"})
_FINITE_BE = frozenset({"is", "are", "was", "were", "'s"})
# After a verb of posture: where one can sit, one can stand; but one walks down a street and does not sit down it.
_AFTER_POSTURE = word_set("on in at by near next with beside behind together outside inside under and .") | {""}
_YOUNG = frozenset({"little", "small", "tiny"})  # of people
_FURTHEST = 3  # tokens between a thing and its relation: "a man who is standing on"


def replace_object(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[Outcome]:
    """Exchange a noun (or a compound that is one word to a dictionary) for one of the same kind."""
    for phrase in rng.sample(caption.phrases, len(caption.phrases)):
        if not caption.is_thing(phrase) or not caption.is_whole(phrase) or caption.tag(phrase.start - 1) == "HYPH":
            continue
        start, noun = _dictionary_noun(caption, phrase, candidates)
        if not noun:
            yield "no_candidate"
        elif noun in OF_PEOPLE and not GENDERED.isdisjoint(caption.lower):
            yield "not_grammatical"
        else:
            new, reason = candidates.for_noun(noun, caption.contents, caption.words, rng)
            yield (_change(caption, start, phrase.end, inflect(new, caption.tag(phrase.head))),) if new else reason


def _dictionary_noun(caption: Caption, phrase: NounPhrase, candidates: Candidates) -> tuple[int, str]:
    """Return where the noun starts and what a dictionary calls it; empty when part of an unknown compound."""
    before = phrase.head - 1
    if before >= phrase.start and before in {*phrase.nouns, *phrase.adjectives}:
        compound = f"{caption.word(before)} {caption.head(phrase)}"
        described = caption.head(phrase) in OF_PEOPLE or (before in phrase.adjectives and place(caption.word(before)))
        if compound in KINDS or (candidates.is_word(compound) and not described):
            earlier = before - 1 in phrase.nouns
            return (before, "" if earlier else compound)
        if before in phrase.nouns:
            return before, ""
    return phrase.head, caption.head(phrase)


def replace_attribute(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[Outcome]:
    """Exchange an adjective, a material or a number for one that excludes it."""
    places = [(phrase, at) for phrase in caption.phrases for at in _describing(caption, candidates, phrase)]
    places += _predicates(caption, candidates)
    for phrase, at in rng.sample(places, len(places)):
        if at == phrase.count:
            yield _other_number(caption, candidates, at, rng)
        else:
            yield _other_adjective(caption, candidates, phrase, at, rng)


def _describing(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> Iterator[int]:
    """Yield the tokens of a phrase that describe its head."""
    if phrase.count >= 0 and caption.plural(phrase) and caption.word(phrase.count) != "one":
        yield phrase.count
    if not phrase.joined:
        yield from (at for at in phrase.adjectives if _is_description(caption, candidates, phrase, at))
        yield from (at for at in phrase.nouns[:-1] if place(caption.word(at)))


def _is_description(caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int) -> bool:
    """Whether a token describes the head: "red" of a bus, but not of the Red Sox, of red wine or of a person."""
    word, noun = caption.word(at), caption.head(phrase)
    of_people = noun in OF_PEOPLE | GATHERINGS
    if word in UNTOUCHED or caption.tag(phrase.head).startswith("NNP"):
        return False
    if of_people and (is_colour(word) or word in _YOUNG):
        return False
    if at + 1 == phrase.head and not of_people and candidates.is_word(f"{word} {noun}"):
        return False  # a dictionary has the two as one word
    return caption.tag(at) == "JJ" or place(word) is not None


def _predicates(caption: Caption, candidates: Candidates) -> list[tuple[NounPhrase, int]]:
    """Return the adjectives said of a thing by "is": "the circle is red"."""
    found = []
    for phrase in caption.phrases:
        at = phrase.end + 1
        alone = caption.tag(at + 1) not in {"CC", ",", "NN", "NNS", "JJ"}
        if (
            caption.word(phrase.end) in _FINITE_BE
            and caption.tag(at) == "JJ"
            and alone
            and _is_description(caption, candidates, phrase, at)
        ):
            found.append((phrase, at))
    return found


def _other_number(caption: Caption, candidates: Candidates, at: int, rng: random.Random) -> Outcome:
    word = caption.word(at)
    digits = word.isdigit()
    number = int(word) if digits and len(word) < 3 else NUMBER_WORDS.index(word) + 1 if word in NUMBER_WORDS else 0
    if not 2 <= number <= 10:
        return "no_candidate"
    near = [n for n in range(number - 2, number + 4) if 2 <= n <= 10 and n != number]
    rng.shuffle(near)
    reason = "no_candidate"
    for n in near:
        if caption.words.has_any((NUMBER_WORDS[n - 1], str(n))):
            reason = "true_of_image"
        elif digits or candidates.is_written(NUMBER_WORDS[n - 1]):
            return (_change(caption, at, at + 1, str(n) if digits else NUMBER_WORDS[n - 1]),)
    return reason


def _other_adjective(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, at: int, rng: random.Random
) -> Outcome:
    reason = "no_candidate"
    for other in candidates.describing(caption.word(at), caption.head(phrase), rng):
        if not adjective_is_said(other, caption.words):
            return (_change(caption, at, at + 1, other),)
        reason = "true_of_image"
    return reason


def _change(caption: Caption, start: int, end: int, after: str) -> Change:
    return Change(caption.tokens[start].start, caption.tokens[end - 1].end, after)
