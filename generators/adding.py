"""ADD: a thing that is not there, or an attribute that is not true.

A false thing is one that would be noticed (`ADDABLE`), that captions of the pool have in such company, and that
nothing said about the image names. A false attribute is contradicted by a caption of the same image ("a red bus"
forbids "blue"), or it is so rare of such things in the pool (a purple bus) that five captions would hardly pass over it.

Adding only what is false would make every negative the longer text. So each place also has its true additions, taken
from the image's other captions and boxes: `both_sides` gives the two together, put in the same place, by the same
joint, and with the number of words the same.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pairwright.generators.attributes import UNTOUCHED, exclude_each_other, opposed
from pairwright.generators.candidates import Candidates, adjective_is_said
from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.edited import BothOutcome
from pairwright.generators.edits import Change
from pairwright.generators.language.inflection import article
from pairwright.generators.nouns import ADDABLE, FIGURES, OF_PEOPLE
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.wordlists import word_set

_INDEFINITE = word_set("a an some several two three four five six another many")
_HAVING = word_set("with has have having and holding carrying featuring containing wearing plus")
_CLOSED = frozenset({"", ".", "!", ";"})
_GOES_ON = frozenset({"VBG", "VBN", "IN"})  # "a man with a dog | riding a bike"
_FINITE = frozenset({"is", "are", "was", "were", "has", "have"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where something may be added: code point ``at``, after the text ``joint`` and before the text ``rest``."""

    phrase: NounPhrase
    at: int
    joint: str
    rest: str = ""

    def change(self, words: str) -> tuple[Change]:
        """Return the addition of ``words``."""
        return (Change(self.at, self.at, self.joint + words + self.rest),)


def add_object(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[Outcome]:
    """Add a thing that is not there."""
    places = _thing_places(caption)
    if places:
        for noun, reason in _absent(caption, candidates, rng):
            yield rng.choice(places).change(_indefinite(noun)) if noun else reason
        yield "no_candidate"


def add_attribute(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[Outcome]:
    """Add an attribute that is not true."""
    places = _attribute_places(caption)
    for place in rng.sample(places, len(places)):
        for word, reason in _untrue(caption, candidates, place.phrase, rng):
            yield place.change(word) if word else reason


def both_objects(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[BothOutcome]:
    """Add a thing that is not there and, in the same place, one that is."""
    places = [place for place in _thing_places(caption) if caption.tag(place.phrase.end) != "IN"]
    present = _present(caption, candidates)
    for place in rng.sample(places, len(places)):
        if not present:
            yield "no_positive"
            continue
        true = rng.choice(present)
        false = next((noun for noun, _ in _absent(caption, candidates, rng, like=true) if noun), "")
        yield (place.change(_indefinite(false)), place.change(_indefinite(true))) if false else "no_candidate"


def both_attributes(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[BothOutcome]:
    """Add an attribute that is not true and, in the same place, one that is."""
    places = _attribute_places(caption)
    for place in rng.sample(places, len(places)):
        known = [word for word in _said_of(caption, candidates, place.phrase) if "-" not in word]
        if not known or caption.words.several(caption.head(place.phrase)):
            yield "no_positive"
            continue
        true = rng.choice(known)
        false = _of_one_length([word for word, _ in _untrue(caption, candidates, place.phrase, rng) if word], true)
        yield (place.change(false), place.change(true)) if false else "no_candidate"


BOTH_SIDES: dict[str, Callable[[Caption, Candidates, random.Random], Iterator[BothOutcome]]] = {
    "add-object": both_objects,
    "add-attribute": both_attributes,
}


def _of_one_length(words: Sequence[str], like: str) -> str:
    """Return the word whose length is nearest, the first of equals; empty when there is none."""
    return min(words, key=lambda word: abs(len(word) - len(like)), default="")


def _indefinite(noun: str) -> str:
    return f"{article(noun)} {noun}"


def _thing_places(caption: Caption) -> list[Place]:
    found = (_thing_place(caption, phrase) for phrase in caption.phrases)
    return [place for place in found if place is not None]


def _thing_place(caption: Caption, phrase: NounPhrase) -> Place | None:
    """Return how a thing joins a phrase: in a list with a comma, after "with" by "and", else by "with"."""
    if not caption.is_thing(phrase) or not caption.is_whole(phrase):
        return None
    after, at = caption.word(phrase.end), caption.tokens[phrase.end - 1].end
    if not (_is_indefinite(caption, phrase) or (after in _CLOSED and _may_end(caption, phrase))):
        return None
    if caption.head(phrase) in FIGURES and _is_ambiguous(caption, phrase):
        return None
    if after in {",", "and"}:
        following = caption.starting_at(phrase.end + 1 + (caption.word(phrase.end + 1) == "and"))
        return Place(phrase, at, ", ") if following is not None and _is_indefinite(caption, following) else None
    joint = _joint(caption, phrase)
    return Place(phrase, at, joint) if joint else None


def _joint(caption: Caption, phrase: NounPhrase) -> str:
    """Return " with " or " and ", or an empty string where neither reads well."""
    before, after = caption.word(phrase.start - 1), caption.word(phrase.end)
    goes_on = after not in _CLOSED
    if goes_on and (caption.tag(phrase.end) not in _GOES_ON or after in {"of", "with", "that", "as"}):
        return ""
    if before in {"and", ",", "or"} or (goes_on and before in _HAVING):
        return ""
    return " and " if before in _HAVING else " with "


def _is_indefinite(caption: Caption, phrase: NounPhrase) -> bool:
    inside = caption.lower[phrase.start : phrase.end]
    return inside[0] in _INDEFINITE and ANAPHORS.isdisjoint(inside)


def _may_end(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether "with a dog" may follow a definite or bare phrase, and then speak of all that was said before it."""
    bound = caption.lower[phrase.start : phrase.end]
    return phrase.start > 0 and caption.head(phrase) not in FIGURES and ANAPHORS.isdisjoint(bound)


def _is_ambiguous(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether "is under a circle with a star" leaves open which of the two has the star."""
    finite = not _FINITE.isdisjoint(caption.lower[: phrase.start])
    return finite and caption.word(phrase.start - 1) not in {"is", "are", "with"} and "there" not in caption.lower[:2]


def _attribute_places(caption: Caption) -> list[Place]:
    """Return where an adjective may stand: before nouns that are not described yet."""
    heads = [caption.head(phrase) for phrase in caption.phrases]
    return [
        Place(phrase, caption.tokens[phrase.nouns[0]].start, "", " ")
        for phrase in caption.phrases
        if not phrase.adjectives
        and not phrase.joined
        and phrase.nouns[0] > 0
        and phrase.nouns[0] == (max(phrase.determiner, phrase.count) + 1 or phrase.start)
        and caption.is_thing(phrase)
        and caption.is_whole(phrase)
        and heads.count(caption.head(phrase)) == 1
        and caption.tag(phrase.nouns[0] - 1)[:2] not in {"JJ", "VB", "HY", "NN", "RB"}
    ]


def _absent(caption: Caption, candidates: Candidates, rng: random.Random, like: str = "") -> Iterator[tuple[str, str]]:
    """Yield things that are not there and would fit, in order of choice; a reason where one would not."""
    for noun in candidates.addable_like(like, rng) if like else candidates.addable(rng):
        if candidates.is_said(noun, "", caption.words):
            yield "", "true_of_image"
        elif candidates.goes_along(noun, caption.contents):
            yield noun, ""


def _present(caption: Caption, candidates: Candidates) -> list[str]:
    """Return things that other captions or boxes name, and the caption does not by any word."""
    words = caption.words
    named = [word for line in words.others for word in line] + list(words.labels)
    said = frozenset(words.own)
    return [
        noun
        for noun in dict.fromkeys(named)
        if noun in ADDABLE and candidates.is_written(noun) and not words.several(noun)
        and said.isdisjoint(candidates.names_of(noun))
    ]  # fmt: skip


def _said_of(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> list[str]:
    """Return the adjectives that other captions put right before the noun."""
    nouns = tuple(caption.lower[at] for at in phrase.nouns)
    head = caption.head(phrase)
    found = (
        line[at - 1]
        for line in caption.words.others
        if nouns[0] in line
        for at in range(1, len(line) - len(nouns) + 1)
        if line[at : at + len(nouns)] == nouns and candidates.is_adjective(line[at - 1], head)
    )
    return [word for word in dict.fromkeys(found) if word not in UNTOUCHED]


def _untrue(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield attributes that are not true of a phrase; a reason where one may be, or where there is none."""
    head = caption.head(phrase)
    if caption.words.several(head) and not caption.plural(phrase):
        yield "", "true_of_image"
        return
    said, known = _said_of(caption, candidates, phrase), candidates.attributes_of(head)
    words = [word.text for word in known if any(_excludes(word.text, other) for other in said)]
    if not said and head not in OF_PEOPLE:
        words = [word.text for word in known if word.rare]
    if not words:
        yield "", "no_candidate"
    for word in rng.sample(words, len(words)):
        yield ("", "true_of_image") if adjective_is_said(word, caption.words) else (word, "")


def _excludes(word: str, other: str) -> bool:
    return exclude_each_other(word, other) or opposed(word, other)
