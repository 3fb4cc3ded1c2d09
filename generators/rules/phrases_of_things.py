"""Deeds of things with their prepositions: what is attached to a pole leans against it, what is parked drives past."""

from collections.abc import Iterator

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    RelationSlot,
    is_named,
)
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.rules.acting import (
    doer_of,
    lives,
    may_do,
)
from pairwright.generators.rules.phrase_exchanges import GOING, phrase_form
from pairwright.generators.rules.placing import VEHICLES
from pairwright.generators.words.nouns import FLYING
from pairwright.generators.words.relations import ROADS
from pairwright.generators.words.verbs import (
    INSTEAD_OF_PHRASES_OF_PARKED,
    INSTEAD_OF_PHRASES_OF_THINGS,
    INSTEAD_OF_PHRASES_OF_VEHICLES,
)
from pairwright.generators.words.wordlists import word_set

_FALLING = (("fall", "from"), ("fall", "through"))  # from the sky, through the air
IN_THE_AIR = ("fly", "in", "air")
_DONE_BY = {"park": VEHICLES, "drive": VEHICLES, "fall": FLYING}
_PASSING = word_set("past by near")
_HALTED = word_set("parked stopped docked moored anchored waiting")
_NO_STOPS = word_set("water sea ocean river lake air sky")  # where nothing is parked


def wanted_of_things(verb: str, preposition: str, noun: str) -> tuple[tuple[str, str], ...]:
    """Return the verbs, each with a preposition, that exclude what a thing is said to do."""
    if verb == "fly" and noun == "sky" and preposition in {"in", "through", "across"}:
        return _FALLING[:1]
    if (verb, preposition, noun) == IN_THE_AIR:
        return _FALLING[1:]
    old = (verb, preposition)
    of_vehicles = () if noun in _NO_STOPS else INSTEAD_OF_PHRASES_OF_VEHICLES.get(old, ())
    return INSTEAD_OF_PHRASES_OF_THINGS.get(old, of_vehicles) or INSTEAD_OF_PHRASES_OF_PARKED.get(old, ())


def deeds_of_things(
    caption: Caption, candidates: Candidates, span: tuple[int, int], wanted: tuple[tuple[str, str], ...]
) -> Iterator[RelationSlot]:
    """Yield the verb of a thing with its preposition: what is attached to a pole does not lean against it."""
    (at, end), tag = span, caption.tag(span[0])
    doer, after = doer_of(caption, candidates, at), caption.starting_at(end)
    if doer is None or after is None or not is_named(caption, doer) or lives(caption, candidates, doer):
        return
    noun = caption.head(after)
    first = wanted[0][0]
    if caption.head(doer) not in _DONE_BY.get(first, {caption.head(doer)}):
        return
    if first == "drive" and not _HALTED.isdisjoint((*caption.lower[:at], *caption.lower[end:])):
        return  # "a parked car | sitting by"
    known = tuple(each for each in wanted if _is_done(caption, candidates, doer, each, noun))
    if known:
        forms = tuple(phrase_form(verb, new, "VBG" if tag in {"VBN", "VBD"} else tag) for verb, new in known)
        old = (caption.lemmas[at], " ".join(caption.lower[at + 1 : end]))
        weights = candidates.odds.of_phrases(old, known, noun)
        yield RelationSlot(at, end, forms, weights, tuple(verb for verb, _ in known), doer)


def _is_done(caption: Caption, candidates: Candidates, doer: NounPhrase, new: tuple[str, str], noun: str) -> bool:
    """Whether captions have a thing do what is wanted at such a place."""
    if new in _FALLING:  # as everybody says it
        return True
    verb, preposition = new
    said = candidates.usage.stands_before(preposition, noun) and candidates.usage.goes_with(verb, preposition)
    if verb not in GOING:
        return said
    along = preposition in _PASSING or noun in ROADS or candidates.usage.are_said_before(verb, preposition, noun)
    return said and along and may_do(caption, candidates, doer, verb)  # and not "traveling down | a tree"
