"""Other deeds that want other words after them: who rides a surfboard does not walk with it, nor stand next to it.

A deed and its preposition give way together to others that exclude them. `acting.py` keeps what follows a verb; here
"walking down | the street" becomes "sitting on | the street". Of verbs that exclude each other (`verbs.INSTEAD`) each
may come with any preposition that captions have after it and before such a noun; of a verb with an object `IN_WORDS`
tells which phrases exclude it (`phrase_exchanges.py`). What a thing is said to do: `phrases_of_things.py`; whether a new
deed suits the caption: `phrase_fit.py`.
"""

from collections.abc import Iterator

from pairwright.generators.captions.caption import ANAPHORS, OWN, Caption, Outcome
from pairwright.generators.captions.relation_slots import (
    RelationSlot,
    has_none_beside,
    others_there,
)
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.rules.acting import (
    doer_of,
    lives,
    opens_act,
    others_may,
    verbs_of,
)
from pairwright.generators.rules.phrase_exchanges import (
    OF_PICTURES,
    PICTURES,
    always,
    phrase_form,
    phrases_for,
    told_by,
)
from pairwright.generators.rules.phrase_fit import suits
from pairwright.generators.rules.phrases_of_things import IN_THE_AIR, deeds_of_things, wanted_of_things
from pairwright.generators.words.nouns import GATHERINGS
from pairwright.generators.words.relations import NO_PLACE
from pairwright.generators.words.verbs import (
    INSTEAD_OF_PHRASES,
    INSTEAD_OF_PHRASES_OF_THINGS,
)
from pairwright.generators.words.wordlists import word_set

# What a verb that stands before it has to go with.
_AFTER = word_set(
    "on in at near by with down up along across through over around under behind beside past into onto toward"
)
_BOARDS = word_set("board ski skate surfboard skateboard snowboard bottle phone dress wheel row")  # what can be handled
_LISTED = frozenset({"to", "from", "for"})  # only with the verbs that our tables name: "attached to"
_DRESSED, _HELD_UP = ("dress", "in"), ("hold", "up")
_BITTEN = (("out", "of"), ("of",), ("from",))
_BOUND = word_set(
    "body camera other wing each picture photo photograph air way trick jump move right left back side front top"
)


def phrasings(caption: Caption, candidates: Candidates) -> Iterator[RelationSlot]:
    """Yield the verbs, each with its preposition, that others may replace, whatever else stands in the way."""
    for at in verbs_of(caption):
        tag, end = caption.tag(at), _end(caption, at)
        after = caption.starting_at(end)
        if after is None or caption.tag(after.head) not in {"NN", "NNS"}:
            continue
        old, noun = _said(caption, at, end), caption.head(after)
        bound = noun in _BOUND and not (old in OF_PICTURES and noun in PICTURES) and (*old, noun) != IN_THE_AIR
        if bound or (noun in NO_PLACE and noun not in _BOARDS):
            continue
        of_things = wanted_of_things(*old, noun)
        if of_things and caption.word(at - 1) != "being":
            yield from deeds_of_things(caption, candidates, (at, end), of_things)
        if tag == "VBN" and old == _DRESSED:
            tag = "VBG"
        if tag == "VBN":
            continue
        wanted = phrases_for(*old) if (tag != "VB" or old[1]) and old[1] not in _LISTED else ()
        known = candidates.usage.said_before(wanted, noun) if wanted else ()
        known += tuple(phrase for phrase in always(*old, noun) if phrase not in known and tag != "VB")
        if not known:
            continue
        doer = doer_of(caption, candidates, at)
        if (doer is not None or _is_act(caption, candidates, at)) and lives(caption, candidates, doer):
            forms = tuple(phrase_form(verb, preposition, tag) for verb, preposition in known)
            weights = candidates.odds.of_phrases(old, known, noun)
            yield RelationSlot(at, end, forms, weights, tuple(verb for verb, _ in known), doer)


def _is_act(caption: Caption, candidates: Candidates, at: int) -> bool:
    """Whether a verb whose doer is not clear is said of somebody: not "a cake covered in powder | sitting on"."""
    told = [caption.head(phrase) for phrase in caption.phrases if phrase.end <= at]
    somebody = not told or any(candidates.things.is_alive(noun) or noun in GATHERINGS for noun in told)
    return somebody and opens_act(caption, at)


def _end(caption: Caption, at: int) -> int:
    """Return where a verb with its preposition ends, or what is said for it in several words ("taking a bite of")."""
    if caption.lemmas[at] == "take" and caption.lower[at + 1 : at + 3] == ("a", "bite"):
        return (
            at + 3 + next((len(words) for words in _BITTEN if caption.lower[at + 3 : at + 3 + len(words)] == words), 0)
        )
    if caption.starting_at(at + 1) is not None:
        return at + 1
    if (caption.lemmas[at], caption.word(at + 1)) == _HELD_UP:
        return at + 2
    return _preposition_end(caption, at + 1)


def _said(caption: Caption, at: int, end: int) -> tuple[str, str]:
    """Return a verb and its preposition, as our tables have them."""
    if end > at + 3 and caption.word(at + 2) == "bite":
        return "eat", ""
    old = (caption.lemmas[at], " ".join(caption.lower[at + 1 : end]))
    return (old[0], "") if old == _HELD_UP else old


def _preposition_end(caption: Caption, at: int) -> int:
    """Return where the preposition at ``at`` ends; ``at`` itself where there is none."""
    if caption.tag(at) == "RP":
        return at
    if caption.word(at) in _LISTED:
        old = (caption.lemmas[at - 1], caption.word(at))
        return at + 1 if old in INSTEAD_OF_PHRASES or old in INSTEAD_OF_PHRASES_OF_THINGS else at
    found = next((found.end for found in caption.relations if found.start == at), at)
    return found if found > at or caption.word(at) not in _AFTER or caption.tag(at) != "IN" else at + 1


def other_phrase(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Exchange a verb and its preposition for others that exclude them."""
    after = caption.starting_at(slot.end)
    if (
        after is None
        or not caption.is_whole(after)
        or has_none_beside(caption, after)
        or not (ANAPHORS - OWN).isdisjoint(caption.lower[after.start : after.end])
    ):
        return "not_grammatical"
    if others_may(caption, slot.doer) or others_there(caption, slot.doer, after):
        return "true_of_image"
    reason = "no_candidate"
    for which in rng.weighted_shuffle(range(len(slot.news)), slot.weights):
        verb, form = slot.lemmas[which], slot.news[which]
        if not suits(caption, candidates, slot, verb, form):
            continue
        if not caption.words.has_any(told_by(verb, form, living=lives(caption, candidates, slot.doer))):
            return (caption.change(slot.start, slot.end, form),)
        reason = "true_of_image"
    return reason
