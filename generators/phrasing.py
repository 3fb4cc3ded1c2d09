"""Other deeds that want other words after them: who rides a surfboard does not walk with it, nor stand next to it.

A deed and its preposition give way together to others that exclude them. `acting.py` keeps what follows a verb; here
"walking down | the street" becomes "sitting on | the street". Of verbs that exclude each other (`verbs.INSTEAD`) each
may come with any preposition that captions have after it and before such a noun; of a verb with an object `IN_WORDS`
tells which phrases exclude it, and `WITH_IT` tells what whoever has a thing with him does not do.
"""

from collections.abc import Iterator
from functools import lru_cache

from pairwright.generators.acting import AIR, doer_of, lives, opens_act, others_may, verbs_of
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.language.inflection import inflect
from pairwright.generators.nouns import GATHERINGS, OF_PEOPLE, WORN
from pairwright.generators.placing import Slot, change_of, others_there
from pairwright.generators.relations import NO_PLACE
from pairwright.generators.verbs import (
    GROUNDED,
    IN_WORDS,
    INSTEAD,
    OUT_OF_WORDS,
    STANDING,
    STEERED,
    TOGETHER,
    WITH_OBJECT,
    forms_of,
    same_act,
)
from pairwright.generators.wordlists import word_set

PREPOSITIONS = ("on", "in", "at", "near", "by", "with", "next to", "behind", "under", "through", "along", "down")
_PEOPLE = OF_PEOPLE | GATHERINGS
_BESIDE = word_set("stand sit lie lay sleep walk pose")  # "racing next to" is rarely said
# What a verb that stands before it has to go with.
_AFTER = word_set(
    "on in at near by with down up along across through over around under behind beside past into onto toward"
)
_BOARDS = word_set("board ski skate surfboard skateboard snowboard bottle phone dress wheel row")  # what can be handled
_WAYS = word_set("down up along across through over around into toward past")
_NO_WAYS = word_set("snow sand water grass ice mud dirt rain surf ocean sea")  # "walking down the snow"
_BOUND = word_set(
    "body camera other each picture photo photograph air way trick jump move right left back side front top"
)


def phrasings(caption: Caption, candidates: Candidates) -> Iterator[Slot]:
    """Yield the verbs, each with its preposition, that others may replace, whatever else stands in the way."""
    for at in verbs_of(caption):
        lemma, tag = caption.lemmas[at], caption.tag(at)
        end = _preposition_end(caption, at + 1) if caption.starting_at(at + 1) is None else at + 1
        after = caption.starting_at(end)
        if tag == "VBN" or after is None or caption.tag(after.head) not in {"NN", "NNS"}:
            continue
        old, noun = (lemma, " ".join(caption.lower[at + 1 : end])), caption.head(after)
        wanted = _phrases_for(*old) if noun not in _BOUND and (tag != "VB" or old[1]) else ()
        known = candidates.said_before(wanted, noun) if wanted and noun not in NO_PLACE - _BOARDS else ()
        if not known:
            continue
        doer = doer_of(caption, candidates, at)
        if (doer is not None or opens_act(caption, at)) and lives(caption, candidates, doer):
            forms = tuple(_phrase(verb, preposition, tag) for verb, preposition in known)
            weights = candidates.odds.of_phrases(old, known, noun)
            yield Slot(at, end, forms, weights, tuple(verb for verb, _ in known), doer)


def _preposition_end(caption: Caption, at: int) -> int:
    """Return where the preposition at ``at`` ends; ``at`` itself where there is none."""
    if caption.tag(at) == "RP":
        return at
    found = next((found.end for found in caption.relations if found.start == at), at)
    return found if found > at or caption.word(at) not in _AFTER or caption.tag(at) != "IN" else at + 1


@lru_cache(maxsize=4096)
def _phrases_for(verb: str, preposition: str) -> tuple[tuple[str, str], ...]:
    """Return the verbs, each with a preposition or none, that exclude a verb with one or none."""
    if not preposition:
        return tuple(_halves(phrase) for phrase in IN_WORDS.get(verb, ()))
    others = (other for other in INSTEAD.get(verb, ()) if other not in WITH_OBJECT and not same_act(other, verb))
    phrases = ((other, new) for other in others for new in PREPOSITIONS if new != preposition and _is_said(other, new))
    return (*phrases, *((other, "") for other in OUT_OF_WORDS.get(f"{verb} {preposition}", ())))


def _halves(phrase: str) -> tuple[str, str]:
    verb, _, preposition = phrase.partition(" ")
    return verb, preposition


def _is_said(verb: str, preposition: str) -> bool:
    in_place = preposition != "down" or verb not in STANDING  # "lying down" the road
    return in_place and (" " not in preposition or verb in _BESIDE)


@lru_cache(maxsize=20_000)
def _phrase(verb: str, preposition: str, tag: str) -> str:
    return f"{inflect(verb, tag)} {preposition}".rstrip()


def other_phrase(caption: Caption, candidates: Candidates, slot: Slot, rng: Draws) -> Outcome:
    """Exchange a verb and its preposition for others that exclude them."""
    after = caption.starting_at(slot.end)
    if after is None or not caption.is_whole(after) or not ANAPHORS.isdisjoint(caption.lower[after.start : after.end]):
        return "not_grammatical"
    if others_may(caption, slot.doer) or others_there(caption, slot.doer, after):
        return "true_of_image"
    reason = "no_candidate"
    for which in rng.by_weight(range(len(slot.news)), slot.weights):
        verb, form = slot.lemmas[which], slot.news[which]
        if not _suits(caption, candidates, slot, verb, form):
            continue
        if not caption.words.has_any(forms_of(verb)):
            return (change_of(caption, slot.start, slot.end, form),)
        reason = "true_of_image"
    return reason


def _suits(caption: Caption, candidates: Candidates, slot: Slot, verb: str, form: str) -> bool:
    """Whether the pool knows a phrase of such a doer, and finds it sensible beside the rest."""
    after, doer, old = caption.starting_at(slot.end), slot.doer, caption.lemmas[slot.start]
    noun = caption.head(after) if after is not None else ""
    beyond = caption.word(after.end) if after is not None else ""
    who = caption.head(doer) if doer is not None else ""
    return (
        (verb != "wear" or noun in WORN)
        and (verb not in GROUNDED or AIR.isdisjoint(caption.lower[slot.end :]))
        and (verb not in STANDING or beyond not in _WAYS)
        and not (form.endswith(" down") and noun in _NO_WAYS)
        and (verb, noun) not in TOGETHER
        and candidates.is_written(form.split(maxsplit=1)[0])
        and (
            not who
            or who in _PEOPLE
            or (verb not in STEERED and candidates.moves(who) and candidates.acts(who, verb, alone=True))
        )
        and candidates.makes_sense(verb, old, caption.contents)
    )
