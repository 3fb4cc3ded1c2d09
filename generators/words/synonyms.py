"""Rewordings that keep a caption true: our own tables of relations, attributes and objects.

A *rewording* maps a word or phrase to others that say the same of the same picture, in the sense that captions use it
in. Where a word has several senses, `only` names the nouns (lemmas) beside which the rewording holds and `never`
those beside which it does not: "old" is "elderly" of people, "big" is not "large" of a brother. The direction counts:
an infant is a baby, but a baby may be an elephant's.

The same tables say what a hard negative may not put in: a word that merely rewords the caption (`reword_each_other`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pairwright.generators.words.attributes import same_concept
from pairwright.generators.words.wordlists import word_set

PEOPLE = word_set("man woman person people lady gentleman couple guy adult citizen")
WEATHERED = word_set("sky day weather afternoon morning evening")
ANIMALS = word_set("dog cat kitten puppy bear sheep rabbit bunny horse pony cow lamb animal")
FOOD = word_set("meat fish chicken vegetable dough pizza egg steak beef carrot broccoli shrimp food")
SLOPES = word_set(
    "hill mountain field slope ground street road hillside mountainside forest park tree roof path landscape"
)


@dataclass(frozen=True, slots=True)
class Rewording:
    """Other words for the same; `only` and `never` are lemmas of the noun beside it, empty for no condition."""

    others: tuple[str, ...]
    only: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()

    def holds_beside(self, noun: str) -> bool:
        """Whether the rewording is right for an attribute of ``noun`` (a lemma)."""
        return noun not in self.never and (not self.only or noun in self.only)

    def holds_between(self, words: Iterable[str]) -> bool:
        """Whether none of the words on the way to the noun makes it a name or one word: "little league players"."""
        return self.never.isdisjoint(words)


RELATIONS = {
    "to the left of": ("on the left of", "left of", "on the left side of", "to the left side of"),
    "on the left of": ("to the left of", "left of"),
    "left of": ("to the left of", "on the left of"),
    "on the left side of": ("to the left of", "on the left of"),
    "to the right of": ("on the right of", "right of", "on the right side of", "to the right side of"),
    "on the right of": ("to the right of", "right of"),
    "right of": ("to the right of", "on the right of"),
    "on the right side of": ("to the right of", "on the right of"),
    "next to": ("beside", "alongside", "adjacent to"),
    "beside": ("next to",),
    "alongside": ("next to", "beside"),
    "near": ("close to",),
    "close to": ("near",),
    "under": ("underneath", "beneath"),
    "underneath": ("under", "beneath"),
    "beneath": ("under", "underneath"),
    "below": ("under", "beneath", "underneath"),
    "above": ("over",),
    "atop": ("on top of",),
    "on top of": ("atop",),
    "inside of": ("inside", "within"),
    "inside": ("inside of", "within"),
    "outside of": ("outside",),
    "in back of": ("behind",),
    "off of": ("off",),
    "toward": ("towards",),
    "towards": ("toward",),
    "along with": ("together with",),
    "together with": ("along with",),
    "across from": ("opposite",),
    "in between": ("between",),
    "amongst": ("among",),
    "among": ("amongst",),
    "in the middle of": ("in the center of",),
    "in the center of": ("in the middle of",),
    "full of": ("filled with",),
    "filled with": ("full of",),
    "covered in": ("covered with",),
    "covered with": ("covered in",),
    "surrounded by": ("encircled by",),
    "larger than": ("bigger than",),
    "bigger than": ("larger than",),
    "a lot of": ("lots of", "plenty of"),
    "lots of": ("a lot of", "plenty of"),
    "adjacent to": ("next to", "beside"),
    "encircled by": ("surrounded by",),
    "in the midst of": ("in the middle of",),
    "at the edge of": ("on the edge of",),
    "on the edge of": ("at the edge of",),
    "on the side of": ("at the side of", "by the side of"),
    "by the side of": ("at the side of", "on the side of"),
    "made out of": ("made of",),
    "made from": ("made of",),
    "looking at": ("gazing at", "staring at"),
    "gazing at": ("looking at",),
    "looks at": ("gazes at",),
    "laying on": ("lying on",),
    "laying in": ("lying in",),
    "lays on": ("lies on",),
    "walking down": ("strolling down",),
    "walking along": ("strolling along",),
    "strolling along": ("walking along",),
    "talking on": ("speaking on",),
    "talking to": ("speaking to",),
}

# A clock on the side of a building hangs on its wall; only what has no such sides has things at its side.
_WAYS = word_set(
    "road street highway sidewalk path trail track lane freeway runway river lake ocean sea beach pool pond "
    "canal pier dock"
)
RELATIONS_BESIDE = {"on the side of": _WAYS, "by the side of": _WAYS}

# Wordings that mean the same only of some things; `only` are the lemmas of the noun after them.
RELATIONS_OF = {
    "on": Rewording(("on top of", "atop"), only=word_set(
        "table desk counter countertop shelf bed couch sofa bench dresser nightstand stove refrigerator roof box stool "
        "pillow blanket ottoman toilet suitcase stack hill elephant")),
    "wearing": Rewording(("dressed in",), only=word_set(
        "shirt suit jacket dress uniform coat costume outfit sweater wetsuit robe tuxedo gown kimono")),
    "dressed in": Rewording(("wearing",), only=word_set(
        "shirt suit jacket dress uniform coat costume outfit sweater wetsuit robe tuxedo gown kimono")),
    "sitting on": Rewording(("seated on",), only=word_set("bench chair couch sofa stool")),
    "sitting at": Rewording(("seated at",), only=word_set("table desk counter bar")),
    "seated on": Rewording(("sitting on",), only=word_set("bench chair couch sofa stool bed")),
    "seated at": Rewording(("sitting at",), only=word_set("table desk counter bar")),
    "by": Rewording(("near", "next to"), only=word_set("window fence wall tree lake river pool door car road fireplace water ocean")),
}  # fmt: skip


def _plain(*others: str, only: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()) -> Rewording:
    return Rewording(others, only, never)


_KIN = word_set("brother sister cat screen bang ben apple break dipper boy girl league")

ATTRIBUTES = {
    "large": _plain("big", never=word_set("body number amount variety part portion majority")),
    "big": _plain("large", never=_KIN),
    "small": _plain("little"),
    "little": _plain("small", never=word_set("brother sister bit girl boy league kid guy")),
    "tiny": _plain("very small"),
    "huge": _plain("enormous", "gigantic"),
    "enormous": _plain("huge", "gigantic"),
    "gigantic": _plain("enormous", "huge"),
    "giant": _plain("gigantic", "enormous", never=word_set("panda schnauzer")),
    "massive": _plain("huge", "enormous"),
    "old": _plain("elderly", only=PEOPLE),
    "elderly": _plain("old", only=PEOPLE),
    "gray": _plain("grey"),
    "grey": _plain("gray"),
    "blond": _plain("blonde"),
    "blonde": _plain("blond"),
    "wooden": _plain("wood", never=word_set("leg")),
    "metal": _plain("metallic"),
    "circular": _plain("round"),
    "round": _plain("circular"),
    "messy": _plain("untidy"),
    "untidy": _plain("messy"),
    "tidy": _plain("neat"),
    "cloudy": _plain("overcast", only=WEATHERED),
    "overcast": _plain("cloudy", only=WEATHERED),
    "snowy": _plain("snow-covered", only=SLOPES),
    "snow-covered": _plain("snowy", only=SLOPES),
    "grassy": _plain("grass-covered", only=SLOPES),
    "beautiful": _plain("lovely"),
    "lovely": _plain("beautiful"),
    "delicious": _plain("tasty"),
    "tasty": _plain("delicious"),
    "yummy": _plain("tasty", "delicious"),
    "cute": _plain("adorable"),
    "adorable": _plain("cute"),
    "closed": _plain("shut"),
    "shut": _plain("closed"),
    "crowded": _plain("packed"),
    "busy": _plain("bustling", only=word_set("street city road market intersection station airport")),
    "empty": _plain("vacant", only=word_set("lot room building seat bench house")),
    "modern": _plain("contemporary"),
    "contemporary": _plain("modern"),
    "numerous": _plain("many"),
    "many": _plain("numerous"),
    "multiple": _plain("several"),
    "several": _plain("multiple"),
    "entire": _plain("whole"),
    "multicolored": _plain("multi-colored"),
    "multi-colored": _plain("multicolored"),
    "colorful": _plain("brightly colored"),
    "lone": _plain("solitary"),
    "solitary": _plain("lone"),
    "gorgeous": _plain("beautiful"),
    "strange": _plain("odd", "weird"),
    "odd": _plain("strange", never=word_set("number pair one")),
    "weird": _plain("strange", "odd"),
    "happy": _plain("cheerful", never=word_set("birthday year holiday anniversary hour")),
    "cheerful": _plain("happy"),
    "sad": _plain("unhappy"),
    "scary": _plain("frightening"),
    "silly": _plain("goofy"),
    "goofy": _plain("silly"),
    "sleepy": _plain("drowsy"),
    "furry": _plain("fuzzy", only=ANIMALS),
    "fuzzy": _plain("furry", only=ANIMALS),
    "chubby": _plain("plump"),
    "plump": _plain("chubby", only=PEOPLE | ANIMALS),
    "slim": _plain("slender"),
    "slender": _plain("slim"),
    "stylish": _plain("fashionable"),
    "fashionable": _plain("stylish"),
    "expensive": _plain("costly", "pricey"),
    "decorative": _plain("ornamental"),
    "ornamental": _plain("decorative"),
    "ornate": _plain("elaborate"),
    "elaborate": _plain("ornate", only=word_set("clock building design frame decoration ceiling tower church")),
    "picturesque": _plain("scenic"),
    "scenic": _plain("picturesque"),
    "foggy": _plain("misty"),
    "misty": _plain("foggy"),
    "sunlit": _plain("sunny"),
    "chilly": _plain("cold", only=WEATHERED),
    "forested": _plain("wooded"),
    "wooded": _plain("forested", only=SLOPES | word_set("area")),
    "rocky": _plain("stony", only=SLOPES | word_set("beach shore")),
    "stony": _plain("rocky", only=SLOPES | word_set("beach shore")),
    "grass-covered": _plain("grassy"),
    "vacant": _plain("empty", "unoccupied"),
    "unoccupied": _plain("empty", "vacant"),
    "deserted": _plain("abandoned", only=word_set("building house car truck boat")),
    "abandoned": _plain("deserted", only=word_set("building house")),
    "uncooked": _plain("raw", only=FOOD),
    "raw": _plain("uncooked", only=FOOD),
    "unripe": _plain("green", only=word_set("banana")),
    "shiny": _plain("gleaming"),
    "gleaming": _plain("shiny"),
    "filthy": _plain("dirty"),
    "grimy": _plain("dirty"),
    "cluttered": _plain("messy", only=word_set("desk room kitchen office table counter bedroom bathroom")),
    "neat": _plain("tidy", only=word_set("room bed desk kitchen bathroom bedroom row")),
    "illuminated": _plain("lit"),
    "lit": _plain("illuminated", never=word_set("area room cigarette candle")),
    "various": _plain("assorted"),
    "assorted": _plain("various", never=word_set("collection group set array mix selection variety assortment lot")),
    "mini": _plain("miniature", never=word_set("van bus fridge skirt cooper")),
    "miniature": _plain("tiny", "mini"),
    "crimson": _plain("red"),
    "scarlet": _plain("red"),
    "violet": _plain("purple"),
    "magenta": _plain("pink"),
    "checkered": _plain("checked"),
    "plaid": _plain("tartan"),
    "unmade": _plain("rumpled", only=word_set("bed")),
    "bustling": _plain("busy"),
    "packed": _plain("crowded", only=word_set("street beach train bus room restaurant stadium subway")),
    "lush": _plain("verdant", only=SLOPES | word_set("grass forest pasture hillside vegetation")),
    "enclosed": _plain("fenced-in", only=word_set("area pen pasture yard field")),
    "rusty": _plain("rusted"),
    "rusted": _plain("rusty"),
    "brand-new": _plain("new"),
    "handmade": _plain("homemade", only=word_set("sign quilt card kite doll")),
    "smiling": _plain("grinning"),
    "grinning": _plain("smiling"),
    "pretty": _plain("attractive", "lovely"),
    "attractive": _plain("pretty", only=PEOPLE),
    "fluffy": _plain("furry", only=ANIMALS),
    "shirtless": _plain("bare-chested"),
    "opened": _plain("open"),
    "vintage": _plain("old", only=word_set("car truck train bus motorcycle plane photo picture photograph suitcase")),
    "antique": _plain("old", only=word_set("car truck train bus motorcycle plane photo picture photograph clock")),
    "golden": _plain("gold", never=word_set("retriever gate lab labrador brown")),
    "blurry": _plain("blurred"),
    "blurred": _plain("blurry"),
    "leafless": _plain("bare", only=word_set("tree branch")),
    "fenced-in": _plain("enclosed"),
    "wood": _plain("wooden", only=word_set("table bench floor desk chair fence door cabinet board surface counter")),
    "metallic": _plain("metal"),
    "tan": _plain("beige", never=_KIN | PEOPLE),
    "beige": _plain("tan"),
    "spotted": _plain("speckled", only=word_set("cow dog cat")),
    "two": _plain("2"),
    "three": _plain("3"),
    "four": _plain("4"),
    "five": _plain("5"),
    "six": _plain("6"),
    "seven": _plain("7"),
    "eight": _plain("8"),
    "nine": _plain("9"),
    "ten": _plain("10"),
    "7": _plain("seven"),
    "8": _plain("eight"),
    "9": _plain("nine"),
    "10": _plain("ten"),
    "2": _plain("two"),
    "3": _plain("three"),
    "4": _plain("four"),
    "5": _plain("five"),
    "6": _plain("six"),
}

# By lemma; a compound is written with a space. The number of the noun is kept by whoever uses the table.
OBJECTS = {
    "couch": ("sofa",),
    "sofa": ("couch",),
    "bike": ("bicycle",),
    "bicycle": ("bike",),
    "motorbike": ("motorcycle",),
    "motorcycle": ("motorbike",),
    "airplane": ("plane", "aeroplane"),
    "aeroplane": ("airplane",),
    "television": ("TV",),
    "tv": ("television",),
    "cell phone": ("mobile phone", "cellphone"),
    "cellphone": ("cell phone", "mobile phone"),
    "mobile phone": ("cell phone",),
    "refrigerator": ("fridge",),
    "fridge": ("refrigerator",),
    "photo": ("photograph",),
    "photograph": ("photo",),
    "donut": ("doughnut",),
    "doughnut": ("donut",),
    "kid": ("child",),
    "child": ("kid",),
    "guy": ("man",),
    "man": ("guy", "gentleman"),
    "lady": ("woman",),
    "woman": ("lady",),
    "automobile": ("car",),
    "car": ("automobile",),
    "trash can": ("garbage can",),
    "garbage can": ("trash can",),
    "laptop": ("laptop computer",),
    "ocean": ("sea",),
    "sea": ("ocean",),
    "infant": ("baby",),
    "luggage": ("baggage",),
    "baggage": ("luggage",),
    "policeman": ("police officer",),
    "fireman": ("firefighter",),
    "hamburger": ("burger",),
    "burger": ("hamburger",),
    "necktie": ("tie",),
    "pants": ("trousers",),
    "trousers": ("pants",),
    "purse": ("handbag",),
    "handbag": ("purse",),
    "store": ("shop",),
    "shop": ("store",),
    "bathtub": ("tub",),
    "bunny": ("rabbit",),
    "rabbit": ("bunny",),
    "lorry": ("truck",),
    "mom": ("mother",),
    "mother": ("mom",),
    "dad": ("father",),
    "father": ("dad",),
    "stair": ("step",),
    "racquet": ("racket",),
    "racket": ("racquet",),
    "sailboat": ("sailing boat",),
    "wetsuit": ("wet suit",),
    "surfboard": ("surf board",),
    "plane": ("airplane",),
    "phone": ("telephone",),
    "kitten": ("kitty",),
    "puppy": ("pup",),
    "cab": ("taxi",),
    "taxi": ("cab",),
    "bush": ("shrub",),
    "shrub": ("bush",),
    "hotdog": ("hot dog",),
    "hot dog": ("hotdog",),
    "skate board": ("skateboard",),
    "skateboard": ("skate board",),
    "snow board": ("snowboard",),
    "snowboard": ("snow board",),
    "surf board": ("surfboard",),
    "bath tub": (
        "bathtub",
        "tub",
    ),
    "stop light": ("traffic light",),
    "traffic light": (
        "stop light",
        "traffic signal",
    ),
    "traffic signal": ("traffic light",),
    "street light": ("street lamp",),
    "street lamp": ("street light",),
    "remote control": ("remote",),
    "laptop computer": ("laptop",),
    "tennis racket": ("tennis racquet",),
    "tennis racquet": ("tennis racket",),
    "stuffed animal": ("stuffed toy",),
    "trash": ("garbage",),
    "garbage": ("trash",),
    "train station": ("railway station",),
    "railway station": ("train station",),
    "jetliner": ("airliner",),
    "airliner": ("jetliner",),
    "person": ("individual",),
    "individual": ("person",),
    "image": ("picture",),
    "gentleman": ("man",),
    "fire hydrant": ("hydrant",),
    "hydrant": ("fire hydrant",),
    "kitty": ("cat",),
    "pup": ("puppy",),
    "veggie": ("vegetable",),
    "vegetable": ("veggie",),
}

# Nouns of two senses: where a caption of the image has one of these words, it may be the other.
OTHER_SENSES = {
    "bike": word_set(
        "motorcycle motorcycles motorcyclist motorcyclists motorbike motorbikes motor motorized motocross moped mopeds "
        "scooter scooters biker bikers dirtbike dirtbikes harley"
    )
    | {"dirt bike", "dirt bikes"},
    "car": word_set(
        "train trains trolley trolleys trolly trollies tram trams locomotive caboose rail railroad railway subway cable "
        "streetcar boxcar boxcars elevator"
    ),
    "cab": word_set("truck trucks trailer trailers semi wheeler rig lorry tractor tractors pickup ford"),
}

# Nouns that captioners use for the same thing, though no dictionary calls them synonyms. Not good enough to write
# (a street need not be a road), but good enough to forbid as each other's negatives.
LOOSELY_SAME = tuple(
    frozenset(word.replace("_", " ") for word in words.split())
    for words in (
        "street road sidewalk roadway highway lane avenue alley intersection pavement way driveway path",
        "field grass lawn pasture meadow park yard garden area ground land grassland plain hillside grassy",
        "ocean sea beach shore water wave lake river bay pond coast sand surf harbor pier dock",
        "hill mountain slope hillside mountainside cliff snow",
        "man guy boy person gentleman people adult male fellow dude child kid teenager youth player rider surfer",
        "man guy person gentleman people adult male businessman fisherman policeman fireman cowboy salesman gent lad",
        "woman girl lady person people adult female child kid teenager youth player rider surfer",
        "woman lady person people adult female businesswoman bride waitress gal",
        "baby infant toddler child kid boy",
        "baby infant toddler child kid girl",
        "boat ship sailboat ferry yacht canoe kayak raft vessel",
        "plane airplane jet aircraft airliner jetliner",
        "car automobile vehicle taxi cab suv van jeep sedan minivan",
        "truck lorry pickup van vehicle trailer semi firetruck",
        "bus trolley tram streetcar van vehicle",
        "train locomotive engine tram trolley subway railway car streetcar",
        "motorcycle motorbike bike moped scooter bicycle cycle",
        "building house tower church skyscraper structure home castle hotel store shop apartment barn",
        "plate dish bowl platter tray saucer pan",
        "cup mug glass bottle jar pitcher container",
        "table desk counter countertop bench stand dresser nightstand shelf surface",
        "chair seat stool bench couch sofa armchair recliner sofas",
        "bed couch sofa mattress futon",
        "computer laptop monitor screen keyboard pc desktop television tv notebook",
        "picture photo photograph image painting drawing portrait shot view",
        "bag purse handbag backpack luggage suitcase suitcases baggage sack",
        "sign billboard poster banner",
        "clock watch tower",
        "cow bull calf ox cattle steer",
        "sheep lamb goat ram",
        "horse pony colt donkey",
        "dog puppy pup canine", "cat kitten kitty feline siamese tabby calico", "statue sculpture figurine",
        "bird pigeon seagull gull dove", "duck goose swan", "eagle hawk falcon",
        "cake pastry dessert pie cupcake", "donut doughnut pastry dessert bagel", "bread bun roll toast loaf",
        "sandwich burger hamburger sub bread bun hotdog toast",
        "food meal dish lunch dinner breakfast snack salad appetizer entree",
        "meat beef pork steak ham", "meat chicken turkey", "sausage bacon",
        "vegetable salad lettuce green",
        "hat cap helmet beanie", "shirt jacket coat sweater top blouse suit vest hoodie t-shirt",
        "shoe boot sneaker sandal", "pant trouser jean short",
        "rug carpet mat blanket towel", "fork knife spoon utensil silverware",
        "oven stove microwave range", "toilet urinal bathroom restroom", "sink tub faucet basin bathtub",
        "tree bush plant flower branch shrub forest wood", "fence gate wall railing",
        "box crate carton container", "carriage cart wagon buggy chariot", "basket container bin", "snowboard ski board", "skateboard board",
        "game match sport play", "bat racket racquet", "phone cellphone telephone smartphone cell_phone",
        "wall floor ceiling", "window mirror", "city town village",
        "airport runway tarmac", "zoo enclosure cage pen", "day night", "rock stone boulder",
    )
)  # fmt: skip


# Of what captioners give in several words: what one calls empty is deserted to another. Comparatives are said of the same.
_ATTRIBUTES_ALIKE = tuple(
    frozenset(words.split())
    for words in (
        "old older elderly aged",
        "young younger",
        "empty deserted vacant unoccupied",
        "tall taller",
        "short shorter",
    )
)


@lru_cache(maxsize=5_000)
def attributes_like(word: str) -> frozenset[str]:
    """Return the attributes that say the same as one, or nearly, itself among them."""
    alike = {word}.union(*(group for group in _ATTRIBUTES_ALIKE if word in group))
    return frozenset(other for each in alike for other in same_concept(each))


def reword_each_other(one: str, other: str) -> bool:
    """Whether two lemmas may be said of the same thing, so that neither is a negative of the other."""
    if one == other or other in OBJECTS.get(one, ()) or one in OBJECTS.get(other, ()):
        return True
    first, second = ATTRIBUTES.get(one), ATTRIBUTES.get(other)
    if (first and other in first.others) or (second and one in second.others):
        return True
    return any(one in group and other in group for group in LOOSELY_SAME)
