"""Other deeds that want other words after them: who rides a surfboard does not walk with it, nor stand next to it.

A deed and its preposition give way together to others that exclude them. `acting.py` keeps what follows a verb; here
"walking down | the street" becomes "sitting on | the street". Of verbs that exclude each other (`verbs.INSTEAD`) each
may come with any preposition that captions have after it and before such a noun; of a verb with an object `IN_WORDS`
tells which phrases exclude it, and `WITH_IT` tells what whoever has a thing with him does not do.
"""

from collections.abc import Iterator
from functools import lru_cache

from pairwright.generators.captions.caption import ANAPHORS, OWN, Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    VERBS,
    RelationSlot,
    has_none_beside,
    is_named,
    meant,
    others_there,
)
from pairwright.generators.draws import Draws
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.inflection import inflect
from pairwright.generators.rules.acting import (
    AFOOT,
    AIR,
    RIDING,
    doer_of,
    is_carried,
    keeps_still,
    lives,
    may_do,
    opens_act,
    others_may,
    verbs_of,
)
from pairwright.generators.rules.placing import VEHICLES
from pairwright.generators.words.attributes import is_colour
from pairwright.generators.words.nouns import FLYING, GATHERINGS, PEOPLE, WORN
from pairwright.generators.words.relations import NO_PLACE, RAILS, ROADS, WATERS
from pairwright.generators.words.verbs import (
    ALWAYS_IN_WORDS,
    GROUNDED,
    HEAVY,
    IN_WORDS,
    INSTEAD,
    INSTEAD_OF_PHRASES,
    INSTEAD_OF_PHRASES_OF_PARKED,
    INSTEAD_OF_PHRASES_OF_THINGS,
    INSTEAD_OF_PHRASES_OF_VEHICLES,
    ON_FOOT,
    ON_LAND,
    OUT_OF_WORDS,
    STANDING,
    TOGETHER,
    WAYS,
    WITH_OBJECT,
    forms_of,
    keeps_its_way,
    same_act,
)
from pairwright.generators.words.wordlists import word_set

PREPOSITIONS = ("on", "in", "at", "near", "by", "with", "next to", "behind", "under", "through", "along", "down")
_BESIDE = word_set("stand sit lie lay sleep walk pose")  # "racing next to" is rarely said
# What a verb that stands before it has to go with.
_AFTER = word_set(
    "on in at near by with down up along across through over around under behind beside past into onto toward"
)
_BOARDS = word_set("board ski skate surfboard skateboard snowboard bottle phone dress wheel row")  # what can be handled
_LISTED = frozenset({"to", "from", "for"})  # only with the verbs that our tables name: "attached to"
_NO_WAYS = word_set("snow sand water grass ice mud dirt rain surf ocean sea")  # "walking down the snow"
_PLAYED = word_set("game wii nintendo guitar instrument piano frisbee xbox")
_GAMES = word_set("game match tournament competition")
_SOUGHT = frozenset(
    {"looking for", "looks for", "look for", "looked for", "searching", "search", "searches", "seeking"}
)
_FALLING = (("fall", "from"), ("fall", "through"))  # from the sky, through the air
_IN_THE_AIR = ("fly", "in", "air")
_SHOWN_ONE = (("look", "at"), ("point", "at"))
_DONE_BY = {"park": VEHICLES, "drive": VEHICLES, "fall": FLYING}
_GOING, _PASSING = word_set("drive travel move fly sail ride"), word_set("past by near")
_UNDER_WAY = _GOING | word_set("go come pass head")
_AT_REST = word_set("park stop sit wait")
_HALTED = word_set("parked stopped docked moored anchored waiting")
_LOOKING_ON = (("watch", ""), ("wait", "for"))
_ON_WAVES = word_set("ride surf catch")
_BEFORE_A_WAVE = (("wait", "for"), ("look", "at"), ("point", "at"))
_SHIFTS = frozenset({"push", "pull", "carry", "hold"})
_PHONES = word_set("phone cellphone telephone cell smartphone iphone")
_HANDS = word_set("hand hands lap arm arms mouth ear head face mouths heads")
_NO_STOPS = word_set("water sea ocean river lake air sky")  # where nothing is parked
_LIMBS = _HANDS | word_set("trunk trunks tail tails tongue paw paws leg legs foot feet neck horn horns tooth teeth")
_POSING = ("pose", "for")
_OF_PICTURES = frozenset({_POSING, ("take", "")})
_DRESSED, _HELD_UP = ("dress", "in"), ("hold", "up")
_BITTEN = (("out", "of"), ("of",), ("from",))
_PICTURES = frozenset({"picture", "photo", "photograph", "selfie"})
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
        bound = noun in _BOUND and not (old in _OF_PICTURES and noun in _PICTURES) and (*old, noun) != _IN_THE_AIR
        if bound or (noun in NO_PLACE and noun not in _BOARDS):
            continue
        of_things = _wanted_of_things(*old, noun)
        if of_things and caption.word(at - 1) != "being":
            yield from _of_things(caption, candidates, (at, end), of_things)
        if tag == "VBN" and old == _DRESSED:
            tag = "VBG"
        if tag == "VBN":
            continue
        wanted = _phrases_for(*old) if (tag != "VB" or old[1]) and old[1] not in _LISTED else ()
        known = candidates.usage.said_before(wanted, noun) if wanted else ()
        known += tuple(phrase for phrase in _always(*old, noun) if phrase not in known and tag != "VB")
        if not known:
            continue
        doer = doer_of(caption, candidates, at)
        if (doer is not None or _is_act(caption, candidates, at)) and lives(caption, candidates, doer):
            forms = tuple(_phrase(verb, preposition, tag) for verb, preposition in known)
            weights = candidates.odds.of_phrases(old, known, noun)
            yield RelationSlot(at, end, forms, weights, tuple(verb for verb, _ in known), doer)


def _is_act(caption: Caption, candidates: Candidates, at: int) -> bool:
    """Whether a verb whose doer is not clear is said of somebody: not "a cake covered in powder | sitting on"."""
    told = [caption.head(phrase) for phrase in caption.phrases if phrase.end <= at]
    somebody = not told or any(candidates.things.is_alive(noun) or noun in GATHERINGS for noun in told)
    return somebody and opens_act(caption, at)


def _wanted_of_things(verb: str, preposition: str, noun: str) -> tuple[tuple[str, str], ...]:
    """Return the verbs, each with a preposition, that exclude what a thing is said to do."""
    if verb == "fly" and noun == "sky" and preposition in {"in", "through", "across"}:
        return _FALLING[:1]
    if (verb, preposition, noun) == _IN_THE_AIR:
        return _FALLING[1:]
    old = (verb, preposition)
    of_vehicles = () if noun in _NO_STOPS else INSTEAD_OF_PHRASES_OF_VEHICLES.get(old, ())
    return INSTEAD_OF_PHRASES_OF_THINGS.get(old, of_vehicles) or INSTEAD_OF_PHRASES_OF_PARKED.get(old, ())


def _of_things(
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
        forms = tuple(_phrase(verb, new, "VBG" if tag in {"VBN", "VBD"} else tag) for verb, new in known)
        old = (caption.lemmas[at], " ".join(caption.lower[at + 1 : end]))
        weights = candidates.odds.of_phrases(old, known, noun)
        yield RelationSlot(at, end, forms, weights, tuple(verb for verb, _ in known), doer)


def _is_done(caption: Caption, candidates: Candidates, doer: NounPhrase, new: tuple[str, str], noun: str) -> bool:
    """Whether captions have a thing do what is wanted at such a place."""
    if new in _FALLING:  # as everybody says it
        return True
    verb, preposition = new
    said = candidates.usage.stands_before(preposition, noun) and candidates.usage.goes_with(verb, preposition)
    if verb not in _GOING:
        return said
    along = preposition in _PASSING or noun in ROADS or candidates.usage.are_said_before(verb, preposition, noun)
    return said and along and may_do(caption, candidates, doer, verb)  # and not "traveling down | a tree"


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


@lru_cache(maxsize=4096)
def _phrases_for(verb: str, preposition: str) -> tuple[tuple[str, str], ...]:
    """Return the verbs, each with a preposition or none, that exclude a verb with one or none."""
    if not preposition:
        return tuple(_halves(phrase) for phrase in IN_WORDS.get(verb, ()))
    others = (other for other in INSTEAD.get(verb, ()) if other not in WITH_OBJECT and not same_act(other, verb))
    phrases = ((other, new) for other in others for new in PREPOSITIONS if new != preposition and _is_said(other, new))
    return (*phrases, *((other, "") for other in OUT_OF_WORDS.get(f"{verb} {preposition}", ())))


def _always(verb: str, preposition: str, noun: str) -> tuple[tuple[str, str], ...]:
    """Return what excludes a verb with its preposition, or none, before whatever noun."""
    if noun == "wave" and verb in _ON_WAVES and not preposition:
        return _BEFORE_A_WAVE
    if verb == "play" and preposition == "in" and noun in _GAMES:
        return _LOOKING_ON
    if verb == "take" and noun in _PICTURES:
        return _SHOWN_ONE
    if preposition:
        may = (verb, preposition) != _POSING or noun in _PICTURES  # and not "at a camera", where those who pose look
        return INSTEAD_OF_PHRASES.get((verb, preposition), ()) if may else ()
    return ALWAYS_IN_WORDS.get(verb, ()) if verb != "play" or noun in _PLAYED else ()


def _halves(phrase: str) -> tuple[str, str]:
    verb, _, preposition = phrase.partition(" ")
    return verb, preposition


def _is_said(verb: str, preposition: str) -> bool:
    in_place = preposition != "down" or verb not in STANDING  # "lying down" the road
    return in_place and (" " not in preposition or verb in _BESIDE)


@lru_cache(maxsize=20_000)
def _phrase(verb: str, preposition: str, tag: str) -> str:
    tag = "VBN" if tag == "VBG" and verb in {"park", "stop"} else tag  # "parked by", as captions say it
    return f"{inflect(verb, tag)} {preposition}".rstrip()


def other_phrase(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: Draws) -> Outcome:
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
    for which in rng.by_weight(range(len(slot.news)), slot.weights):
        verb, form = slot.lemmas[which], slot.news[which]
        if not _suits(caption, candidates, slot, verb, form):
            continue
        if not caption.words.has_any(_told_by(verb, form, living=lives(caption, candidates, slot.doer))):
            return (caption.change(slot.start, slot.end, form),)
        reason = "true_of_image"
    return reason


@lru_cache(maxsize=4096)
def _told_by(verb: str, form: str, *, living: bool) -> frozenset[str]:
    """Return the words of which any in another caption says that it is so."""
    if form.endswith(" for") and verb == "look":
        return _SOUGHT
    alike = () if living else next((group for group in (_UNDER_WAY, _AT_REST) if verb in group), ())
    return forms_of(verb).union(*map(forms_of, alike))


def _goes_on(caption: Caption, after: NounPhrase | None) -> bool:
    """Whether a deed follows a phrase: whoever is "wearing a helmet | doing a trick" does not look for it meanwhile."""
    return after is not None and caption.tag(after.end) in {"VBG", "RP"}  # "holding a phone | up"


def _is_held(caption: Caption, after: NounPhrase | None) -> bool:
    """Whether a phrase is no thing, or goes on to say that somebody has it in his hands: "a phone | to her ear"."""
    return after is not None and not (
        is_named(caption, meant(caption, after)) and _HANDS.isdisjoint(caption.lower[after.end :])
    )


def _suits(caption: Caption, candidates: Candidates, slot: RelationSlot, verb: str, form: str) -> bool:
    """Whether the pool knows a phrase of such a doer, and finds it sensible beside the rest."""
    after, doer, old = caption.starting_at(slot.end), slot.doer, caption.lemmas[slot.start]
    noun = caption.head(after) if after is not None else ""
    beyond = caption.word(after.end) if after is not None else ""
    who = caption.head(doer) if doer is not None else ""
    is_own = after is not None and caption.tag(after.start) == "PRP$"  # "flying with | its wings extended"
    return (
        (verb != "wear" or noun in WORN)
        and (verb not in GROUNDED or AIR.isdisjoint(caption.lower[slot.end :]))
        and (verb not in ON_FOOT or not (is_carried(caption) or keeps_still(caption, slot.start)))
        and (verb != "fly" or who not in PEOPLE)
        and (verb not in RIDING or AFOOT.isdisjoint(caption.lemmas[slot.end :]))
        and not (form.endswith((" for", " at")) and is_colour(noun))
        and not (form.endswith(" at") and noun in RAILS)
        and not (form.endswith(" for") and (noun in _LIMBS or _goes_on(caption, after)))
        and (verb not in STANDING or beyond not in WAYS)
        and keeps_its_way(old, verb, beyond)
        and not (old == "drink" and beyond == "from" and form.endswith((" in", " at", " for")))  # "milk | from a cup"
        and not (verb == "sleep" and form.endswith(" with") and who in PEOPLE and noun in PEOPLE)
        and not (old == "watch" and after is not None and caption.tag(after.end) in VERBS)  # "watching kites | fly"
        and not (verb in ON_LAND and noun in WATERS)
        and not (is_own and caption.word(slot.end - 1) == "with" and not form.endswith(" with"))
        and not (form.endswith(" down") and noun in _NO_WAYS)
        and (verb, noun) not in TOGETHER
        and not (form.endswith(" next to") and "next to" in caption.wordings)  # "next to a hill next to a lake"
        and (verb != "talk" or noun in _PHONES)
        and (verb not in _SHIFTS or noun not in HEAVY)
        and not (form.endswith((" at", " for")) and noun not in _PICTURES and _is_held(caption, after))
        and not (old == "wait" and after is not None and caption.tag(after.end + 1) == "VB")  # "for a bus | to come"
        and candidates.usage.is_written(form.split(maxsplit=1)[0])
        and (
            not who
            or who in PEOPLE
            or not lives(caption, candidates, doer)
            or (doer is not None and candidates.usage.moves(who) and may_do(caption, candidates, doer, verb))
        )
        and candidates.company.makes_sense(verb, old, caption.contents)
    )
