"""What pairwright knows of the nouns of captions: kinds, frames, people, things without a plural.

`KINDS` are groups of nouns of which one thing is only one: what is a dog is no cat. They come before WordNet's
co-hyponyms as replacements, since WordNet knows no pictures (its nearest neighbours of a *pizza* are not what stands on
tables). Members that may be said of the same thing are sorted out by `synonyms.reword_each_other`. A noun may stand in
several kinds.

`FRAMES` are nouns that speak of the picture, of parts or of amounts ("a close up", "the side", "a group of"); changing
them changes nothing that can be seen for sure, so they are never edited. `OF_PEOPLE` are persons: they are only
replaced through `KINDS`, since most words for people can be true of one person at once (a man, a surfer, a father).
"""

from pairwright.generators.wordlists import word_set

# Each excludes every other of its group.
_GROUPS = (
    "dog|cat|horse|cow|sheep|elephant|giraffe|zebra|bear|goat|pig|rabbit|monkey|lion|tiger|deer|camel|donkey|panda",
    "bird|squirrel|cat|dog|rabbit|mouse|frog|turtle|butterfly|lizard",
    "duck|seagull|parrot|pigeon|owl|eagle|chicken|peacock|flamingo|penguin|turkey", "man|woman", "boy|girl",
    "gentleman|lady", "bride|groom", "king|queen", "mother|father", "son|daughter", "male|female", "husband|wife",
    "brother|sister", "waiter|waitress", "surfer|skier|snowboarder|skateboarder|cyclist|motorcyclist",
    "soldier|policeman|firefighter|doctor|chef|clown|farmer",
    "car|bus|truck|train|airplane|boat|motorcycle|bicycle|helicopter|tractor",
    "apple|banana|orange|pear|lemon|strawberry|grape|pineapple|peach|mango|watermelon|melon|kiwi|cherry",
    "broccoli|cauliflower|spinach|asparagus|cabbage|corn|celery|lettuce",
    "carrot|tomato|potato|onion|cucumber|pepper|mushroom|pea|bean|olive|radish",
    "pizza|sandwich|burger|salad|taco|burrito|hot dog|pancake|omelet|steak|sushi",
    "cake|cookie|donut|pie|muffin|croissant|bagel|waffle|cupcake",
    "coffee|tea|beer|wine|milk|juice|water|soda|lemonade",
    "kitchen|bathroom|bedroom|office|living room|garage|classroom|dining room|restaurant|library|hallway",
    "tennis|baseball|soccer|basketball|football|golf|volleyball|hockey|rugby|cricket",
    "skateboard|surfboard|snowboard|bicycle|scooter|sled", "fork|knife|spoon|chopstick",
    "cell phone|camera|book|laptop|remote control|wallet",
    "oven|refrigerator|dishwasher|sink|toaster|washing machine",
    "circle|square|triangle|star|heart|cross|rectangle|diamond|oval|hexagon|pentagon",
    "cube|sphere|cylinder|cone|pyramid", "guitar|piano|violin|drum|trumpet|flute",
    "church|barn|castle|lighthouse|school|hospital|hotel|bridge",
    "bench|fire hydrant|mailbox|parking meter|statue|fountain|picnic table|trash can", "hand|head|foot|leg|shoulder",
)  # fmt: skip

# What may stand where the first noun stands; not meant the other way round.
_INSTEAD_OF = (
    "backpack: umbrella|camera|guitar|box", "bag: box|bucket|bottle|umbrella", "bat: racket|golf club|hockey stick",
    "beach: forest|desert|street|mountain|kitchen|parking lot|airport|farm|stadium|river",
    "bear: elephant|lion|monkey|zebra", "bed: couch|table|floor|bench", "bike: car|horse|scooter|skateboard",
    "blanket: pillow|laptop|newspaper", "bowl: cup|bottle|basket|box|jar", "box: bag|basket|suitcase|bucket",
    "building: bridge|statue|tree|mountain", "candle: flower|lamp|vase",
    "chair: table|bed|couch|desk|bench|dresser|bookshelf|lamp",
    "cheese: butter|jam|cream|bacon|ham|sausage|chicken|beef|rice|pasta|soup",
    "clock: mirror|painting|calendar|lamp|window", "coat: dress|apron|robe", "computer: television|printer|lamp",
    "couch: table|floor|desk|bench", "counter: bed|floor|chair|couch", "cow: horse|sheep|pig|goat",
    "curtain: mirror|painting|towel", "desk: bed|couch|floor|bench", "dirt: snow|sand|grass|ice",
    "door: window|gate|curtain", "dress: suit|uniform|costume", "elephant: giraffe|horse|cow|camel",
    "fence: bench|tree|bush|car", "field: beach|street|forest|desert|parking lot",
    "fire hydrant: mailbox|parking meter|stop sign|bench|trash can", "flag: banner|kite|balloon",
    "floor: bed|table|couch|bench", "flower: cactus|mushroom|leaf|candle", "giraffe: elephant|zebra|lion|camel",
    "glass: plate|bowl|vase|pot", "glove: shoe|hat|sock", "grass: sand|snow|mud|dirt|gravel|concrete", "guy: lady",
    "hat: scarf|tie|glove|backpack|watch", "helmet: crown|wig|mask", "hill: beach|street|bridge|roof",
    "horse: cow|sheep|dog|camel", "house: church|barn|castle|tent|tower", "jacket: dress|apron|robe|costume",
    "keyboard: mouse|speaker|phone|camera|lamp", "kite: frisbee|ball|balloon|umbrella|flag",
    "kitten: puppy|rabbit|duckling", "lake: mountain|road|field|forest", "lamb: calf|puppy|piglet",
    "laptop: phone|television|camera|printer|radio|book", "microwave: toaster|blender|coffee maker",
    "monitor: lamp|printer|speaker|clock", "mouth: hand|ear|paw", "newspaper: book|magazine|laptop|phone",
    "nose: ear|tail|tongue|paw", "ocean: desert|forest|field|mountain|street", "pan: basket|bottle|cup|box",
    "park: beach|parking lot|zoo|stadium|kitchen", "parking meter: fire hydrant|mailbox|bench",
    "pillow: blanket|book|towel|laptop", "plane: train|bus|boat|helicopter|truck",
    "plate: cup|bottle|pot|vase|basket|jar", "pole: tree|bench|statue|fence", "puppy: kitten|rabbit|piglet",
    "purse: camera|book|umbrella", "rain: snow|fog", "ramp: stair|bench|wave|hill",
    "remote: phone|book|camera|pen|mouse", "river: road|bridge|mountain|forest", "rug: bed|couch|bench",
    "sand: snow|grass|mud", "shelf: floor|bed|chair", "shirt: dress|skirt|hat|scarf|jacket",
    "shoe: hat|glove|sock|shirt", "sidewalk: roof|beach|bridge", "sink: toilet|stove|bed|fireplace|bathtub",
    "ski: skateboard|sled|bicycle", "snow: sand|grass|mud|dirt|gravel|water",
    "stop sign: traffic light|fire hydrant|billboard", "stove: refrigerator|sink|bathtub|fireplace",
    "street: beach|field|forest|bridge|river", "suit: dress|uniform|costume|robe",
    "suitcase: box|bicycle|guitar|chair", "table: chair|bed|floor|bench", "tail: ear|nose|paw",
    "taxi: bus|truck|motorcycle|ambulance", "teddy bear: doll|toy car|balloon|ball|puppet", "tie: scarf|necklace|hat",
    "toilet: bathtub|shower|bed|refrigerator|stove", "tomato: onion|mushroom|olive|pepper|cheese",
    "towel: pillow|curtain|blanket", "tower: bridge|church|statue|fountain",
    "traffic light: stop sign|street sign|street lamp|billboard", "tray: basket|box|bag|bucket",
    "tree: building|statue|pole|fountain", "umbrella: camera|book|flag|balloon|bag", "uniform: dress|suit|costume",
    "wall: fence|tree|curtain", "wave: hill|ramp|rail|bench", "window: door|fireplace|staircase|mirror",
    "wine: beer|coffee|juice", "zebra: giraffe|elephant|lion|cow|deer",
)  # fmt: skip

FRAMES = word_set(
    "picture photo photograph image view close shot scene painting drawing portrait closeup close-up group couple pair "
    "bunch lot number variety kind type piece part side top bottom front back middle center centre end edge corner "
    "background foreground distance left right way row line area set style color colour sort amount array assortment "
    "collection stack pile crowd cluster slice display selection bit inside outside upside day time night daytime "
    "nighttime afternoon morning evening sunset action motion air something someone thing object item shape figure one "
    "other rest body next place position direction use work play fun purpose order ground surface sky design pattern "
    "text word letter name kind size shade light shadow reflection series mix mixture topping ingredient up half dozen "
    "piece section portion arrangement tip rear pose jump trick ride swing look stop turn game match competition event "
    "process preparation store lots person people adult child kid animal vehicle food meal dish dinner lunch breakfast "
    "pet wild outdoors room place thing family team player rider other crowd lady's"
)

OF_PEOPLE = word_set(
    "man woman boy girl guy lady gentleman person people male female bride groom king queen mother father son daughter "
    "husband wife brother sister baby infant toddler teenager surfer skier snowboarder skateboarder cyclist "
    "motorcyclist soldier policeman firefighter doctor chef clown farmer batter catcher pitcher umpire player rider "
    "waiter waitress friend student worker officer driver spectator fan pedestrian tourist kid child adult"
)
GATHERINGS = word_set(
    "people couple group family crowd persons children kids friends others adults pair team them they players guys "
    "everyone both men women boys girls"
)

# Things without a plural, and things without a singular; the pool's own counts decide about the rest.
MASS = word_set(
    "broccoli food grass water snow sand luggage furniture bread fruit meat rice sky cheese butter jam cream bacon ham "
    "beef pasta soup cauliflower spinach asparagus cabbage corn celery lettuce coffee tea beer wine milk juice soda "
    "lemonade mud dirt gravel concrete ice rain fog tennis baseball soccer basketball football golf volleyball hockey "
    "rugby cricket sushi equipment traffic silverware hay wood metal plastic clothing jewelry garbage trash"
)
PLURAL_ONLY = word_set(
    "scissors skis pants jeans shorts trousers glasses sunglasses goggles binoculars tongs pajamas clothes"
)


def _kinds() -> dict[str, tuple[str, ...]]:
    """Return, for each noun, what may stand in its place: its own list first, then the others of its groups."""
    table: dict[str, list[str]] = {}
    for entry in _INSTEAD_OF:
        noun, _, others = entry.partition(": ")
        table[noun] = others.split("|")
    for group in _GROUPS:
        members = group.split("|")
        for noun in members:
            table.setdefault(noun, []).extend(other for other in members if other != noun)
    return {noun: tuple(dict.fromkeys(others)) for noun, others in table.items()}


KINDS = _kinds()
