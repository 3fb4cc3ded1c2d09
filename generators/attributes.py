"""Attributes that captions give to things, in classes whose members exclude each other.

A *class* (colour, size, material, ...) holds *concepts*; a concept is a set of words for the same thing ("large",
"big"). Two concepts of a class cannot both be true of one thing at once, except *neighbours*, which people mix up
when they look at a picture (orange and red, gray and silver). A negative may put in a word of another concept that is
no neighbour; a mention of any word of a concept counts as a mention of all of them.

*Opposites* are pairs of adjectives without a class around them (open, closed). Both tables are our own. Numbers are
attributes too (`NUMBERS`).
"""

from dataclasses import dataclass

from pairwright.generators.wordlists import word_set

COLOUR = {
    "red": ("red", "crimson", "scarlet"),
    "orange": ("orange",),
    "yellow": ("yellow", "golden"),
    "green": ("green",),
    "blue": ("blue", "navy"),
    "purple": ("purple", "violet"),
    "pink": ("pink", "magenta"),
    "brown": ("brown", "tan", "beige"),
    "black": ("black",),
    "white": ("white",),
    "gray": ("gray", "grey", "silver"),
    "blond": ("blonde", "blond"),
}
SIZE = {
    "large": ("large", "big", "huge", "giant", "enormous", "massive", "gigantic"),
    "medium": ("medium", "mid-sized", "medium-sized"),
    "small": ("small", "little", "tiny", "mini", "miniature"),
}
MATERIAL = {
    "wood": ("wooden", "wood"),
    "metal": ("metal", "metallic", "steel", "iron", "aluminum"),
    "plastic": ("plastic",),
    "glass": ("glass",),
    "brick": ("brick",),
    "stone": ("stone", "rock", "marble", "granite"),
    "concrete": ("concrete", "cement"),
    "leather": ("leather",),
    "paper": ("paper", "cardboard"),
    "wicker": ("wicker", "rattan"),
    "ceramic": ("ceramic", "porcelain"),
}
PATTERN = {
    "striped": ("striped", "stripped"),
    "plaid": ("plaid", "checkered", "checked"),
    "floral": ("floral", "flowered", "flowery"),
    "spotted": ("spotted", "dotted"),
}
SHAPE = {
    "round": ("round", "circular"),
    "square": ("square",),
    "rectangular": ("rectangular",),
    "oval": ("oval",),
    "triangular": ("triangular",),
}
GROUND = {
    "snowy": ("snowy", "icy", "snow-covered"),
    "grassy": ("grassy", "green"),
    "sandy": ("sandy",),
    "rocky": ("rocky",),
    "paved": ("paved",),
}
WEATHER = {
    "sunny": ("sunny", "clear", "bright"),
    "cloudy": ("cloudy", "overcast", "gray", "grey"),
    "rainy": ("rainy", "stormy"),
    "snowy": ("snowy",),
}
CLASSES = {
    "colour": COLOUR,
    "size": SIZE,
    "material": MATERIAL,
    "pattern": PATTERN,
    "shape": SHAPE,
    "ground": GROUND,
    "weather": WEATHER,
}

# Concepts of one class that a viewer may take for each other, or that often hold together.
NEIGHBOURS = frozenset(
    frozenset(pair)
    for pair in (
        ("red", "orange"), ("red", "pink"), ("red", "brown"), ("orange", "yellow"), ("orange", "brown"),
        ("yellow", "brown"), ("yellow", "blond"), ("brown", "blond"), ("white", "blond"), ("blue", "purple"),
        ("pink", "purple"), ("gray", "white"), ("gray", "black"), ("gray", "blue"), ("gray", "brown"),
        ("blue", "green"), ("red", "purple"), ("white", "yellow"), ("black", "brown"), ("black", "blue"),
        ("large", "medium"), ("small", "medium"), ("rectangular", "square"), ("round", "oval"),
        ("stone", "brick"), ("stone", "concrete"), ("brick", "concrete"), ("stone", "ceramic"),
        ("wood", "wicker"), ("wood", "paper"), ("plastic", "glass"), ("plastic", "leather"), ("glass", "ceramic"),
        ("cloudy", "rainy"), ("cloudy", "snowy"), ("rocky", "sandy"), ("striped", "plaid"),
    )
)  # fmt: skip

OPPOSITES = (
    ("open", "closed"), ("empty", "full"), ("wet", "dry"), ("clean", "dirty"), ("old", "new"), ("old", "young"),
    ("tall", "short"), ("long", "short"), ("wide", "narrow"), ("thick", "thin"), ("high", "low"), ("hot", "cold"),
    ("deep", "shallow"), ("dark", "bright"), ("messy", "tidy"), ("messy", "neat"), ("busy", "empty"),
    ("busy", "quiet"), ("modern", "antique"), ("modern", "vintage"), ("modern", "old-fashioned"), ("indoor", "outdoor"),
    ("male", "female"), ("wild", "domestic"), ("curly", "straight"), ("raw", "cooked"), ("fresh", "rotten"),
    ("shallow", "deep"), ("crowded", "empty"), ("happy", "sad"), ("heavy", "light"), ("ripe", "unripe"),
    ("baby", "adult"), ("elderly", "young"), ("smooth", "rough"), ("calm", "choppy"), ("calm", "rough"),
    ("upper", "lower"), ("plain", "patterned"), ("lit", "unlit"), ("seated", "standing"), ("parked", "moving"),
    ("sliced", "whole"), ("carpeted", "tiled"), ("soft", "hard"), ("broken", "intact"), ("furnished", "empty"),
)  # fmt: skip

# Adjectives that order, count or point, and do not describe: never edited.
UNTOUCHED = word_set(
    "other many several few various different same next such own more most first second third last multiple numerous "
    "single double half whole main certain another some front back top bottom left right side middle non open-air "
    "able ready due like similar available possible several full-size stuffed hot live teddy close"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands: the name of its class and of its concept."""

    group: str
    concept: str


def _places() -> dict[str, tuple[Place, ...]]:
    places: dict[str, tuple[Place, ...]] = {}
    for group, concepts in CLASSES.items():
        for concept, words in concepts.items():
            for word in words:
                places[word] = (*places.get(word, ()), Place(group, concept))
    return places


def _opposites() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for one, other in OPPOSITES:
        table[one] = tuple(dict.fromkeys((*table.get(one, ()), other)))
        table[other] = tuple(dict.fromkeys((*table.get(other, ()), one)))
    return table


PLACES = _places()
OPPOSITE = _opposites()


def place(word: str) -> Place | None:
    """Return the class and concept of a lower-case word; the first class when it stands in several."""
    found = PLACES.get(word)
    return found[0] if found else None


def same_concept(word: str) -> tuple[str, ...]:
    """Return all words of the concepts that ``word`` stands for, itself first."""
    words = [w for p in PLACES.get(word, ()) for w in CLASSES[p.group][p.concept]]
    return tuple(dict.fromkeys((word, *words)))


def exclude_each_other(one: str, other: str) -> bool:
    """Whether two words are of one class, of different concepts, and no neighbours."""
    for a in PLACES.get(one, ()):
        for b in PLACES.get(other, ()):
            if a.group == b.group:
                return a.concept != b.concept and frozenset((a.concept, b.concept)) not in NEIGHBOURS
    return False


def opposed(one: str, other: str) -> bool:
    """Whether two words are opposites without a class around them."""
    return other in OPPOSITE.get(one, ())


def contrary(word: str) -> tuple[str, ...]:
    """Return the words that cannot be true of a thing of which ``word`` is true, in the order of the tables."""
    found = list(OPPOSITE.get(word, ()))
    for p in PLACES.get(word, ())[:1]:
        found += [w for words in CLASSES[p.group].values() for w in words if exclude_each_other(word, w)]
    return tuple(dict.fromkeys(found))
