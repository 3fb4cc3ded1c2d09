"""Other places: what may stand where a caption tells how one thing is to another.

Opposites and other places come from the tables of `words/relations.py`, ridden things and waters from its smaller ones. What
is written must suit what stands after it: the pool has such a preposition before such a noun. Nothing is written that a
caption says of the image, or that its boxes do not refute (`captions/box_truth.py`). Which of several is written, and in which
place of a caption, goes by what captions have there (`knowledge/odds.py`).
"""

from collections.abc import Iterator

from pairwright.generators.captions.box_truth import place_in_doubt
from pairwright.generators.captions.caption import ANAPHORS, OWN, Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    GAZING,
    VERBS,
    RelationSlot,
    before_it,
    is_bound,
    is_named,
    is_place,
    is_worn,
    may_be_others,
    meant,
    others_there,
)
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.lemmas import verb_of_participle
from pairwright.generators.words.nouns import FIGURES, GATHERINGS, OPEN_PLACES, SURROUNDINGS
from pairwright.generators.words.relations import (
    AT_TABLES,
    BOUNDED,
    CARRIERS,
    ELSEWHERE,
    ELSEWHERE_OF_BODIES,
    ELSEWHERE_OF_BOUNDED,
    ELSEWHERE_OF_ENCLOSED,
    ELSEWHERE_OF_GROUNDS,
    ELSEWHERE_OF_HOLLOWS,
    ELSEWHERE_OF_ROADS,
    ELSEWHERE_OF_TABLES,
    ELSEWHERE_OF_WATERS,
    ENCLOSED,
    EVENTS,
    FOODS,
    GROUNDS,
    HOLDERS,
    HOLLOWS,
    INSTEAD_OF,
    NO_PLACE,
    OUTDOORS,
    POURED,
    RAILS,
    RIDDEN,
    ROADS,
    ROOMS,
    SEATS,
    SLOPES,
    SURFACES,
    TABLES,
    UP_AND_DOWN,
    WATERS,
    Found,
)
from pairwright.generators.words.verbs import forms_of
from pairwright.generators.words.wordlists import word_set

_AWAY = 0.2  # weight of looking away, which captions seldom tell
MEDIA = word_set(
    "phone cellphone telephone leash computer laptop tv television line radio diet break trip tour vacation mirror reflection"
)
_NO_BODIES = OPEN_PLACES | SURROUNDINGS | SURFACES | EVENTS
_SIDES_OF_A_TABLE = frozenset({"in front of", "behind"})
# Whoever sits in front of one of these sits behind it for those who look on.
_SAT_AT = word_set(
    "table desk counter bar laptop computer monitor keyboard piano podium microphone grill stove cake pizza plate meal food"
)
_ON = frozenset({"on", "on top of", "atop", "upon"})
IN = frozenset({"in", "inside", "inside of", "within"})
_ALONGRAILS = frozenset({"over", "across", "along", "down"})
_AWAY_FROM = ("away from",)
_OVER = frozenset({"above", "over"})
_ON_WALLS = word_set(
    "wall mirror window picture painting clock sign cabinet shelf poster light lamp television tv curtain art artwork"
)
_ON_AND_UNDER = _ON | {"under", "underneath", "beneath"}
_TAKEN_IN = frozenset({"eat", "drink"})
_PUT_IN = word_set("put place insert stick pour stuff load pack set")
_OPENINGS, OUTSIDE = word_set("window doorway fence"), "outside"
_RIDING = word_set("ride ski skate surf skateboard snowboard")
_DEGREES = word_set("very too so pretty extremely fairly quite")
_NOT_OWN = ANAPHORS - OWN
_OWN_PLACES = TABLES | SEATS | CARRIERS | frozenset(RIDDEN) | HOLDERS | ENCLOSED  # "his desk" is one to be beside
_GAZED = frozenset({"at", "into", "through", "toward", "towards"})
# What is on a water is beside it where it stands on land.
_ON_THE_SHORE = word_set(
    "pier dock wharf boardwalk beach shore house building restaurant hotel city town harbor lighthouse"
)
_LANDS = word_set(
    "field street road beach park yard city town lot plaza area court runway forest hill mountain sidewalk dock pier bridge"
)
VEHICLES = word_set(
    "car truck bus van taxi cab train suv airplane plane jet boat ship motorcycle scooter jeep tram trolley locomotive "
    "airliner jetliner aircraft helicopter firetruck pickup minivan motorbike streetcar ferry yacht sailboat"
)
_LOADED, _LOADING = word_set("bike bicycle motorcycle motorbike scooter car"), word_set("truck boat ship train")
_LARGER = SURROUNDINGS | word_set(
    "bridge tunnel building house barn store shop hangar warehouse church dock water tree"
)
_LIMBS = word_set("arm hand leg lap head back shoulder neck face foot knee wrist chest")  # nothing is under his arm
_FLAT = frozenset({"bench", "stool"})  # "a bicycle parked in a bench"
_LARGE_BEASTS = word_set("zebra giraffe elephant horse cow bull sheep camel donkey pony rhino buffalo bison moose ox")
_CLIMBED = word_set("fence tree pole post wall bush")


def places(caption: Caption, candidates: Candidates) -> Iterator[RelationSlot]:
    """Yield the relations that others may replace, whatever else stands in the way."""
    for found in caption.relations:
        wording, after = " ".join(caption.lower[found.start : found.end]), caption.starting_at(found.end)
        gazing = caption.tokens[found.start - 1].lemma in GAZING and caption.tag(found.start - 1) in VERBS
        if wording in _GAZED and after is not None and gazing:
            yield RelationSlot(found.start, found.end, _AWAY_FROM, (_AWAY,))
        elif after is not None and wording in _ON and caption.head(after) in RIDDEN:
            if _rides(caption, candidates, found):
                news = RIDDEN[caption.head(after)]
                yield RelationSlot(
                    found.start, found.end, news, candidates.odds.of_places(wording, news, caption.head(after))
                )
        elif after is not None and caption.word(after.end) == "from":
            continue  # "across the street from"
        elif after is not None:
            after = meant(caption, after)
            noun = caption.head(after)
            news = tuple(dict.fromkeys(_opposites(wording, noun) + _other_places(caption, wording, after)))
            if wording in AT_TABLES and noun in TABLES and _rides(caption, candidates, found):
                news += AT_TABLES[wording]
            if news:
                yield RelationSlot(found.start, found.end, news, candidates.odds.of_places(wording, news, noun))


def other_place(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Exchange the relation of a slot of `places` for one that excludes it."""
    if slot.news == _AWAY_FROM:
        after = caption.starting_at(slot.end)
        if after is not None and caption.word(after.end) == "to" and caption.tag(after.end + 1) == "VB":
            return "not_grammatical"  # "looking at an oven to see what is cooking"
        said = caption.words.has("away from")
        return "true_of_image" if said else (caption.change(slot.start, slot.end, "away from"),)
    wording, after = " ".join(caption.lower[slot.start : slot.end]), caption.starting_at(slot.end)
    ridden = after is not None and wording in _ON and caption.head(after) in RIDDEN
    return (_off_it if ridden else _elsewhere)(caption, candidates, slot, rng)


def _rides(caption: Caption, candidates: Candidates, found: Found) -> bool:
    """Whether somebody who rides is named right before a relation: not "a sticker on a skateboard"."""
    before = caption.ending_at(found.start)
    return before is not None and is_named(caption, before) and candidates.things.is_alive(caption.head(before))


def _off_it(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Let whoever rides a thing stand by it, or do with it what a rider does not."""
    after = caption.starting_at(slot.end)
    if after is None or not caption.is_whole(after) or not _NOT_OWN.isdisjoint(caption.lower[after.start : after.end]):
        return "not_grammatical"
    if not _RIDING.isdisjoint(caption.lemmas[after.end : after.end + 1]):
        return "not_grammatical"  # "people next to skateboards ride"
    if others_there(caption, caption.ending_at(slot.start), after):
        return "true_of_image"
    reason, noun = "no_candidate", caption.head(after)
    for new in rng.weighted_shuffle(slot.news, slot.weights):
        deed, _, preposition = new.partition(" ")
        verb = verb_of_participle(deed) if deed.endswith("ing") else ""
        if preposition and verb and not candidates.usage.are_said_before(verb, preposition, noun):
            continue
        if (
            verb
            and not preposition
            and not (candidates.usage.is_written(new) and candidates.usage.has_object(verb, noun))
        ):
            continue
        if not verb and not candidates.usage.stands_before(new, noun):
            continue
        if not (caption.words.has_any(forms_of(verb)) if verb else caption.words.said_of(new, noun)):
            return (caption.change(slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def _opposites(wording: str, noun: str) -> tuple[str, ...]:
    if noun in WATERS and wording in {"over", "above"}:
        return ()  # no plane flies under the water
    if noun in SLOPES and (wording in UP_AND_DOWN or wording in _ON):
        return UP_AND_DOWN.get(wording, ())
    return INSTEAD_OF.get(wording, ())


def _elsewhere(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Put a thing elsewhere: on the other side of another, beside what it is on, inside what it is near."""
    wording = " ".join(caption.lower[slot.start : slot.end])
    before, after = before_it(caption, slot.start), caption.starting_at(slot.end)
    if after is None or is_bound(caption, slot.start, slot.end):
        return "no_edit"
    amount, after = after, meant(caption, after)
    noun = caption.head(after)
    news = rng.weighted_shuffle(slot.news, slot.weights)
    opposites, others = _opposites(wording, noun), _other_places(caption, wording, after)
    others += AT_TABLES.get(wording, ()) if noun in TABLES else ()
    turned = before is not None and (wording == "at" or is_named(caption, after))
    moved = is_place(caption, slot.start, after) and not (
        noun in MEDIA or noun in FIGURES or (wording in {"in", "with"} and is_worn(caption, after))
    )
    unclear = wording in _SIDES_OF_A_TABLE and noun in _SAT_AT
    told_apart = not (
        unclear or (before is not None and may_be_others(caption, before)) or may_be_others(caption, after)
    )
    alone = not others_there(caption, before, after)
    solid = amount != after or _holds_nothing(caption, candidates, after)  # nothing is in "pairs of | shoes"
    small = _is_under_nobody(caption, candidates, before, noun)
    wide = _is_wide(caption, before, noun)
    open_air = noun in ENCLOSED and not OUTDOORS.isdisjoint(caption.lower)  # "standing outside in a building"
    if before is not None and caption.head(before) in _ON_THE_SHORE and noun in WATERS:
        return "true_of_image"
    # "A mirror above a sink" is behind it as well.
    hung = wording in _OVER and before is not None and caption.head(before) in _ON_WALLS
    laid = wording == "at" and not (before is not None and candidates.things.is_alive(caption.head(before)))
    if _belongs_to_what_is_before(caption, slot.start, wording):
        return "not_grammatical"
    reason = "no_edit"
    for new in news:
        if not ((turned and new in opposites) or (moved and new in others)):
            continue
        may_hold = (laid and new in _ON) or (hung and new == "behind")  # "a plate at a table"
        if may_hold or not ((turned and told_apart and new in opposites) or (moved and alone and new in others)):
            reason = "true_of_image"
            continue
        if (
            (new in IN and (solid or wide or open_air or noun in TABLES))
            or (wording == "between" and new in IN | _ON_AND_UNDER and caption.word(after.end) == "and")
            or (new in _ON_AND_UNDER and noun in _LIMBS)
            or (new in _ON_AND_UNDER and (small or wide))
            or not candidates.usage.stands_before(new, noun)
        ):
            reason = "no_candidate" if reason == "no_edit" else reason
            continue
        doubted = before is not None and place_in_doubt(caption.words, caption.head(before), new, noun)
        said = (new in opposites and caption.words.has(new)) or caption.words.said_of(new, noun)
        holds = before is not None and new in IN | _ON and caption.words.holds(noun, caption.head(before))
        if not (doubted or said or holds):
            return (caption.change(slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def _belongs_to_what_is_before(caption: Caption, start: int, wording: str) -> bool:
    """Whether no other place goes with the words before: "eating straw into a cup", "very on a chair"."""
    done = frozenset(caption.lemmas[:start])
    eaten = wording == "out of" and not _TAKEN_IN.isdisjoint(done)
    put = wording == "into" and not _PUT_IN.isdisjoint(done)
    return eaten or put or caption.word(start - 1) in _DEGREES


def _is_under_nobody(caption: Caption, candidates: Candidates, before: NounPhrase | None, noun: str) -> bool:
    """Whether a thing is told of that nobody is on: a child, a bird, or, of somebody, a cake."""
    if before is None or noun in RIDDEN:
        return False
    return candidates.things.is_alive(noun) or (noun in FOODS and candidates.things.is_alive(caption.head(before)))


def _is_wide(caption: Caption, before: NounPhrase | None, noun: str) -> bool:
    """Whether something is told of that is too large to be on, in or under a thing: a field, a car beside a hydrant."""
    one = caption.head(before) if before is not None else ""
    if one in VEHICLES:
        return noun not in _LARGER and not (one in _LOADED and noun in _LOADING)
    return one in _LANDS or (one in _LOADED and noun in VEHICLES) or (one in _LARGE_BEASTS and noun in _CLIMBED)


def _holds_nothing(caption: Caption, candidates: Candidates, after: NounPhrase) -> bool:
    """Whether nothing told is inside a thing: what lives or is eaten, or another of what was named ("a train by a train")."""
    noun = caption.head(after)
    eaten = noun not in POURED | {"salad"} and (
        noun in FOODS or candidates.things.is_of(noun, "food")
    )  # "a cup in a doughnut"
    lives = candidates.things.is_alive(noun) and noun not in GATHERINGS
    return (
        eaten
        or lives
        or noun in _FLAT
        or any(caption.head(each) == noun for each in caption.phrases if each.end <= after.start)
    )


def _other_places(caption: Caption, wording: str, after: NounPhrase) -> tuple[str, ...]:
    """Return what excludes a wording before such a thing."""
    noun, inside = caption.head(after), caption.lower[after.start : after.end]
    wanted = _directions(wording, noun) + _off_and_outside(wording, noun)
    if noun in ROOMS and wording in IN:
        return wanted  # a bed is not next to a bedroom
    anaphors = _NOT_OWN if noun in _OWN_PLACES else ANAPHORS
    of_itself = not anaphors.isdisjoint(inside) or noun in NO_PLACE  # "a cap on its head" is nowhere else
    if noun in BOUNDED and not of_itself:
        wanted += ELSEWHERE_OF_BOUNDED.get(wording, ())
    if noun in WATERS and not of_itself:
        return wanted + ELSEWHERE_OF_WATERS.get(wording, ())
    fenced = noun == "fence" and wording in IN  # whatever is within one may be next to it
    if of_itself or fenced or not _NO_BODIES.isdisjoint({noun, *inside}):
        return wanted
    wanted += ELSEWHERE_OF_BODIES.get(wording, ()) + (ELSEWHERE_OF_HOLLOWS.get(wording, ()) if noun in HOLLOWS else ())
    if noun in TABLES:
        wanted += ELSEWHERE_OF_TABLES.get(wording, ())
    if noun in SEATS or noun in CARRIERS:  # in and on them is the same
        if wording in _ON:
            return tuple(new for new in wanted if new not in IN)
        if wording in IN:
            return tuple(new for new in wanted if new not in _ON)
    return wanted


def _off_and_outside(wording: str, noun: str) -> tuple[str, ...]:
    return (ELSEWHERE_OF_GROUNDS.get(wording, ()) if noun in GROUNDS else ()) + (
        ELSEWHERE_OF_ENCLOSED.get(wording, ()) if noun in ENCLOSED else ()
    )


def _directions(wording: str, noun: str) -> tuple[str, ...]:
    """Return what excludes a wording before whatever thing, and a direction on a road."""
    wanted = ELSEWHERE.get(wording, ()) + _across_roads(wording, noun)
    if wording == "through" and noun in _OPENINGS:  # "the sun shining through the window"
        return tuple(new for new in wanted if new != OUTSIDE)
    return wanted


def _across_roads(wording: str, noun: str) -> tuple[str, ...]:
    """Return what excludes a direction on a road; a train goes over, and across, the tracks that it goes down."""
    wanted = ELSEWHERE_OF_ROADS.get(wording, ()) if noun in ROADS else ()
    return tuple(new for new in wanted if noun not in RAILS or new not in _ALONGRAILS)
