"""Whether a deed with its preposition suits what stands around it: its doer, what follows, and the rest of the caption."""

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    VERBS,
    RelationSlot,
    is_named,
    meant,
)
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.rules.acting import (
    AFOOT,
    AIR,
    RIDING,
    is_carried,
    keeps_still,
    lives,
    may_do,
    same_of_a_bird,
)
from pairwright.generators.rules.phrase_exchanges import PICTURES
from pairwright.generators.words.attributes import is_colour
from pairwright.generators.words.nouns import PEOPLE, WORN
from pairwright.generators.words.relations import RAILS, WATERS
from pairwright.generators.words.verbs import (
    GROUNDED,
    HEAVY,
    ON_FOOT,
    ON_LAND,
    STANDING,
    TOGETHER,
    WAYS,
    keeps_its_way,
)
from pairwright.generators.words.wordlists import word_set

_NO_WAYS = word_set("snow sand water grass ice mud dirt rain surf ocean sea")  # "walking down the snow"
_SHIFTS = frozenset({"push", "pull", "carry", "hold"})
_PHONES = word_set("phone cellphone telephone cell smartphone iphone")
_HANDS = word_set("hand hands lap arm arms mouth ear head face mouths heads")
_LIMBS = _HANDS | word_set("trunk trunks tail tails tongue paw paws leg legs foot feet neck horn horns tooth teeth")


def _goes_on(caption: Caption, after: NounPhrase | None) -> bool:
    """Whether a deed follows a phrase: whoever is "wearing a helmet | doing a trick" does not look for it meanwhile."""
    return after is not None and caption.tag(after.end) in {"VBG", "RP"}  # "holding a phone | up"


def _is_held(caption: Caption, after: NounPhrase | None) -> bool:
    """Whether a phrase is no thing, or goes on to say that somebody has it in his hands: "a phone | to her ear"."""
    return after is not None and not (
        is_named(caption, meant(caption, after)) and _HANDS.isdisjoint(caption.lower[after.end :])
    )


def _is_in_colours(caption: Caption, at: int) -> bool:
    """Whether a colour stands for clothes: "dressed in | black | riding a wave"."""
    return is_colour(caption.word(at)) and (caption.starting_at(at) is None or caption.word(at + 1).endswith("ing"))


def suits(caption: Caption, candidates: Candidates, slot: RelationSlot, verb: str, form: str) -> bool:
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
        and not (form.endswith((" for", " at")) and (is_colour(noun) or _is_in_colours(caption, slot.end)))
        and not (form.endswith(" at") and noun in RAILS)
        and not (form.endswith(" for") and (noun in _LIMBS or _goes_on(caption, after)))
        and (verb not in STANDING or beyond not in WAYS)
        and keeps_its_way(old, verb, beyond)
        and not same_of_a_bird(caption, candidates, slot, (verb, form))
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
        and not (form.endswith((" at", " for")) and noun not in PICTURES and _is_held(caption, after))
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
