"""Relations between things in a caption: prepositions of place and direction.

A *relation* has wordings that mean the same ("to the left of", "left of"). What cannot hold of the same two things in
the same picture stands in `INSTEAD_OF` (opposites) and in the `ELSEWHERE` tables (other places), wording by wording and
by the kind of noun after it. A *strict* relation never holds both ways round, so exchanging what it joins makes the
text false. One that is not is left alone ("next to", "with").

The table is our own. It is short on purpose: a wrong opposite makes a negative that is true of the image. "On" against
"under" is only used where the pool says "under a <noun>" (see `knowledge/candidates.py`), since nothing is under a wall.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pairwright.generators.language.tokens import Token
from pairwright.generators.words.wordlists import word_set


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of place, direction or action.

    Attributes:
        name: by which others refer to it.
        wordings: lower-case, most usual first.
        strict: A rel B excludes B rel A.
    """

    name: str
    wordings: tuple[str, ...]
    strict: bool = False


def _strict(name: str, *wordings: str) -> Relation:
    return Relation(name, wordings, strict=True)


RELATIONS = (
    _strict("left", "to the left of", "left of", "on the left of", "on the left side of", "to the left side of"),
    _strict("right", "to the right of", "right of", "on the right of", "on the right side of", "to the right side of"),
    _strict("above", "above", "high above", "over"),
    _strict("below", "below", "under", "beneath", "underneath"),
    _strict("on", "on top of", "on", "upon", "atop"),
    _strict("in", "in", "inside", "inside of", "within"),
    _strict("outside", "outside", "outside of"),
    _strict("front", "in front of"),
    _strict("behind", "behind", "in back of"),
    _strict("larger", "larger than", "bigger than"),
    _strict("smaller", "smaller than"),
    _strict("taller", "taller than"),
    _strict("shorter", "shorter than"),
    Relation("up", ("up",)),
    Relation("down", ("down",)),
    Relation("into", ("into",)),
    Relation("out of", ("out of",)),
    Relation("onto", ("onto",)),
    Relation("off", ("off of", "off")),
    Relation("toward", ("toward", "towards")),
    Relation("away from", ("away from",)),
    Relation("beside", ("next to", "beside", "alongside", "side by side with")),
    Relation("near", ("near", "close to", "nearby", "by")),
    Relation("with", ("with", "along with", "together with")),
    Relation("across", ("across from", "opposite")),
    Relation("and", ("and", "or")),
    Relation("at", ("at",)),
    Relation("along", ("along",)),
    Relation("over there", ("across",)),
    Relation("through", ("through",)),
    Relation("between", ("between", "in between")),
    Relation("around", ("around",)),
    Relation("past", ("past",)),
    Relation("against", ("against",)),
    Relation("middle", ("in the middle of", "in the center of")),
    Relation("edge", ("on the edge of", "at the edge of", "on the side of", "at the end of")),
    Relation("corner", ("in the corner of", "at the corner of", "on the corner of")),
    Relation("top", ("at the top of",)),
    Relation("bottom", ("at the bottom of",)),
    Relation("its back", ("on the back of", "in the back of")),
    Relation("its front", ("on the front of", "in the front of")),
)

_CLOSE_BY = frozenset({"beside", "near"})  # what is beside a thing is near it, and captions say either
_ALIKE = {
    wording: frozenset(
        other for each in RELATIONS if {each.name, one.name} <= _CLOSE_BY or each is one for other in each.wordings
    )
    for one in RELATIONS
    for wording in one.wordings
}


_ALSO = {"next to": ("adjacent to",), "beside": ("adjacent to",), "in front of": ("before",)}


def wordings_like(wording: str) -> frozenset[str]:
    """Return the wordings that say the same as one, or nearly, itself among them."""
    return _ALIKE.get(wording, frozenset({wording})).union(_ALSO.get(wording, ()))


# What replace-relation may write for a wording, best first. It takes the first that the pool has before such a noun.
# "Under" is undone by "on" too: what is under a table is not on it.
INSTEAD_OF = {
    "to the left of": ("to the right of",),
    "left of": ("right of", "to the right of"),
    "on the left of": ("on the right of", "to the right of"),
    "on the left side of": ("on the right side of", "to the right of"),
    "to the left side of": ("to the right side of", "to the right of"),
    "to the right of": ("to the left of",),
    "right of": ("left of", "to the left of"),
    "on the right of": ("on the left of", "to the left of"),
    "on the right side of": ("on the left side of", "to the left of"),
    "to the right side of": ("to the left side of", "to the left of"),
    "above": ("below", "under", "beneath"),
    "over": ("under", "below", "beneath"),
    "below": ("above", "over"),
    "under": ("on top of", "on", "above", "over"),
    "beneath": ("on top of", "on", "above", "over"),
    "underneath": ("on top of", "on", "above", "over"),
    "on": ("under", "underneath", "beneath"),
    "on top of": ("under", "underneath", "beneath"),
    "upon": ("under", "beneath"),
    "atop": ("under", "beneath"),
    "in": ("outside",),
    "inside": ("outside",),
    "inside of": ("outside of",),
    "outside": ("inside",),
    "outside of": ("inside of", "inside"),
    "in front of": ("behind",),
    "behind": ("in front of",),
    "in back of": ("in front of",),
    "larger than": ("smaller than",),
    "bigger than": ("smaller than",),
    "smaller than": ("larger than", "bigger than"),
    "taller than": ("shorter than",),
    "shorter than": ("taller than",),
    "into": ("out of",),
    "out of": ("into",),
    "onto": ("off",),
    "off of": ("onto",),
    "off": ("onto",),
    "toward": ("away from",),
    "towards": ("away from",),
    "away from": ("toward", "towards"),
}

# What replace-relation may write where there is no opposite, by the sense in which the relation is meant. A *body* is a
# thing with sides and an outside: what is on a bench is not beside it. A *surface* has no edge that a picture shows: who
# is on a road may be beside it for all that a viewer can tell, and what is on the snow is in it. So nothing is put
# beside, behind or upon a surface, and nothing "inside" what others are only around.
_UPON, _BESIDE = ("on", "on top of", "under", "in", "inside"), ("beside", "next to", "behind")
ELSEWHERE_OF_BODIES = {
    "on": (*_BESIDE, "in front of", "inside"),
    "on top of": (*_BESIDE, "in front of", "inside"),
    "atop": (*_BESIDE, "inside"),
    "upon": ("beside", "behind"),
    "in": (*_BESIDE, "on top of", "in front of", "under"),
    "inside": (*_BESIDE, "on top of", "in front of", "under"),
    "inside of": ("next to", "behind", "on top of", "in front of", "under"),
    "within": ("outside", "next to", "behind"),
    "at": ("under", "on top of"),
    "near": _UPON,
    "close to": _UPON,
    "by": _UPON,
    "next to": _UPON,
    "beside": _UPON,
    "alongside": _UPON,
    "behind": _UPON,
    "in front of": _UPON,
    "under": ("inside", "in", "next to", "beside"),
    "underneath": ("inside", "in", "next to", "beside"),
    "beneath": ("inside", "in", "next to", "beside"),
    "below": ("inside", "in", "on"),
    "above": ("inside", "in", "behind"),
    "over": ("inside", "in", "behind"),
    "outside of": ("on top of",),
    "between": _UPON,
    "in between": ("on", "on top of", "under", "in"),
    "around": ("under", "on top of", "on"),
    "across": ("under",),
    "past": ("into", "on"),
    "against": _UPON,
    "onto": ("under", "off"),
    "on the back of": ("on the front of", "under", "next to"),
    "on the front of": ("on the back of", "inside"),
    "in the back of": ("in the front of", "under"),
    "in the front of": ("in the back of", "under"),
}
# Of whatever place: the directions and parts that exclude each other.
ELSEWHERE = {
    "through": ("past", "around", "away from", "outside"),
    "toward": ("past",),
    "towards": ("past",),
    "into": ("past", "away from"),
    "in the middle of": ("at the edge of", "on the edge of", "on the side of"),
    "in the center of": ("at the edge of", "on the edge of", "on the side of"),
    "on the edge of": ("in the middle of", "in the center of"),
    "at the edge of": ("in the middle of", "in the center of"),
    "in the corner of": ("in the middle of", "in the center of"),
    "at the corner of": ("in the middle of", "in the center of"),
    "on the corner of": ("in the middle of", "in the center of"),
    "at the end of": ("in the middle of", "at the start of"),
    "at the top of": ("at the bottom of",),
    "at the bottom of": ("at the top of",),
}
# Down a road is not across it; down a hill may be across it as well.
# Beside a road is not in its middle; a clock "on the side of" a building may be.
ELSEWHERE_OF_ROADS = {
    "down": ("across", "under"),
    "up": ("across",),
    "along": ("across",),
    "across": ("along", "down"),
    "on the side of": ("in the middle of", "in the center of"),
}
ROADS = word_set(
    "street road highway path sidewalk alley avenue lane hallway runway river aisle track railroad railway trail"
)
RAILS = word_set("track railroad railway rail")
ON_RAILS = word_set("train locomotive tram trolley subway engine caboose car")
# What is beside a water is not in it.
WATERS = word_set("water ocean river lake pond pool sea stream")
ELSEWHERE_OF_WATERS = {
    "near": ("in",),
    "close to": ("in",),
    "next to": ("in",),
    "beside": ("in",),
    "by": ("in",),
    "alongside": ("in",),
    "along": ("in",),
    "above": ("in",),
}
# Who is in the water or on a court is not beside it; on a road or in the snow nobody can tell.
_BY = ("near", "by", "next to", "beside", "behind")
ELSEWHERE_OF_BOUNDED = {
    "in": _BY,
    "on": _BY,
    "inside": _BY,
    "on top of": _BY,
    "inside of": _BY,
    "across": _BY,
    "through": _BY,
}
BOUNDED = WATERS | word_set(
    "track railroad railway court runway stage bridge rug carpet mat lot field garden yard kitchen bathroom bedroom "
    "restroom garage stadium zoo museum barn airport hallway boat"
)
# Whoever is at one is not on it, and somebody on it or under it is not at it.
ELSEWHERE_OF_TABLES = {"at": ("on",), "around": ("on",)}
AT_TABLES = {"on": ("at",), "on top of": ("at",), "under": ("at",), "underneath": ("at",), "beneath": ("at",)}
TABLES = word_set("table desk counter bar countertop podium")
# Whatever is on one is not off it, though it may be near it for all that a viewer can tell.
ELSEWHERE_OF_GROUNDS = {"on": ("off",), "on top of": ("off",)}
GROUNDS = word_set("road street track court field runway trail path highway sidewalk railroad railway tarmac pavement")
ELSEWHERE_OF_ENCLOSED = {"in": ("outside",), "inside": ("outside",), "within": ("outside",)}
# In and on the same of these is not the same, and captions say both: a cat on a suitcase is not in it. Of bowls, vases
# and ovens they say either and mean the same.
ELSEWHERE_OF_HOLLOWS = {"in": ("on",), "inside": ("on",), "inside of": ("on",), "on": ("in",), "on top of": ("in",)}
HOLLOWS = word_set(
    "suitcase car refrigerator fridge microwave bathtub tub cage house drawer cabinet purse backpack luggage tent barrel dumpster cooler briefcase dresser dishwasher washer dryer"
)
# Who is in one is not outside it, whether captions tell of anybody there or not.
ENCLOSED = word_set(
    "kitchen bathroom bedroom room restroom house home building office store shop restaurant garage city town village park "
    "zoo stadium airport station museum hotel barn cage pen classroom hallway cafe bar church library theater gym tent "
    "bus car truck van train airplane cabin closet enclosure fence box basket bowl bag vase case bathtub tub shower cup "
    "glass pot pan container suitcase oven refrigerator window doorway mall bakery apartment studio arena court forest yard"
)
# Who rides on one of these does not carry, push or lead it.
RIDDEN = {
    noun: tuple(deeds.split("|"))
    for deeds, nouns in (
        (
            "holding|carrying|next to|beside|behind|walking with|running with",
            "skateboard surfboard snowboard board ski skate boogie",
        ),
        (
            "next to|beside|behind|pushing|washing|in front of|walking with|standing with",
            "bike bicycle motorcycle scooter motorbike moped wheelchair",
        ),
        (
            "next to|beside|behind|leading|feeding|petting|in front of|walking with|standing with",
            "horse elephant donkey camel pony cow bull",
        ),
    )
    for noun in nouns.split()
}
# In and on the same of these is the same.
CARRIERS = word_set(
    "bus train plane airplane jet ship boat ferry subway motorcycle bike bicycle carriage canoe raft kayak wagon cart sled "
    "truck trolley tram helicopter scooter gondola yacht sailboat wheelchair"
)
# In these one is on top of them.
SEATS = word_set("bed couch sofa chair seat armchair recliner hammock bunk crib bench lounge futon mattress")
# Whatever is at a place is not far from it. The last resorts, since captions seldom say so.
AWAY, FAR = "away from", "far from"
NOT_FAR = word_set(
    "on upon atop in inside within at near by beside alongside behind under underneath beneath below above over outside "
    "between around along across against"
) | {
    "on top of", "inside of", "close to", "next to", "in front of", "outside of", "in between", "in the middle of",
    "in the center of", "on the edge of", "at the edge of", "on the side of", "at the top of", "at the bottom of",
    "on the back of", "on the front of", "in the back of", "in the front of",
}  # fmt: skip
# What one may be at or in, and is no thing to be beside or far from.
EVENTS = word_set(
    "game match competition ceremony parade race concert wedding tournament performance festival party contest meeting event"
)
# What holds something has it in or on itself, not beside itself.
HOLDERS = word_set(
    "plate bowl tray basket box platter bucket crate dish pan pot container vase jar cart bin skillet saucer suitcase "
    "table counter shelf desk countertop"
)
BESIDE_IT = ("next to", "near", "by", "beside")
# What is on a pizza or a bed, or is a part of a building, a tower or a bus, is not beside it; the rooms stand apart.
OUTDOORS = word_set("outside outdoors outdoor")
INDOORS = word_set("indoors indoor")  # not "inside": somebody inside a truck may be in a street
ROOMS = word_set("kitchen bathroom bedroom room restroom office garage store shop classroom kitchenette")
FOODS = word_set(
    "pizza sandwich burger hamburger cheeseburger cake cupcake salad pasta donut doughnut pie soup pancake waffle omelet "
    "dog hotdog bagel toast sub spaghetti dessert pastry"
)
POURED = word_set("soup water milk cereal sauce")  # in its bowl, and not beside it
TOPPINGS = word_set(
    "cheese pepperoni mushroom onion tomato olive spinach basil sauce ketchup mustard relish chili bacon ham sausage "
    "frosting icing sprinkle candle lettuce pepper topping mayonnaise butter syrup cream chocolate jalapeno pickle "
    "cucumber crust glaze icing powder sugar herb avocado egg strawberry blueberry cherry feta mozzarella slaw"
)
BEDDING = word_set("pillow blanket quilt sheet comforter cover bedspread cushion duvet bedding linen")
WITH_PARTS = word_set(
    "building tower house church bus train truck car van plane airplane jet boat ship clock bench sign station structure "
    "steeple cathedral store motorcycle bike bicycle wall room kitchen bathroom"
)
PARTS_OF_BUILDINGS = word_set(
    "clock tower chimney graffiti steeple bell logo writing engine propeller mirror "
    "sail mast arch column dome weathervane basket seat"
)
# Who has a thing in hand does none of these with it.
HANDLED = ("reaching for", "looking for", "walking by", "walking past", "dropping", "throwing")
# Who has a garment on does none of these with it.
DONE_TO_WORN = ("holding", "carrying", "washing", "folding", "reaching for")
# No place that one can be far from, or none that a picture shows.
NO_PLACE = word_set(
    "rain sun wind fog mist shade dark darkness dusk weather motion formation bloom hand arm mouth lap back shoulder head "
    "face foot leg neck ear eye hair finger wrist knee chest color colour style tv television phone display wheel chain "
    "saddle screen board ski skate foot surfboard skateboard snowboard leash harness tow bottle way breeze middle frame dress pose row "
    "line summer winter fall spring season life time circle order half slice process care charge direction"
)
# Where one may be on, in or beside and look the same: no bodies, beside `nouns.OPEN_PLACES` and `nouns.SURROUNDINGS`.
SURFACES = word_set(
    "bridge platform carpet rug tile pavement ramp wave mat deck patio porch lot stage dock pier plaza cement asphalt "
    "gravel ice mud meadow pasture lawn hillside mountainside plain savannah savanna prairie jungle woods enclosure pen "
    "farm garden crosswalk intersection lane trail railway railroad rail bay marina canal stream pool puddle wetland "
    "swamp valley canyon cliff ridge dune shoreline coast island square driveway roadway alley avenue freeway brush "
    "shrub backyard playground campground ballpark terrain waterway surf seashore weed straw hay leaf plant space "
    "setting environment habitat countryside cloud distance tarmac curb hall rink corral concrete arena reservoir "
    "suburb neighborhood lobby landscape horizon skyline scenery tree bush mound home base tunnel"
)
# On these what goes up does not go down; up and down a street are the same to many.
SLOPES = word_set("hill mountain slope mountainside hillside ramp stair staircase step ladder tree cliff escalator")
UP_AND_DOWN = {"up": ("down",), "down": ("up",)}

# Verbs whose doer and object cannot be exchanged: whoever rides is not ridden.
STRICT_VERBS = frozenset(
    {
        "ride", "hold", "carry", "wear", "pull", "push", "eat", "drink", "throw", "catch", "hit", "kick", "cut",
        "drive", "lead", "walk", "feed", "wash", "brush", "chase", "swing", "fly", "use", "cover", "surround",
        "contain", "climb", "read", "bite", "chew", "herd", "cook", "pour", "lift", "operate", "steer", "milk",
    }
)  # fmt: skip


class Found(NamedTuple):
    """A relation in a caption: tokens ``start`` up to ``end``."""

    relation: Relation
    start: int
    end: int


def _by_first_word() -> dict[str, list[tuple[tuple[str, ...], Relation]]]:
    index: dict[str, list[tuple[tuple[str, ...], Relation]]] = {}
    for relation in RELATIONS:
        for wording in relation.wordings:
            words = tuple(wording.split())
            index.setdefault(words[0], []).append((words, relation))
    return {word: sorted(entries, key=lambda entry: -len(entry[0])) for word, entries in index.items()}


_BY_FIRST_WORD = _by_first_word()
_LONGEST = max(len(words) for entries in _BY_FIRST_WORD.values() for words, _ in entries)


def relation_at(tokens: Sequence[Token], index: int) -> Found | None:
    """Return the longest relation that starts at token ``index``, or None."""
    return _relation_at([token.text.lower() for token in tokens[: index + _LONGEST]], index)


def _relation_at(lower: Sequence[str], index: int) -> Found | None:
    for words, relation in _BY_FIRST_WORD.get(lower[index], ()):
        end = index + len(words)
        if tuple(lower[index:end]) == words:
            return Found(relation, index, end)
    return None


def relations_in(tokens: Sequence[Token]) -> tuple[Found, ...]:
    """Return the relations of a caption from left to right, without overlap."""
    return relations_among([token.text.lower() for token in tokens])


def relations_among(lower: Sequence[str]) -> tuple[Found, ...]:
    """Return the relations of a caption whose tokens are given in lower case."""
    found: list[Found] = []
    end = 0
    for index, word in enumerate(lower):
        hit = _relation_at(lower, index) if word in _BY_FIRST_WORD and index >= end else None
        if hit is not None:
            found.append(hit)
            end = hit.end
    return tuple(found)
