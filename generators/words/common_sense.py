"""What goes together where no captions have been counted: a table of our own for `language/general.py`.

A pool knows which verb stands before which preposition, what is eaten and who flies. With a handful of captions nobody
has counted, and "a cat flying on a road" would be as good as any. These lists say the plainest of it for the verbs and
prepositions that the makers of edits write (`verbs.py`, `relations.py`); of what they do not have, a verb or preposition
is taken not to go with it, since there is mostly another one that is known to.
"""

from collections.abc import Callable

from pairwright.generators.words.attributes import OPPOSITE, PLACES
from pairwright.generators.words.nouns import FLYING, OPEN_PLACES, PEOPLE, SURROUNDINGS, WORN
from pairwright.generators.words.relations import (
    BEDDING,
    BOUNDED,
    CARRIERS,
    ENCLOSED,
    EVENTS,
    FOODS,
    GROUNDS,
    HOLDERS,
    HOLLOWS,
    RIDDEN,
    ROADS,
    SEATS,
    SLOPES,
    SURFACES,
    TABLES,
    WATERS,
)
from pairwright.generators.words.verbs import INSTEAD, INSTEAD_OF_THINGS
from pairwright.generators.words.wordlists import word_set

IsA = Callable[[str, str], bool]

_VERBS = frozenset(INSTEAD) | frozenset(other for others in INSTEAD.values() for other in others)
_VERBS |= frozenset(INSTEAD_OF_THINGS) | frozenset(other for others in INSTEAD_OF_THINGS.values() for other in others)
_ANYWHERE = "on in at by near beside behind under around inside outside with between among while as and"
_ON_A_WAY = (
    "on in down up along through across past by near with around toward towards into over onto off behind beside under "
    "between away out outside inside to from"
)
_BEFORE = {
    verb: word_set(prepositions)
    for verbs, prepositions in {
        "sit lie lay rest sleep kneel crouch squat lounge nap relax": _ANYWHERE + " against down up atop",
        "stand": _ANYWHERE + " along against up atop",
        "walk run wander stroll roam jog ride drive travel race move go head": _ON_A_WAY,
        "jump": _ON_A_WAY,
        "ski snowboard skateboard skate bike sled": "on down up along across over near past",
        "surf": "in on",
        "swim wade float": "in near with under across through around toward by past",
        "fly": "in over above through across around near by past toward into under",
        "park stop": "on in at by near beside behind under along outside between",
        "wait": "for on in at by near with behind outside under to",
        "hang": "on from over above in under off by near",
        "lean": "on against over",
        "sail": "on in by near past through under across",
        "dock": "at in near by",
        "perch": "on atop in",
        "graze": "on in near by under along behind together",
        "play": "in on with at near by under around outside inside",
        "eat": "at in on from with near by under outside",
        "drink": "from in at near by",
        "look stare gaze": "at out through into over up down for",
        "pose": "for with in on near by beside behind under",
        "work": "on in at with near by outside",
        "climb": "on up over down into onto through",
        "point wave smile": "at",
        "reach": "for into",
        "talk": "on to with",
        "watch": "",
        "fall": "off down from on over into through",
    }.items()
    for verb in verbs.split()
}

_PREPOSITIONS = frozenset(word for words in _BEFORE.values() for word in words) | {"atop", "above", "below", "against"}

# Nouns by the preposition that captions have before them; of other prepositions nothing is claimed.
_LYING_ON = word_set(
    "plate tray stove box shelf ladder rock branch log stump suitcase book laptop keyboard newspaper blanket pillow towel "
    "dresser cabinet refrigerator toilet roof fence wall stair step rug mat board floor windowsill stool car truck pillow"
)
_GOVERNED = {
    "on": SEATS | TABLES | SURFACES | GROUNDS | OPEN_PLACES | frozenset(RIDDEN) | _LYING_ON | BEDDING,
    "in": ENCLOSED | HOLLOWS | WATERS | SURROUNDINGS | BOUNDED | word_set("bed chair tree cart stroller mirror air crate"),
    "inside": ENCLOSED | HOLLOWS,
    "under": word_set(
        "table tree bridge umbrella bed bench desk chair car truck roof tent blanket shelf counter awning canopy sky cloud sofa "
        "couch sign lamp parasol"
    ),
    "at": TABLES | EVENTS | word_set("beach zoo park station airport stadium restaurant party night crosswalk intersection"),
    "over": WATERS | SLOPES | word_set("table sink toilet bed door field building bridge street city stove fireplace fence wall"),
    "above": WATERS | word_set("table sink toilet bed door field building bridge street city stove fireplace couch desk"),
    "down": ROADS | SLOPES | word_set("beach ramp rail tracks"),
    "along": ROADS | WATERS | word_set("beach shore fence wall coast"),
    "across": ROADS | WATERS | word_set("field bridge court snow beach room ice desert floor"),
    "through": ROADS | WATERS | word_set("field forest window tunnel grass snow park city air sky sand wood crowd"),
}  # fmt: skip
_SAME = {"on top": "on", "atop": "on", "underneath": "under", "beneath": "under", "below": "under", "within": "in"}

_GRAZING = word_set(
    "cow sheep horse zebra giraffe elephant goat deer cattle bison antelope lamb ram buffalo camel donkey"
)
_BIRDS = word_set("bird seagull duck pigeon eagle owl parrot goose swan pelican gull hawk chicken peacock flamingo")
_BOATS = word_set("boat ship ferry canoe kayak yacht sailboat raft")
_CRAFT = word_set("airplane plane jet helicopter airliner aircraft jetliner")
_DRIVEN = word_set(
    "car truck bus van taxi cab train suv tram trolley jeep motorcycle scooter vehicle tractor traffic trailer"
)
_PUSHED = word_set(
    "cart carriage stroller bike bicycle motorcycle suitcase luggage wagon sled boat wheelchair trailer plow box bag car scooter"
)
_GAMES = word_set(
    "game tennis baseball soccer football basketball frisbee wii guitar piano golf hockey volleyball cricket music drum rugby "
    "video nintendo"
)
_KICKED = word_set("ball baseball football basketball soccer")
_BALLS = _KICKED | word_set("frisbee snowball stick disc toy")
_TOO_BIG = (
    SURROUNDINGS | OPEN_PLACES | SEATS | TABLES | CARRIERS | _DRIVEN | _CRAFT | _GRAZING | EVENTS | ENCLOSED - HOLDERS
) - word_set("bag vase case cup glass pot pan basket bowl box window")
_ACCESSORIES = word_set("backpack necklace ring watch crown wig tie mask helmet scarf bracelet wetsuit")
_NEVER_PEOPLE = word_set("fly graze hang park dock perch sail float sink travel race")
_OF_ANIMALS = word_set("stand sit lie lay sleep walk run jump swim eat play look rest fight drink watch chase")
_OF_BIRDS = word_set("stand sit fly perch walk swim eat sleep drink run")
_OF_VEHICLES = (
    (_BOATS, word_set("sail dock float sit move travel")),
    (_CRAFT, word_set("fly park sit land take")),
    (_DRIVEN | CARRIERS, word_set("park drive travel move stop wait sit turn")),
)
_OF_THINGS = frozenset({"sit", "stand", "lie", "lay", "hang", "rest", "lean"})
_FOOD_KINDS = ("food", "solid food", "dish", "baked goods", "foodstuff", "produce", "edible fruit")


def goes_together(first: str, second: str, is_a: IsA) -> bool | None:
    """Whether the second word may follow the first as captions have words follow each other; None where nothing tells.

    Args:
        first: a verb before its preposition or object, a doer before the verb, a preposition before its noun.
        second: what follows; lemmas.
        is_a: whether a noun is a kind of another.
    """
    if first in PLACES or first in OPPOSITE:
        return None  # "open" of a door
    if first in _VERBS and second in _PREPOSITIONS:
        return second in _BEFORE.get(first, ())
    governed = _GOVERNED.get(_SAME.get(first, first))
    if governed is not None:
        return second in governed
    if second in _VERBS and first not in _VERBS:
        return _does(first, second, is_a)
    if first in _VERBS and second not in _PREPOSITIONS:
        return _takes(first, second, is_a)
    return None


def _does(noun: str, verb: str, is_a: IsA) -> bool:
    """Whether somebody, or something, does it."""
    if noun in PEOPLE or is_a(noun, "person"):
        return verb not in _NEVER_PEOPLE
    if noun in _BIRDS or is_a(noun, "bird"):
        return verb in _OF_BIRDS
    if noun in _GRAZING or is_a(noun, "animal"):
        return verb in _OF_ANIMALS or (verb == "graze" and noun in _GRAZING)
    made = next((deeds for things, deeds in _OF_VEHICLES if noun in things), _OF_THINGS)
    return verb in made or (verb == "fly" and noun in FLYING)


def _takes(verb: str, noun: str, is_a: IsA) -> bool:
    """Whether it is done to such a thing."""
    living = noun in PEOPLE or noun in _BIRDS or noun in _GRAZING or is_a(noun, "animal") or is_a(noun, "person")
    eaten = noun in FOODS or any(is_a(noun, kind) for kind in _FOOD_KINDS)
    small = noun not in _TOO_BIG and not living
    taken: dict[str, bool] = {
        "ride": noun in RIDDEN or noun in _DRIVEN or noun in _BOATS or noun == "wave",
        "drive": noun in _DRIVEN,
        "hold": small, "carry": small, "drop": small and noun not in WORN,
        "throw": noun in _BALLS, "catch": noun in _BALLS, "kick": noun in _KICKED, "hit": noun in _KICKED,
        "eat": eaten, "cook": eaten, "bake": eaten, "prepare": eaten, "serve": eaten, "cut": eaten, "slice": eaten,
        "sell": (eaten or small) and not living, "buy": (eaten or small) and not living,
        "wear": noun in WORN or noun in _ACCESSORIES,
        "wash": noun in _DRIVEN or noun in WORN or noun in RIDDEN or noun in HOLDERS - TABLES,
        "feed": living and noun not in PEOPLE, "pet": living and noun not in PEOPLE,
        "lead": noun in _GRAZING, "chase": living and noun not in PEOPLE, "walk": noun in {"dog", "horse", "bike"},
        "push": noun in _PUSHED, "pull": noun in _PUSHED,
        "read": noun in {"book", "newspaper", "magazine", "menu", "paper", "letter", "map"},
        "fly": noun in {"kite", "plane", "airplane", "drone", "helicopter"},
        "play": noun in _GAMES, "watch": noun in _GAMES or living or noun in {"television", "tv", "movie"},
    }  # fmt: skip
    return taken.get(verb, False)
