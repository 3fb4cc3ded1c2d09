"""Other places: what may stand where a caption tells how one thing is to another.

Opposites and other places come from the tables of `relations.py`, ridden things and waters from its smaller ones. What
is written must suit what stands after it: the pool has such a preposition before such a noun. Nothing is written that a
caption says of the image, or that its boxes do not refute (`box_truth.py`). Which of several is written, and in which
place of a caption, goes by what captions have there (`odds.py`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from pairwright.generators.box_truth import place_in_doubt
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, OWN, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.edits import Change
from pairwright.generators.language.lemmas import verb_of
from pairwright.generators.nouns import FIGURES, GATHERINGS, OPEN_PLACES, SURROUNDINGS, WORN
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.relations import (
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
    RIDDEN,
    ROADS,
    SEATS,
    SLOPES,
    SURFACES,
    TABLES,
    UP_AND_DOWN,
    WATERS,
    Found,
)
from pairwright.generators.verbs import forms_of
from pairwright.generators.wordlists import word_set

VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN", "VB"})
_GAZING = frozenset({"look", "stare", "gaze", "glance", "peer"})
_AIMED = word_set("swing look shot glance hit throw")  # nouns of an aim: "a swing at a ball"
# What can be near or missing, though its name tells too little to be exchanged (`nouns.FRAMES`).
_NAMED_LOOSELY = word_set(
    "room area ground person people adult child kid animal vehicle food meal dish player rider crowd team topping store"
)
_AWAY = 0.2  # weight of looking away, which captions seldom tell
_FURTHEST = 3  # tokens between a thing and its relation: "a man who is standing on"
# Verbs that choose their preposition: "looking at" is no place.
_BINDING = word_set(
    "look stare gaze point wave smile bark throw aim glance yell laugh shout shoot arrive kick swing hit lunge "
    "nibble chew snack graze munch talk speak chat call text play dress cover fill make fall compete participate "
    "engage run rely depend focus hang wrap surround cut feature specialize drip attach stop turn plug pull prepare get "
    "take top decorate line load pile pack stuff clothe base split divide arrange put pour spread build reflect embed"
)
# ... and those of them that tell nothing but an activity, which may well be in a kitchen.
_ACTIVITIES = word_set(
    "smile bark yell laugh shout kick swing hit nibble chew snack graze munch talk speak chat text play compete "
    "participate run take prepare get fall pose stop turn pull"
)
_PLAINLY_PLACES = frozenset({"next to", "near", "beside", "close to", "alongside", "in front of", "behind"})
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
_IN = frozenset({"in", "inside", "inside of", "within"})
_OFF = frozenset(RIDDEN.values())
_RAILS = word_set("track railroad railway rail")
_ALONG_RAILS = frozenset({"over", "across", "along", "down"})
_AWAY_FROM = ("away from",)
_ON_AND_UNDER = _ON | {"under", "underneath", "beneath"}
_TAKEN_IN = frozenset({"eat", "drink"})
_NOT_OWN = ANAPHORS - OWN
_OWN_PLACES = TABLES | SEATS | CARRIERS | frozenset(RIDDEN) | HOLDERS | ENCLOSED  # "his desk" is one to be beside
_GAZED = frozenset({"at", "into", "through", "toward", "towards"})


# What is on a water is beside it where it stands on land.
_ON_THE_SHORE = word_set(
    "pier dock wharf boardwalk beach shore house building restaurant hotel city town harbor lighthouse"
)
_LANDS = word_set(
    "field street road beach park yard city town lot plaza area court runway forest hill mountain sidewalk"
)
VEHICLES = word_set(
    "car truck bus van taxi cab train suv airplane plane jet boat ship motorcycle scooter jeep tram trolley locomotive"
)
_LOADED, _LOADING = word_set("bike bicycle motorcycle motorbike scooter car"), word_set("truck boat ship train")
_LARGER = SURROUNDINGS | word_set(
    "bridge tunnel building house barn store shop hangar warehouse church dock water tree"
)
_LIMBS = word_set("arm hand leg lap head back shoulder neck face foot knee wrist chest")  # nothing is under his arm
_IN_BOWLS = word_set("soup salad water milk cereal sauce")
_LARGE_BEASTS = word_set("zebra giraffe elephant horse cow bull sheep camel donkey pony rhino buffalo bison moose ox")
_CLIMBED = word_set("fence tree pole post wall bush")


_AMOUNTS = word_set(
    "lot piece kind type bunch variety slice pile assortment couple pair group set loaf bag box bouquet"
)


class Slot(NamedTuple):
    """A place of a caption at which one of several words may be written; all of the same token positions.

    Attributes:
        start: first token that goes.
        end: one past the last.
        news: what may be written.
        weights: of each, above 0.
        lemmas: of what may be written where it is a verb; empty for a relation.
        doer: of a verb, where it is known.
    """

    start: int
    end: int
    news: tuple[str, ...]
    weights: tuple[float, ...]
    lemmas: tuple[str, ...] = ()
    doer: NounPhrase | None = None


def places(caption: Caption, candidates: Candidates) -> Iterator[Slot]:
    """Yield the relations that others may replace, whatever else stands in the way."""
    for found in caption.relations:
        wording, after = " ".join(caption.lower[found.start : found.end]), caption.starting_at(found.end)
        gazing = caption.tokens[found.start - 1].lemma in _GAZING and caption.tag(found.start - 1) in VERBS
        if wording in _GAZED and after is not None and gazing:
            yield Slot(found.start, found.end, _AWAY_FROM, (_AWAY,))
        elif after is not None and wording in _ON and caption.head(after) in RIDDEN:
            if _rides(caption, candidates, found):
                news = RIDDEN[caption.head(after)]
                yield Slot(found.start, found.end, news, candidates.odds.of_places(wording, news, caption.head(after)))
        elif after is not None and caption.word(after.end) == "from":
            continue  # "across the street from"
        elif after is not None:
            noun = caption.head(after)
            news = tuple(dict.fromkeys(_opposites(wording, noun) + _other_places(caption, wording, after)))
            if wording in AT_TABLES and noun in TABLES and _rides(caption, candidates, found):
                news += AT_TABLES[wording]
            if news:
                yield Slot(found.start, found.end, news, candidates.odds.of_places(wording, news, noun))


def other_place(caption: Caption, candidates: Candidates, slot: Slot, rng: Draws) -> Outcome:
    """Exchange the relation of a slot of `places` for one that excludes it."""
    if slot.news == _AWAY_FROM:
        after = caption.starting_at(slot.end)
        if after is not None and caption.word(after.end) == "to" and caption.tag(after.end + 1) == "VB":
            return "not_grammatical"  # "looking at an oven to see what is cooking"
        said = caption.words.has("away from")
        return "true_of_image" if said else (change_of(caption, slot.start, slot.end, "away from"),)
    return (_off_it if slot.news in _OFF else _elsewhere)(caption, candidates, slot, rng)


def _rides(caption: Caption, candidates: Candidates, found: Found) -> bool:
    """Whether somebody who rides is named right before a relation: not "a sticker on a skateboard"."""
    before = caption.ending_at(found.start)
    return before is not None and is_named(caption, before) and candidates.things.is_alive(caption.head(before))


def _off_it(caption: Caption, candidates: Candidates, slot: Slot, rng: Draws) -> Outcome:
    """Let whoever rides a thing stand by it, or do with it what a rider does not."""
    after = caption.starting_at(slot.end)
    if after is None or not caption.is_whole(after) or not _NOT_OWN.isdisjoint(caption.lower[after.start : after.end]):
        return "not_grammatical"
    if others_there(caption, caption.ending_at(slot.start), after):
        return "true_of_image"
    reason, noun = "no_candidate", caption.head(after)
    for new in rng.by_weight(slot.news, slot.weights):
        deed, _, preposition = new.partition(" ")
        verb = verb_of(deed) if deed.endswith("ing") else ""
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
            return (change_of(caption, slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def _opposites(wording: str, noun: str) -> tuple[str, ...]:
    if noun in SLOPES and (wording in UP_AND_DOWN or wording in _ON):
        return UP_AND_DOWN.get(wording, ())
    return INSTEAD_OF.get(wording, ())


def _elsewhere(caption: Caption, candidates: Candidates, slot: Slot, rng: Draws) -> Outcome:
    """Put a thing elsewhere: on the other side of another, beside what it is on, inside what it is near."""
    wording = " ".join(caption.lower[slot.start : slot.end])
    before, after = before_it(caption, slot.start), caption.starting_at(slot.end)
    if after is None or is_bound(caption, slot.start, slot.end):
        return "no_edit"
    noun = caption.head(after)
    news = rng.by_weight(slot.news, slot.weights)
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
    solid = _holds_nothing(caption, candidates, after)
    small = _is_under_nobody(caption, candidates, before, noun)
    wide = _is_wide(caption, before, noun)
    if before is not None and caption.head(before) in _ON_THE_SHORE and noun in WATERS:
        return "true_of_image"
    laid = wording == "at" and not (before is not None and candidates.things.is_alive(caption.head(before)))
    if wording == "out of" and not _TAKEN_IN.isdisjoint(caption.lemmas[: slot.start]):
        return "not_grammatical"  # "eating straw into a container"
    reason = "no_edit"
    for new in news:
        if not ((turned and new in opposites) or (moved and new in others)):
            continue
        may_hold = laid and new in _ON  # "a plate at a table"
        if may_hold or not ((turned and told_apart and new in opposites) or (moved and alone and new in others)):
            reason = "true_of_image"
            continue
        if (
            (new in _IN and (solid or wide or noun in TABLES))
            or (new in _ON_AND_UNDER and noun in _LIMBS)
            or (new in _ON_AND_UNDER and (small or wide))
            or not candidates.usage.stands_before(new, noun)
        ):
            reason = "no_candidate" if reason == "no_edit" else reason
            continue
        doubted = before is not None and place_in_doubt(caption.words, caption.head(before), new, noun)
        said = caption.words.has(new) if new in opposites else caption.words.said_of(new, noun)
        if not doubted and not said:
            return (change_of(caption, slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


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
    eaten = noun not in _IN_BOWLS and (noun in FOODS or candidates.things.is_of(noun, "food"))  # "a cup in a doughnut"
    lives = candidates.things.is_alive(noun) and noun not in GATHERINGS
    return eaten or lives or any(caption.head(each) == noun for each in caption.phrases if each.end <= after.start)


def is_worn(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase names what one has on."""
    return not WORN.isdisjoint((caption.head(phrase), caption.word(phrase.head)))


def is_place(caption: Caption, start: int, after: NounPhrase) -> bool:
    """Whether a relation at token ``start`` tells where something is, and not anything else."""
    return start > 0 and is_named(caption, after) and caption.is_whole(after)


def _other_places(caption: Caption, wording: str, after: NounPhrase) -> tuple[str, ...]:
    """Return what excludes a wording before such a thing."""
    noun, inside = caption.head(after), caption.lower[after.start : after.end]
    wanted = ELSEWHERE.get(wording, ()) + _across_roads(wording, noun)
    if noun in GROUNDS:
        wanted += ELSEWHERE_OF_GROUNDS.get(wording, ())
    if noun in ENCLOSED:
        wanted += ELSEWHERE_OF_ENCLOSED.get(wording, ())
    anaphors = _NOT_OWN if noun in _OWN_PLACES else ANAPHORS
    of_itself = not anaphors.isdisjoint(inside) or noun in NO_PLACE  # "a cap on its head" is nowhere else
    if noun in BOUNDED and not of_itself:
        wanted += ELSEWHERE_OF_BOUNDED.get(wording, ())
    if noun in WATERS and not of_itself:
        return wanted + ELSEWHERE_OF_WATERS.get(wording, ())
    fenced = noun == "fence" and wording in _IN  # whatever is within one may be next to it
    if of_itself or fenced or not _NO_BODIES.isdisjoint({noun, *inside}):
        return wanted
    wanted += ELSEWHERE_OF_BODIES.get(wording, ()) + (ELSEWHERE_OF_HOLLOWS.get(wording, ()) if noun in HOLLOWS else ())
    if noun in TABLES:
        wanted += ELSEWHERE_OF_TABLES.get(wording, ())
    if noun in SEATS or noun in CARRIERS:  # in and on them is the same
        if wording in _ON:
            return tuple(new for new in wanted if new not in _IN)
        if wording in _IN:
            return tuple(new for new in wanted if new not in _ON)
    return wanted


def _across_roads(wording: str, noun: str) -> tuple[str, ...]:
    """Return what excludes a direction on a road; a train goes over, and across, the tracks that it goes down."""
    wanted = ELSEWHERE_OF_ROADS.get(wording, ()) if noun in ROADS else ()
    return tuple(new for new in wanted if noun not in _RAILS or new not in _ALONG_RAILS)


def others_there(caption: Caption, before: NounPhrase | None, after: NounPhrase) -> bool:
    """Whether another thing, or a thing at another place, of the same name may be what is told."""
    noun = caption.head(after)
    if not caption.plural(after) and noun not in OPEN_PLACES and caption.words.several(noun):
        return True
    return before is not None and not caption.plural(before) and caption.words.several(caption.head(before))


def is_bound(caption: Caption, start: int, end: int) -> bool:
    """Whether a preposition belongs to its verb ("looking at", "made by") and tells no place."""
    if caption.tag(end - 1) == "RP" or caption.tag(start - 1) == "DT" or caption.word(start - 1) == "from":
        return True  # "the inside of", "from across"
    if (
        start
        and caption.word(start) == "at"
        and (caption.lemmas[start - 1] in _AIMED or not _GAZING.isdisjoint(caption.lemmas[:start]))
    ):
        return True
    at = start - 1
    while at > 0 and caption.tag(at) in {"RB", "RP"}:
        at -= 1  # "looking directly at", "looking down behind"
    token = caption.tokens[at] if at >= 0 else None
    if token is None or token.tag not in VERBS:
        return False
    if caption.word(start) == "by" and token.tag in {"VBN", "VBD"}:
        return True
    return token.lemma in _BINDING and not _tells_where(caption, (start, end), token.lemma)


def _tells_where(caption: Caption, span: tuple[int, int], verb: str) -> bool:
    """Whether the place is told of a verb that may choose a preposition: "smiling next to", "eating in a kitchen"."""
    if " ".join(caption.lower[span[0] : span[1]]) in _PLAINLY_PLACES:
        return verb not in _GAZING
    after = caption.starting_at(span[1])
    return verb in _ACTIVITIES and after is not None and caption.head(after) in SURROUNDINGS


def before_it(caption: Caption, start: int) -> NounPhrase | None:
    """Return the thing that a relation is said of: the noun phrase before it, verbs and adverbs between."""
    at = start
    while (
        at > 0
        and start - at < _FURTHEST
        and (caption.tag(at - 1)[:2] in {"VB", "RB"} or caption.word(at - 1) in {"that", "who", "which"})
    ):
        at -= 1
    return caption.ending_at(at)


def may_be_others(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether another thing of that name could make the opposite true."""
    return caption.plural(phrase) or phrase.count >= 0 or caption.words.several(caption.head(phrase))


def is_named(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase names what can be at a place or missing, be it by a word that tells little of it."""
    loosely = caption.head(phrase) in _NAMED_LOOSELY or len(phrase.nouns) > 1  # "a stove top"
    return caption.is_thing(phrase) or (loosely and caption.tag(phrase.head) in {"NN", "NNS"})


def change_of(caption: Caption, start: int, end: int, after: str) -> Change:
    """Return the change that writes words for the tokens ``start`` up to ``end``."""
    return Change(caption.tokens[start].start, caption.tokens[end - 1].end, after)


def meant(caption: Caption, owned: NounPhrase) -> NounPhrase:
    """Return what there is a lot of, where a phrase only says that there is ("with lots of | food")."""
    if caption.head(owned) not in _AMOUNTS or caption.word(owned.end) != "of":
        return owned
    return caption.starting_at(owned.end + 1) or owned
