"""Attributes that captions give to things, in classes whose members exclude each other.

A *class* (colour, size, material, ...) holds *concepts*; a concept is a set of words for the same thing ("large",
"big"). Two concepts of a class cannot both be true of one thing at once, except *neighbours*, which people mix up
when they look at a picture (orange and red, gray and silver). A negative may put in a word of another concept that is
no neighbour; a mention of any word of a concept counts as a mention of all of them.

*Opposites* are pairs of adjectives without a class around them (open, closed). Where a word has several senses,
`OPPOSED_OF` names the nouns beside which the pair is one of opposites: a door is open or closed, a field is not. All
tables are our own. Numbers are attributes too (`phrases.NUMBER_WORDS`).
"""

from dataclasses import dataclass

from pairwright.generators.words.wordlists import word_set

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
    "grassy": ("grassy",),
    "sandy": ("sandy",),
    "rocky": ("rocky",),
    "paved": ("paved",),
}
WEATHER = {
    "sunny": ("sunny", "clear"),
    "cloudy": ("cloudy", "overcast"),
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
        ("cloudy", "rainy"), ("cloudy", "snowy"), ("rainy", "snowy"), ("striped", "plaid"), ("brick", "ceramic"),
        ("rocky", "sandy"), ("rocky", "snowy"), ("rocky", "grassy"), ("snowy", "paved"), ("sandy", "grassy"),
        ("metal", "glass"), ("metal", "plastic"), ("paper", "plastic"),
        ("leather", "wood"), ("floral", "striped"),
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
    ("colorful", "plain"), ("decorative", "plain"), ("ornate", "plain"), ("fancy", "plain"), ("striped", "plain"),
    ("floral", "plain"), ("spotted", "plain"), ("fancy", "simple"), ("ornate", "simple"), ("beautiful", "ugly"),
    ("pretty", "ugly"), ("lovely", "ugly"), ("cute", "ugly"), ("gorgeous", "ugly"), ("nice", "ugly"), ("nice", "awful"),
    ("public", "private"), ("rural", "urban"), ("residential", "industrial"), ("commercial", "military"),
    ("shiny", "rusty"), ("shiny", "dull"), ("shiny", "dusty"), ("cluttered", "empty"), ("cluttered", "neat"),
    ("cluttered", "tidy"), ("clean", "messy"), ("neat", "dirty"), ("busy", "deserted"), ("crowded", "deserted"),
    ("distant", "nearby"), ("fake", "real"), ("artificial", "real"), ("delicious", "awful"), ("delicious", "burnt"),
    ("tasty", "burnt"), ("strange", "ordinary"), ("unusual", "ordinary"), ("funny", "serious"), ("angry", "happy"),
    ("professional", "amateur"), ("lush", "barren"), ("lush", "dry"), ("blurry", "clear"), ("elegant", "shabby"),
    ("fresh", "frozen"), ("bare", "leafy"), ("sunny", "dark"), ("flat", "steep"), ("flat", "curved"), ("hairy", "bald"),
    ("healthy", "sick"), ("tired", "lively"), ("sleepy", "alert"), ("electric", "manual"),
    ("adorable", "ugly"), ("little", "teenage"), ("small", "teenage"), ("vintage", "new"), ("antique", "new"), ("ancient", "modern"), ("rustic", "modern"),
)  # fmt: skip

_LIDS = word_set(
    "door window gate laptop umbrella book box suitcase mouth eye drawer cabinet oven refrigerator fridge toilet lid "
    "container shop store shutter curtain blind bag briefcase trunk hood closet cupboard computer jar parasol microwave "
    "luggage dishwasher garage envelope beak jaw notebook magazine newspaper bottle hatch freezer"
)
_HOT = word_set(
    "drink beverage food coffee tea water soup meal pizza sandwich day weather night afternoon morning pan tub"
)
_YOUNG = word_set("boy girl")
_ALIVE = word_set("baby boy girl child kid toddler infant teenager youth")
# Beside which nouns two words are opposites, where they have several senses. The names of each pair are in order.
OPPOSED_OF = {
    ("closed", "open"): _LIDS,
    ("short", "tall"): word_set(
        "man woman boy girl person people guy lady player child kid building tree tower pole giraffe grass skyscraper fence "
        "wall plant structure post bush stack glass vase bottle candle lamp ladder cake horse church clock sign post"
    ),
    ("long", "short"): word_set(
        "hair tail neck table bench train bus leg skirt dress sleeve bread road path rope line stick pole pant pants board "
        "sandwich nose trunk horn beard fur coat leash surfboard hallway fence knife ear boat truck counter scarf cord "
        "carrot walk wall shelf stair fork straw sock jacket row queue"
    ),
    ("cold", "hot"): _HOT,
    ("little", "teenage"): _YOUNG,
    ("small", "teenage"): _YOUNG,
    ("blurry", "clear"): word_set("photo picture image photograph view background shot screen"),
    ("heavy", "light"): word_set("rain traffic snow luggage load bag box coat jacket blanket fog suitcase"),
    ("hard", "soft"): word_set("bed pillow chair cushion mattress surface ground cheese bread"),
    ("bright", "dark"): word_set(
        "room sky light day area kitchen street color colour hallway bathroom background night"
    ),
    ("high", "low"): word_set("wall ceiling shelf fence bridge table bench branch tide step counter"),
    ("old", "young"): word_set(
        "man woman person people lady gentleman couple guy dog cat horse elephant cow tree bear"
    ),
    ("new", "old"): word_set(
        "car truck bus train building house bicycle bike motorcycle boat plane airplane computer laptop television tv phone "
        "chair couch bench table refrigerator stove oven sign church book shoe toilet vehicle clock camera suitcase bridge "
        "barn piano fire hydrant hydrant locomotive engine tractor van airplane jet helicopter kitchen bathroom"
    ),
    ("straight", "curly"): word_set("hair fur tail fries"),
    ("cooked", "raw"): word_set(
        "meat fish chicken vegetable dough pizza egg steak beef carrot broccoli shrimp food bacon"
    ),
    ("fresh", "rotten"): word_set("fruit vegetable apple banana orange carrot broccoli meat fish produce tomato food"),
    ("full", "empty"): word_set("glass plate bowl cup bottle box basket bag container shelf refrigerator tray bucket"),
    ("busy", "empty"): word_set(
        "street road room city airport station highway intersection market restaurant kitchen store sidewalk park "
        "beach lot area mall cafe downtown"
    ),
    ("flat", "steep"): word_set("hill slope roof ground road street mountain ramp"),
    ("flat", "curved"): word_set("surface wall roof screen"),
    ("dark", "sunny"): word_set("day room street road area kitchen hillside field sky"),
    ("fresh", "frozen"): word_set("fruit vegetable broccoli pizza strawberry fish chicken food berry"),
    ("deep", "shallow"): word_set("water bowl dish pan pool river lake"),
    ("rough", "smooth"): word_set("surface road wall stone rock sea water wave"),
    ("calm", "rough"): word_set("sea water ocean lake wave river"),
    ("plain", "patterned"): word_set("shirt dress wall curtain carpet blanket tie rug"),
    ("baby", "adult"): word_set("elephant giraffe zebra bear cow sheep horse dog cat bird duck goat animal lion"),
    ("lower", "upper"): word_set("deck level shelf floor story body lip"),
    ("male", "female"): word_set(
        "player person surfer skier rider tennis skateboarder snowboarder lion duck child athlete"
    ),
    ("dry", "wet"): word_set(
        "dog cat hair ground street road sidewalk pavement floor surface grass sand towel bear horse elephant person"
    ),
}
_OPPOSED_OF = {frozenset(pair): nouns for pair, nouns in OPPOSED_OF.items()}

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


def excluded_beside(word: str, other: str, noun: str) -> bool:
    """Whether what is said to exclude a word does so of a noun (a lemma), in the sense that the words have beside it."""
    if noun in _ALIVE and {"old", "elderly", "young"} & {word, other}:
        return False  # "an old boy" is none
    nouns = _OPPOSED_OF.get(frozenset((word, other)))
    return nouns is None or noun in nouns


def opposed_beside(word: str, other: str, noun: str) -> bool:
    """Whether two words are opposites, and so beside a noun (a lemma)."""
    return opposed(word, other) and excluded_beside(word, other, noun)


def is_size(word: str) -> bool:
    """Whether a word is a size, which any thing may have."""
    found = place(word)
    return found is not None and found.group == "size"


def is_colour(word: str) -> bool:
    """Whether a word is a colour that any painted thing may have."""
    found = place(word)
    return found is not None and found.group == "colour" and found.concept != "blond"
