"""Lexicon of the oracle: words of colour, size, shape and relation, and their meanings.

It also has colours and shapes that no scene has, so that "a pink hexagon" is false. A word that *could* describe an object
without being its name (crimson of red, a rectangle of a square, huge of large) has an empty ``sure`` and a filled ``maybe``
set: statements that depend on it are not judged. Violet means purple, tiny small, big large.

Words outside the lexicon put a sentence outside the grammar.
"""

from pairwright.datasets.colorshape.oracle.logical_forms import ANY_SHAPE, ObjectRelation, WordSense
from pairwright.datasets.colorshape.scenes import COLOURS, SHAPES


def _named(*values: str) -> WordSense:
    return WordSense(frozenset(values), frozenset(values))


def _possible(*values: str) -> WordSense:
    return WordSense(frozenset(), frozenset(values))


_NOT_IN_SCENES = _named()

COLOUR_WORDS: dict[str, WordSense] = {
    **{name: _named(name) for name in COLOURS},
    "violet": _named("purple"),
    **dict.fromkeys(
        ("pink", "white", "gray", "grey", "silver", "turquoise", "cyan", "magenta", "beige"), _NOT_IN_SCENES
    ),
    **dict.fromkeys(("crimson", "scarlet", "ruby", "reddish", "cherry"), _possible("red")),
    "maroon": _possible("red", "brown", "purple"),
    **dict.fromkeys(("amber", "gold", "golden"), _possible("yellow", "orange")),
    **dict.fromkeys(("azure", "navy", "bluish", "indigo"), _possible("blue", "purple")),
    **dict.fromkeys(("lime", "olive", "emerald", "greenish"), _possible("green")),
    "teal": _possible("green", "blue"),
    **dict.fromkeys(("lavender", "lilac", "mauve", "plum"), _possible("purple")),
    "tan": _possible("brown", "orange"),
    **dict.fromkeys(("chocolate", "brownish"), _possible("brown")),
}

SIZE_WORDS: dict[str, WordSense] = {
    **dict.fromkeys(("large", "big"), _named("large")),
    **dict.fromkeys(("small", "little", "tiny"), _named("small")),
    **dict.fromkeys(("medium", "medium-sized", "mid-sized", "midsized"), _named("medium")),
    **dict.fromkeys(("huge", "giant", "enormous", "gigantic", "massive"), _possible("large")),
    **dict.fromkeys(("miniature", "minuscule"), _possible("small")),
}

_SINGULAR: dict[str, WordSense] = {
    **{shape: _named(shape) for shape in SHAPES},
    **dict.fromkeys(("shape", "object", "item", "thing", "figure"), ANY_SHAPE),
    **dict.fromkeys(("pentagon", "hexagon", "heptagon", "octagon", "nonagon", "decagon"), _NOT_IN_SCENES),
    **dict.fromkeys(
        ("trapezoid", "parallelogram", "crescent", "arrow", "spiral", "cylinder", "semicircle"), _NOT_IN_SCENES
    ),
    **dict.fromkeys(("rectangle", "quadrilateral", "diamond", "rhombus", "cube"), _possible("square")),
    **dict.fromkeys(("oval", "ellipse", "disc", "disk", "dot", "ball", "sphere", "ring"), _possible("circle")),
    **dict.fromkeys(("cone", "pyramid"), _possible("triangle")),
    "polygon": _possible("square", "triangle", "star", "cross"),
}


def _plural(noun: str) -> str:
    irregular = {"rhombus": "rhombuses", "cross": "crosses"}
    return irregular.get(noun, f"{noun}s")


NOUNS: dict[str, tuple[WordSense, bool]] = {
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
_PHRASES: dict[ObjectRelation, tuple[str, ...]] = {
    ObjectRelation.LEFT: ("left of", *(f"{p} the left of" for p in ("to", "on", "at")), "on the left side of", "to the left side of"),
    ObjectRelation.RIGHT: ("right of", *(f"{p} the right of" for p in ("to", "on", "at")), "on the right side of", "to the right side of"),
    ObjectRelation.ABOVE: ("above", "over", "higher than"),
    ObjectRelation.BELOW: ("below", "under", "beneath", "underneath", "lower than"),
    ObjectRelation.ON_TOP: ("on top of", "atop"),
    ObjectRelation.NEAR: ("next to", "near", "near to", "beside", "close to", "by", "alongside", "adjacent to"),
    ObjectRelation.FAR: ("far from", "far away from", "away from"),
    ObjectRelation.TOUCHING: ("touching", "against"),
    ObjectRelation.WITHIN: ("inside", "inside of", "within", "in", "overlapping", "covering", "around", "surrounding"),
    ObjectRelation.BETWEEN: ("between", "in between"),
    ObjectRelation.LARGER: ("larger than", "bigger than"),
    ObjectRelation.SMALLER: ("smaller than",),
    ObjectRelation.SAME_SIZE: ("the same size as", "as large as", "as big as", "as small as"),
    ObjectRelation.SAME_COLOUR: ("the same color as", "the same colour as"),
    ObjectRelation.SAME_SHAPE: ("the same shape as",),
}  # fmt: skip

# First word to the phrases that start with it, as words, with their relations.
RELATION_PHRASES: dict[str, list[tuple[tuple[str, ...], ObjectRelation]]] = {}
for _relation, _phrases in _PHRASES.items():
    for _phrase in _phrases:
        RELATION_PHRASES.setdefault(_phrase.split()[0], []).append((tuple(_phrase.split()), _relation))

PICTURE_NOUNS = frozenset(
    ("picture", "image", "photo", "photograph", "drawing", "illustration", "graphic", "scene", "rendering", "depiction")
)


def takes_article_an(word: str) -> bool:
    """Return whether the article before ``word`` is "an", by its first letter, which is right for all words here."""
    return word[0] in "aeiou"
