"""The oracle's lexicon: which words of colour, size, shape and relation it knows, and what they mean.

Besides the words of the scenes it knows colours and shapes that no scene has, so that "a pink hexagon" is
plainly false. A word that *could* be said of something in a scene without being its name (crimson of red,
a rectangle of a square, huge of large) has an empty ``sure`` and a filled ``maybe`` set: what hangs on it is
not judged. Violet is taken as purple, tiny as small, big as large.

Words outside the lexicon put a sentence outside the grammar.
"""

from pairwright.datasets.colorshape.oracle_forms import ANY_SHAPE, Relation, Sense
from pairwright.datasets.colorshape.scenes import COLOURS, SHAPES


def _named(*values: str) -> Sense:
    return Sense(frozenset(values), frozenset(values))


def _perhaps(*values: str) -> Sense:
    return Sense(frozenset(), frozenset(values))


_ABSENT = _named()

COLOUR_WORDS: dict[str, Sense] = {
    **{name: _named(name) for name in COLOURS},
    "violet": _named("purple"),
    **dict.fromkeys(("pink", "white", "gray", "grey", "silver", "turquoise", "cyan", "magenta", "beige"), _ABSENT),
    **dict.fromkeys(("crimson", "scarlet", "ruby", "reddish", "cherry"), _perhaps("red")),
    "maroon": _perhaps("red", "brown", "purple"),
    **dict.fromkeys(("amber", "gold", "golden"), _perhaps("yellow", "orange")),
    **dict.fromkeys(("azure", "navy", "bluish", "indigo"), _perhaps("blue", "purple")),
    **dict.fromkeys(("lime", "olive", "emerald", "greenish"), _perhaps("green")),
    "teal": _perhaps("green", "blue"),
    **dict.fromkeys(("lavender", "lilac", "mauve", "plum"), _perhaps("purple")),
    "tan": _perhaps("brown", "orange"),
    **dict.fromkeys(("chocolate", "brownish"), _perhaps("brown")),
}

SIZE_WORDS: dict[str, Sense] = {
    **dict.fromkeys(("large", "big"), _named("large")),
    **dict.fromkeys(("small", "little", "tiny"), _named("small")),
    **dict.fromkeys(("medium", "medium-sized", "mid-sized", "midsized"), _named("medium")),
    **dict.fromkeys(("huge", "giant", "enormous", "gigantic", "massive"), _perhaps("large")),
    **dict.fromkeys(("miniature", "minuscule"), _perhaps("small")),
}

_SINGULAR: dict[str, Sense] = {
    **{shape: _named(shape) for shape in SHAPES},
    **dict.fromkeys(("shape", "object", "item", "thing", "figure"), ANY_SHAPE),
    **dict.fromkeys(("pentagon", "hexagon", "heptagon", "octagon", "nonagon", "decagon"), _ABSENT),
    **dict.fromkeys(("trapezoid", "parallelogram", "crescent", "arrow", "spiral", "cylinder", "semicircle"), _ABSENT),
    **dict.fromkeys(("rectangle", "quadrilateral", "diamond", "rhombus", "cube"), _perhaps("square")),
    **dict.fromkeys(("oval", "ellipse", "disc", "disk", "dot", "ball", "sphere", "ring"), _perhaps("circle")),
    **dict.fromkeys(("cone", "pyramid"), _perhaps("triangle")),
    "polygon": _perhaps("square", "triangle", "star", "cross"),
}


def _plural(noun: str) -> str:
    irregular = {"rhombus": "rhombuses", "cross": "crosses"}
    return irregular.get(noun, f"{noun}s")


NOUNS: dict[str, tuple[Sense, bool]] = {
    **{noun: (sense, False) for noun, sense in _SINGULAR.items()},
    **{_plural(noun): (sense, True) for noun, sense in _SINGULAR.items()},
}

NUMBERS: dict[str, int] = {
    word: value
    for value, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
        start=1,
    )
} | {str(value): value for value in range(1, 11)}

# The words between two noun phrases.
_PHRASES: dict[Relation, tuple[str, ...]] = {
    Relation.LEFT: ("left of", *(f"{p} the left of" for p in ("to", "on", "at")), "on the left side of", "to the left side of"),
    Relation.RIGHT: ("right of", *(f"{p} the right of" for p in ("to", "on", "at")), "on the right side of", "to the right side of"),
    Relation.ABOVE: ("above", "over", "higher than"),
    Relation.BELOW: ("below", "under", "beneath", "underneath", "lower than"),
    Relation.ON_TOP: ("on top of", "atop"),
    Relation.NEAR: ("next to", "near", "near to", "beside", "close to", "by", "alongside", "adjacent to"),
    Relation.FAR: ("far from", "far away from", "away from"),
    Relation.TOUCHING: ("touching", "against"),
    Relation.WITHIN: ("inside", "inside of", "within", "in", "overlapping", "covering", "around", "surrounding"),
    Relation.BETWEEN: ("between", "in between"),
    Relation.LARGER: ("larger than", "bigger than"),
    Relation.SMALLER: ("smaller than",),
    Relation.SAME_SIZE: ("the same size as", "as large as", "as big as", "as small as"),
    Relation.SAME_COLOUR: ("the same color as", "the same colour as"),
    Relation.SAME_SHAPE: ("the same shape as",),
}  # fmt: skip

# First word to the phrases that begin with it, as words, with what they mean.
RELATION_PHRASES: dict[str, list[tuple[tuple[str, ...], Relation]]] = {}
for _relation, _phrases in _PHRASES.items():
    for _phrase in _phrases:
        RELATION_PHRASES.setdefault(_phrase.split()[0], []).append((tuple(_phrase.split()), _relation))

PICTURE_NOUNS = frozenset(
    ("picture", "image", "photo", "photograph", "drawing", "illustration", "graphic", "scene", "rendering", "depiction")
)


def takes_an(word: str) -> bool:
    """Whether the article before ``word`` is "an"; by its first letter, which suits every word known here."""
    return word[0] in "aeiou"
