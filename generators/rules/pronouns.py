"""Places told by a pronoun: "on it", "next to each other", "in the background".

"A table with a vase | on it" is as well told apart from "a vase under it" as "a vase on a table" from one under a
table, and so is what stands next to each other from what stands behind each other. Whoever the pronoun stands for, a
body with sides or a room, has to be found before it; where that is not clear, nothing is edited.
"""

from collections.abc import Iterator

from pairwright.generators.captions.box_truth import place_in_doubt
from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import RelationSlot, before_it, is_bound, is_named, may_be_others
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.inflection import inflect
from pairwright.generators.rules.placing import VEHICLES
from pairwright.generators.words.nouns import GATHERINGS, OPEN_PLACES, SURROUNDINGS
from pairwright.generators.words.relations import BESIDE_IT, EVENTS, ROOMS, SURFACES, TOPPINGS
from pairwright.generators.words.verbs import ON_SCREEN
from pairwright.generators.words.wordlists import word_set

_IT = frozenset({"it", "them"})
_HIM = frozenset({"him", "her"})
EACH_OTHER = frozenset({("each", "other"), ("one", "another")})
_UPON = ("on", "on top of", "under")
_OUT_OF_IT = ("next to", "behind", "on", "on top of", "under", "near", "in front of", "beside")
_OFF_IT = ("next to", "behind", "under", "in front of", "beside", "near")
OF_IT = {
    "on": _OFF_IT,
    "on top of": _OFF_IT,
    "in": _OUT_OF_IT,
    "inside": _OUT_OF_IT,
    "inside of": _OUT_OF_IT,
    "next to": _UPON,
    "beside": _UPON,
    "near": _UPON,
    "by": _UPON,
    "behind": ("in front of", *_UPON),
    "in front of": ("behind", *_UPON),
    "under": _UPON[:2],
    "underneath": _UPON[:2],
    "beneath": _UPON[:2],
    "above": ("under", "below"),
    "over": ("under", "below"),
}
OF_HIM = {"behind": ("in front of",), "in front of": ("behind",), "next to": ("behind",), "beside": ("behind",)}
_SIDE_BY_SIDE = ("next to", "beside")
OF_EACH_OTHER = {
    "next to": ("behind", "on top of"),
    "beside": ("behind", "on top of"),
    "near": ("on top of",),
    "close to": ("on top of",),
    "behind": (*_SIDE_BY_SIDE, "on top of"),
    "in front of": (*_SIDE_BY_SIDE, "on top of"),
    "on top of": (*_SIDE_BY_SIDE, "behind", "near"),
}
_OWNS = word_set("with has have having that where and containing")
_BACK_AND_FRONT = {"background": "foreground", "foreground": "background"}
# What stands behind a thing as a wall does: it may be in front of it, and on or under it never.
_NEVER_ON_IT = OPEN_PLACES | SURROUNDINGS | SURFACES | word_set("building fence house window door people person crowd")
_FASTENED = word_set(
    "clock graffiti writing sign sticker logo word letter number name picture painting drawing face label design pattern"
)
_RUN_AFTER = word_set("run go chase look race walk one")
_FLYING = word_set(
    "plane airplane jet helicopter jetliner airliner aircraft biplane bird seagull gull eagle hawk pigeon"
)
_THROUGH = word_set("in through across against on")
_GROUNDED = word_set(
    "perched perches perch standing parked sitting sits landed landing ground runway tarmac airport taxiing"
)
_TIMES = {"during": ("after", "before"), "after": ("before",), "before": ("after",)}
_AT_A_TIME = _TIMES | {"in": ("after", "before"), "at": ("after", "before")}
_TIMED = EVENTS | word_set(
    "dinner lunch breakfast meal practice storm rain speech class show halftime session flight play inning"
)
_JUST = word_set("just right shortly immediately moments seconds")
_PILED = word_set("stack pile heap mix")
_IN_A_ROW = word_set("front row line file")


def pointed_at(caption: Caption, candidates: Candidates) -> Iterator[RelationSlot]:
    """Yield the relations before a pronoun that others may replace, whatever else stands in the way."""
    for found in caption.relations:
        wording, word = " ".join(caption.lower[found.start : found.end]), caption.word(found.end)
        news: tuple[str, ...] = ()
        if caption.lower[found.end : found.end + 2] in EACH_OTHER:
            news = OF_EACH_OTHER.get(wording, ())
        elif caption.tag(found.end + 1) in {"POS", "NN", "NNS", "JJ", "PRP$"} or caption.word(found.end + 1) == "'s":
            continue  # "on it's back"
        elif word in _IT:
            news = OF_IT.get(wording, ())
        elif word in _HIM and caption.tag(found.end) == "PRP":
            news = OF_HIM.get(wording, ())
        if news:
            yield RelationSlot(found.start, found.end, news, candidates.odds.of_places(wording, news, word))


def other_side(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Put what is at a pronoun elsewhere: under it, behind it, on top of each other."""
    if is_bound(caption, slot.start, slot.end) or slot.start == 0:
        return "no_edit"
    if caption.lower[slot.end : slot.end + 2] in EACH_OTHER:
        return _of_each_other(caption, candidates, slot, rng)
    thing = before_it(caption, slot.start)
    whose = _stood_for(caption, thing) if thing is not None and is_named(caption, thing) else None
    if thing is None or whose is None or not is_named(caption, whose):
        return "no_edit"
    if caption.plural(whose) != (caption.word(slot.end) == "them"):
        return "no_edit"
    return _elsewhere(caption, candidates, slot, rng, (thing, whose))


def _elsewhere(
    caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream, told: tuple[NounPhrase, NounPhrase]
) -> Outcome:
    """Put the first of two things elsewhere, the second being what the pronoun stands for."""
    one, other = map(caption.head, told)
    several = may_be_others(caption, told[0]) and not _is_part_of_it(caption, candidates, slot, told[0])
    if several or (caption.word(slot.end) == "it" and caption.words.several(other)):
        return "true_of_image"
    reason = "no_candidate"
    for new in rng.weighted_shuffle(slot.news, slot.weights):
        if not _may_be(candidates, one, new, other):
            continue
        said = caption.words.said_of(new, other) or caption.words.said_of(new, one)
        if not said and not place_in_doubt(caption.words, one, new, other):
            return (caption.change(slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def _stood_for(caption: Caption, thing: NounPhrase) -> NounPhrase | None:
    """Return what a pronoun stands for: "a table" of "a table with a vase on it", and of "a vase on a table behind it"."""
    for at in range(thing.start - 1, 0, -1):
        if caption.word(at) in _OWNS:
            whose = caption.ending_at(at)
            if whose is not None and caption.word(at) != "and":
                return whose
        elif caption.tag(at) in {"IN", "TO"} and caption.word(at) != "of":
            return None  # another place between
    return None


def _is_part_of_it(caption: Caption, candidates: Candidates, slot: RelationSlot, thing: NounPhrase) -> bool:
    """Whether several things are at the pronoun, and no others of their name are likely to be about: "pillows on it"."""
    upon = " ".join(caption.lower[slot.start : slot.end]) in {"on", "on top of", "in", "inside", "inside of"}
    noun = caption.head(thing)
    return (
        upon
        and caption.plural(thing)
        and not candidates.things.is_alive(noun)
        and noun not in _NEVER_ON_IT | GATHERINGS
    )


def _may_be(candidates: Candidates, one: str, new: str, other: str) -> bool:
    """Whether a thing may be, by that wording, at another for all that captions say of such things."""
    if other in ROOMS:
        return new in BESIDE_IT
    if other in OPEN_PLACES or other in SURROUNDINGS or other in SURFACES:
        return False
    if new in _UPON and (one in _NEVER_ON_IT or candidates.things.is_alive(other)):
        return False
    if (one in TOPPINGS or one in _FASTENED) and new not in _SIDE_BY_SIDE:
        return False  # cream behind a cake, a clock under its tower
    return candidates.usage.stands_before(new, other)


def _of_each_other(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Put things that are side by side behind, or upon, each other."""
    things = before_it(caption, slot.start)
    lives = any(
        candidates.things.is_alive(caption.head(each)) or caption.head(each) in GATHERINGS for each in caption.phrases
    )
    heaped = any(candidates.things.is_of(caption.head(each), "food") for each in caption.phrases)
    parked = any(caption.head(each) in VEHICLES for each in caption.phrases)
    if caption.lemmas[slot.start - 1] in _PILED:
        return "no_edit"  # "stacked on top of each other"
    reason = "no_candidate"
    for new in rng.weighted_shuffle(slot.news, slot.weights):
        if new == "on top of" and (lives or heaped or parked or things is None):
            continue
        if not (caption.words.has(new) or (new == "behind" and caption.words.has_any(_IN_A_ROW))):
            return (caption.change(slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def times(caption: Caption, rng: RandomStream) -> Iterator[Outcome]:
    """Put what is done during, after or before something at another time."""
    for at, word in enumerate(caption.lower):
        if word not in _AT_A_TIME or caption.tag(at) != "IN":
            continue
        after = caption.starting_at(at + 1)
        named = after is not None and caption.head(after) in (_TIMED if word in _TIMES else EVENTS)
        event = named and after is not None and caption.is_whole(after)
        if word not in _TIMES and (not event or is_bound(caption, at, at + 1) or caption.words.has_any(ON_SCREEN)):
            continue
        deed = word != "during" and caption.tag(at + 1) == "VBG" and caption.tag(at - 1)[:2] in {"NN", "RB", "RP"}
        if not (event or deed) or caption.lemmas[at - 1] in _RUN_AFTER or caption.word(at - 1) in _JUST:
            yield "no_edit"
            continue
        free = [new for new in _AT_A_TIME[word] if not caption.words.has(new)]
        yield (caption.change(at, at + 1, rng.choice(free)),) if free else "true_of_image"


def landed(caption: Caption, candidates: Candidates) -> Iterator[Outcome]:
    """Park what flies in the sky under it."""
    for at, lemma in enumerate(caption.lemmas):
        if lemma != "fly" or caption.tag(at) not in {"VBG", "VBZ", "VBP"}:
            continue
        who = before_it(caption, at)
        there = at + 1 + (caption.tag(at + 1) in {"RB", "RP"})
        sky = caption.starting_at(there + 1)
        flies = who is not None and caption.head(who) in _FLYING and caption.word(there) in _THROUGH
        if not flies or sky is None or caption.head(sky) != "sky" or not (sky.adjectives and caption.is_whole(sky)):
            yield "no_edit"
        elif caption.words.has_any(_GROUNDED) or not candidates.usage.goes_with("sit", "under"):
            yield "true_of_image"
        else:
            yield (caption.change(at, there + 1, f"{inflect('sit', caption.tag(at))} under"),)


def grounds(caption: Caption) -> Iterator[Outcome]:
    """Exchange the background and the foreground for each other."""
    for at, word in enumerate(caption.lower):
        new = _BACK_AND_FRONT.get(word)
        if new is None or caption.word(at - 1 - (caption.word(at - 1) == "the")) not in {"in", "on"}:
            continue
        start = at - 1 - (caption.word(at - 1) == "the")
        thing = before_it(caption, start)
        if thing is None or caption.words.has(new):
            yield "true_of_image" if thing is not None else "no_edit"
        elif may_be_others(caption, thing) or not is_named(caption, thing):
            yield "true_of_image"
        else:
            yield (caption.change(at, at + 1, new),)
