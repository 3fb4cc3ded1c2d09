"""Other deeds: what somebody may do instead of what a caption says.

The tables of `words/verbs.py` tell which deeds exclude each other. What is written must suit what stands around it: the pool
has such a verb before such an object or preposition, together with such a thing, and has seen the doer do it.
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import VERBS, RelationSlot, before_it, has_none_beside, meant
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.lemmas import verb_of_participle
from pairwright.generators.words.attributes import is_colour
from pairwright.generators.words.nouns import FLYING, FRAMES, GATHERINGS, OF_PEOPLE, PEOPLE, WORN
from pairwright.generators.words.relations import CARRIERS, RIDDEN, ROOMS, WATERS
from pairwright.generators.words.verbs import (
    ALWAYS,
    ALWAYS_WITH,
    DONE_AT,
    GROUNDED,
    INSTEAD,
    INSTEAD_OF_THINGS,
    ON_FOOT,
    ON_LAND,
    ON_SCREEN,
    PARTICIPLES,
    SPORTS,
    STANDING,
    STEERED,
    TOGETHER,
    WITH_OBJECT,
    WITH_PARTICLE,
    forms_of,
    keeps_its_way,
    same_act,
)
from pairwright.generators.words.wordlists import word_set

_ENDS = frozenset({"", ".", ",", "!", "and", "while", "as", "together"})
_ADVERBS = frozenset({"next", "close", "far"})
_POSTURES = frozenset({"sit", "stand", "lie", "lay", "kneel"})
_WHILE = frozenset({"while", "", "people"})
_LIGHT = frozenset({"make", "take", "have", "do"})
_UNMEANT = frozenset({"miss", "lose", "spill", "refuse", "crash", "fall"})  # nobody gets ready to
AIR = frozenset({"air", "sky", "midair"})
_OWN_SIDES = frozenset({"back", "side", "sides", "stomach", "belly", "backs"})
_PARTICLES = frozenset({"up", "down", "off", "out", "over", "away", "back"})
_GAZES = frozenset({"look", "stare", "gaze"})
_MOVING = frozenset({"push", "pull", "throw", "kick", "carry"})
RIDING = frozenset({"ride", "drive"})  # something: "people riding" alone is rarely said
_WAYS_ON = frozenset({"down", "up", "across", "past"})
_UPON = frozenset({"on", "in"})
_LIMBS = word_set("hand arm mouth head ear face lap shoulder back tooth paw trunk")
_CARRYING = CARRIERS | frozenset(RIDDEN)
AFOOT = word_set("stand walk run lie lay sleep kneel")  # what nobody does who rides or drives
_BEFORE_A_DEED = frozenset({"refuse", "wait", "stop"})
_AUXILIARIES = frozenset({"be", "have", "do", "get", "can", "will"})
_OF_SOME_BEASTS = frozenset({"graze", "race", "travel"})
_BOATS = word_set("boat ship ferry canoe kayak yacht sailboat raft")
_ASTRIDE = word_set("ride wear carry hold use put")
_OVERHEAD = word_set("over above")
_ACROSS = word_set("through across past into toward towards around")
_IN_PLACE = STANDING | {"perch", "park"}
# Of what stands or lies somewhere, only these are ever seen hanging, and on these.
_HANGS = word_set(
    "clock lamp light lantern chandelier umbrella picture painting photo poster sign plant basket mirror kite towel phone "
    "bag hat tie coat jacket shirt dress backpack purse banana ornament decoration bell flag balloon curtain toy bear "
    "skateboard surfboard pot pan figurine bottle shoe boot sculpture"
)
_HUNG_ON = word_set("wall fence hook door rack tree pole post line branch side window building rope tower board")
_DONE_TO = word_set("eat drink cook bake cut slice serve use ride drive read fly")  # "ready to eat", of what is eaten
_OF_VEHICLES = word_set("park dock moor anchor")
_KEPT_STILL = word_set("sit lie lay kneel crouch squat bend stand")
_PERCHING = frozenset({"sit", "stand", "rest", "perch"})
_COMPASS = word_set("north south east west northward southward eastward westward home")
SIDES = word_set("front top side back middle center edge end bottom corner base rear")  # "in front of a car"


def verbs_of(caption: Caption) -> list[int]:
    """Return the tokens that are verbs, auxiliaries left out, and what one rides ("riding | skis")."""
    return [
        at
        for at, token in enumerate(caption.tokens)
        if token.tag in VERBS
        and (token.lemma not in _AUXILIARIES or (token.lemma == "do" and token.tag == "VBG"))
        and caption.word(at + 1) not in {"utensil", "utensils"}  # "eating utensils"
        and not (at and caption.tag(at - 1) in VERBS and caption.lemmas[at - 1] in _POSTURES)  # "sit | leaning"
        and not (token.lemma in SPORTS and token.tag != "VBG" and at and caption.lemmas[at - 1] in _ASTRIDE)
    ]


def deeds(caption: Caption, candidates: Candidates) -> Iterator[RelationSlot]:
    """Yield the verbs that others may replace, whatever else stands in the way."""
    for at in verbs_of(caption):
        tag, lemma = caption.tag(at), caption.tokens[at].lemma
        if (
            lemma == "take"
            and not _has_particle(caption, at)
            and not lives(caption, candidates, doer_of(caption, candidates, at))
        ):
            continue  # only what takes off
        if lemma not in INSTEAD and lemma not in INSTEAD_OF_THINGS and caption.word(at) not in PARTICIPLES:
            continue
        doer = doer_of(caption, candidates, at)
        participle = tag in {"VBN", "VBG"} and doer is not None and caption.word(at - 1) not in {"has", "have", "had"}
        as_written = PARTICIPLES.get(caption.word(at), ()) if participle else ()
        wanted = [] if tag == "VBN" else [(verb, inflect(verb, tag)) for verb in _verbs(caption, candidates, doer, at)]
        wanted += [(verb_of_participle(form), form) for form in as_written if caption.word(at + 1) not in {"a", "the"}]
        if wanted:
            verbs, forms = zip(*wanted, strict=True)
            end = at + 1 + _has_particle(caption, at)
            after = caption.starting_at(end)
            following = caption.head(after) if after is not None else _preposition(caption, end)
            who = caption.head(doer) if doer is not None else ""
            yield RelationSlot(at, end, forms, candidates.odds.of_deeds(lemma, verbs, following, who), verbs, doer)


def _has_particle(caption: Caption, at: int) -> bool:
    """Whether a verb is said with another word ("lying down"), which has to go with it."""
    return caption.tag(at + 1) in {"RP", "RB"} and caption.lemmas[at] in WITH_PARTICLE.get(caption.word(at + 1), ())


def _preposition(caption: Caption, at: int) -> str:
    return caption.word(at) if caption.tag(at) in {"IN", "RP", "TO"} else ""


def other_deed(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Exchange a verb for one that the same one does not do meanwhile."""
    at, doer = slot.start, slot.doer
    if caption.tokens[at].lemma in _POSTURES and others_may(caption, doer):
        return "true_of_image"
    reason = "no_candidate"
    for which in rng.weighted_shuffle(range(len(slot.news)), slot.weights):
        verb, form = slot.lemmas[which], slot.news[which]
        if _is_on_its_back(caption, slot) or not _suits(caption, candidates, slot, (verb, form)):
            continue
        if not caption.words.has_any(forms_of(verb) | {form}):
            return (caption.change(at, slot.end, form),)
        reason = "true_of_image"
    return reason


def _is_on_its_back(caption: Caption, slot: RelationSlot) -> bool:
    """Whether somebody lies as nobody stands: "laying on his | side"."""
    lies = caption.lemmas[slot.start] in {"lie", "lay", "sleep", "rest"} and caption.word(slot.end) == "on"
    return lies and not _OWN_SIDES.isdisjoint(caption.lower[slot.end + 1 : slot.end + 4])


def _verbs(caption: Caption, candidates: Candidates, doer: NounPhrase | None, at: int) -> Sequence[str]:
    """Return what the doer may do instead; things do not walk, and of an unknown doer we suppose that it lives."""
    lemma = caption.tokens[at].lemma
    unclear = doer is None and (before_it(caption, at) is not None or not opens_act(caption, at))
    with_other = caption.tag(at + 1) == "RP" or (caption.tag(at + 1) == "RB" and caption.word(at + 1) in _PARTICLES)
    if unclear or (with_other and not _has_particle(caption, at)):
        return ()
    living = lives(caption, candidates, doer)
    if lemma in SPORTS and (doer is None or not living) and caption.tag(at) != "VBG":
        return ()  # "young boys on skis": a thing that was taken for a verb
    table = INSTEAD if living else INSTEAD_OF_THINGS
    if caption.tag(at) == "VB" and (not living or lemma in _LIGHT):
        return ()
    unmeant = _UNMEANT if caption.tag(at) == "VB" else frozenset()
    return [verb for verb in table.get(lemma, ()) if not same_act(verb, lemma) and verb not in unmeant]


def doer_of(caption: Caption, candidates: Candidates, at: int) -> NounPhrase | None:
    """Return who does it: in "a man in a sweater | holding" not the sweater, in "a bunch of scissors" not the bunch.

    None when the phrase before the verb only tells where, and what is there is not clear.
    """
    doer = before_it(caption, _before_colours(caption, at))
    while doer is not None and not lives(caption, candidates, doer):
        if caption.word(doer.start - 1) == "and" and caption.head(doer) in WORN:
            doer = caption.ending_at(doer.start - 1)  # "a man in a hat and a | coat"
            continue
        if caption.tag(doer.start - 1) not in {"IN", "TO"}:
            break
        governed_by = caption.word(doer.start - 1)
        if governed_by == "of" and caption.word(doer.start - 2) not in SIDES:
            return doer
        whose = caption.ending_at(doer.start - 1)
        if whose is None or caption.head(whose) in FRAMES - GATHERINGS:
            return None
        doer = whose
    return doer


def _before_colours(caption: Caption, at: int) -> int:
    """Return where the colours begin that somebody is dressed in ("a man | in red and white"); ``at`` where there are none."""
    start = at
    while is_colour(caption.word(start - 1)) or (start < at and caption.word(start - 1) == "and"):
        start -= 1
    return start - 1 if start < at and caption.word(start - 1) == "in" else at


def opens_act(caption: Caption, at: int) -> bool:
    """Whether a verb without a doer before it tells what somebody does: not "on | serving tray"."""
    if caption.tag(at) == "VB":  # "ready to | eat"
        done_to_it = (
            caption.tag(at - 2) == "JJ" and caption.lemmas[at] in _DONE_TO and caption.starting_at(at + 1) is None
        )
        return not done_to_it and caption.word(at - 1) == "to" and caption.tag(at - 2)[:2] in {"VB", "JJ", "RB", "IN"}
    if caption.tag(at) == "VBG" and caption.tag(at - 1).startswith("NN"):
        return True
    return caption.tag(at - 1)[:2] in {"VB", "RB", "CC", "MD", "WP", "WD", "PR"} or caption.word(at - 1) in _WHILE


def lives(caption: Caption, candidates: Candidates, doer: NounPhrase | None) -> bool:
    """Whether somebody does it; of an unknown doer we suppose so."""
    return doer is None or candidates.things.is_alive(caption.head(doer)) or caption.head(doer) in GATHERINGS


def is_in_hand(caption: Caption, after: NounPhrase) -> bool:
    """Whether a text goes on to say where somebody has a thing: "a phone | to her ear", "a banana | in his mouth"."""
    return (
        caption.word(after.end) in {"in", "to", "with", "over", "under", "behind"}
        and caption.tag(after.end + 1) == "PRP$"
        and not _LIMBS.isdisjoint(caption.lemmas[after.end + 2 : after.end + 4])
    )


def is_carried(caption: Caption) -> bool:
    """Whether somebody is told to be on or in what carries him: on a horse, on skis, in a truck."""
    places = (caption.starting_at(found.end) for found in caption.relations if caption.word(found.end - 1) in _UPON)
    return any(place is not None and caption.head(place) in _CARRYING for place in places)


def keeps_still(caption: Caption, at: int) -> bool:
    """Whether the deed at ``at`` is done meanwhile by somebody who sits, lies or kneels: "kneeling down | talking"."""
    return caption.tag(at - 1) == "RP" and caption.lemmas[at - 2] in _KEPT_STILL


def others_may(caption: Caption, doer: NounPhrase | None) -> bool:
    """Whether others of that name may be there, who stand where these sit."""
    if doer is None or caption.plural(doer) or caption.head(doer) in GATHERINGS:
        return False
    return caption.words.several(caption.head(doer))


def _suits(caption: Caption, candidates: Candidates, slot: RelationSlot, new: tuple[str, str]) -> bool:
    """Whether the pool knows a verb, in a form, of such a doer, before what comes next, and beside the rest."""
    (verb, form), doer = new, slot.doer
    return (
        candidates.usage.is_written(form)
        and (verb not in GROUNDED or AIR.isdisjoint(caption.lower[slot.end :]))
        and (verb not in ON_FOOT or not (is_carried(caption) or keeps_still(caption, slot.start)))
        and (verb not in RIDING or AFOOT.isdisjoint(caption.lemmas[slot.end :]))
        and _fits_after(caption, candidates, slot, verb, form)
        and not same_of_a_bird(caption, candidates, slot, (verb, form))
        and (doer is None or may_do(caption, candidates, doer, verb))
        and candidates.company.makes_sense(verb, caption.lemmas[slot.start], caption.contents)
    )


def same_of_a_bird(caption: Caption, candidates: Candidates, slot: RelationSlot, new: tuple[str, str]) -> bool:
    """Whether a bird does both at once: one that sits on a branch stands on it."""
    verb, form = new
    if caption.lemmas[slot.start] not in _PERCHING or verb not in _PERCHING or slot.doer is None:
        return False
    there = form.split()[1:2] == list(caption.lower[slot.start + 1 : slot.end][:1])
    return there and candidates.things.is_bird(caption.head(slot.doer))


def may_do(caption: Caption, candidates: Candidates, doer: NounPhrase, verb: str) -> bool:
    """Whether captions have such a doer do it; animals steer nothing."""
    who, living = caption.head(doer), lives(caption, candidates, doer)
    if (verb == "hang" and not living and who not in _HANGS) or (verb in _OF_VEHICLES and living):
        return False
    if verb == "fall" and not living and who in FLYING:
        return True
    if (verb in _OF_SOME_BEASTS and who not in PEOPLE) or (verb in {"drive", "fly"} and who in _BOATS):
        return candidates.usage.does(who, verb)
    if living and verb in STEERED and who not in PEOPLE and candidates.things.is_of(who, "living"):
        return candidates.usage.does(who, verb)
    return candidates.usage.acts(who, verb, alone=living)


def _fits_after(caption: Caption, candidates: Candidates, slot: RelationSlot, verb: str, form: str) -> bool:
    """Whether what follows the old verb may follow the new one."""
    at, old = slot.end, caption.lemmas[slot.start]
    after, word, tag = caption.starting_at(at), caption.word(at), caption.tag(at)
    if (
        (verb == "run" and word == "for")
        or (old in _GAZES and (tag.startswith("RB") or word == "at"))
        or word in _COMPASS
        or (word == "as" and caption.word(at + 2) == "as")  # "running | as fast as he can"
        or (old == "reach" and "for" in caption.lower[at:])
        or _is_purpose(caption, at)
    ):
        return False  # "running for a camera", "climbing straight ahead", "sleeping at himself", "sleeping with his trunk for a toy"
    if after is not None:
        return _takes(caption, candidates, slot, verb, after)
    if old in _ASTRIDE and tag in VERBS and caption.lemmas[at] in SPORTS:
        return candidates.usage.has_object(verb, caption.lemmas[at])  # "riding | skis"
    flies = verb == "fly" and (slot.doer is None or caption.head(slot.doer) in PEOPLE)
    grounded = old == "fly" and verb in (GROUNDED if word in _OVERHEAD else _IN_PLACE if word in _ACROSS else ())
    if flies or grounded or (verb in WITH_OBJECT and (verb == form or not form.endswith("ed"))):
        return False  # "people flying in the sea", "jets sitting over a beach"
    if word in _ADVERBS or word in _ENDS or tag.startswith("RB"):
        return verb not in RIDING and word != "apart"
    return tag in {"IN", "RP", "TO"} and _goes_before(caption, candidates, verb, at)


def _takes(caption: Caption, candidates: Candidates, slot: RelationSlot, verb: str, after: NounPhrase) -> bool:
    """Whether an object of the old verb may be one of the new verb."""
    thing = meant(caption, after)
    names = (caption.head(thing), caption.noun(thing))
    return (
        (verb != "wear" or not WORN.isdisjoint(names))
        and keeps_its_way(caption.lemmas[slot.start], verb, caption.word(after.end))
        and not has_none_beside(caption, after)
        and (caption.tag(after.end) != "RP" or verb in _MOVING)  # "holding a phone | up"
        and not (caption.lemmas[slot.start] == "watch" and caption.tag(after.end) in VERBS)  # "watching kites | fly"
        and not (caption.lemmas[slot.start] == "hold" and is_in_hand(caption, after))
        and all((verb, name) not in TOGETHER for name in names)
        and not (verb == "watch" and "game" in names and caption.words.has_any(ON_SCREEN))
        and (
            verb in ALWAYS.get(caption.lemmas[slot.start], ())
            or (verb, names[0]) in ALWAYS_WITH
            or candidates.usage.has_object(verb, names[0])
        )
    )


def _goes_before(caption: Caption, candidates: Candidates, verb: str, at: int) -> bool:
    """Whether a verb may stand before the preposition at ``at``, and beside what comes after that."""
    word, beyond = caption.word(at), caption.starting_at(at + 1)
    if word == "to" and caption.tag(at + 1) == "VB":
        return verb in _BEFORE_A_DEED
    if (word in {"to", "with"} and verb in RIDING) or (word in _WAYS_ON and verb in STANDING):
        return False  # "riding with ski poles", "sitting down a trail"
    noun = caption.head(beyond) if beyond is not None else ""
    if verb == "fall" and noun in AIR:
        return word == "through"
    if verb in DONE_AT and word in _UPON and not _is_done_at(caption, verb, at):
        return False
    if (
        (verb in ON_LAND and (noun in WATERS or noun == "body"))
        or (verb == "hang" and ((word == "on" and noun not in _HUNG_ON) or (word == "in" and noun not in ROOMS)))
        or (word == "with" and beyond is not None and not _goes_with(caption, verb, beyond))
    ):
        return False
    return candidates.usage.goes_with(verb, word) and (
        beyond is None
        or caption.tag(beyond.head) not in {"NN", "NNS"}
        or candidates.usage.together(verb, caption.head(beyond))
    )


def _is_done_at(caption: Caption, verb: str, at: int) -> bool:
    """Whether a deed is done at such a place as the preposition at ``at`` tells of: nobody swims on a bench."""
    found = next((found for found in caption.relations if found.start == at), None)
    place = caption.starting_at(found.end) if found is not None else None
    return place is not None and caption.head(place) in DONE_AT[verb]


def _is_purpose(caption: Caption, at: int) -> bool:
    """Whether what follows tells why, and only of the old verb: "coming | in for a landing"."""
    return caption.word(at) == "in" and caption.word(at + 1) == "for"


def _goes_with(caption: Caption, verb: str, beyond: NounPhrase) -> bool:
    """Whether a verb may stand before "with" and a phrase: not "sitting with | a bag | down a street"."""
    stays = verb not in STANDING or caption.word(beyond.end) not in _WAYS_ON
    return stays and (verb != "sleep" or caption.head(beyond) not in OF_PEOPLE)
