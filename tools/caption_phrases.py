"""Hand-tagged caption patterns that join the treebank when the bundled tagger is trained.

Treebank English is whole sentences; captions are mostly noun phrases ("a man riding a wave", "close up of
a red sign"), which a tagger trained on sentences alone tends to misread. A *pattern* is a phrase of
``word/TAG`` and of *slots* (a bare tag such as ``NN``), filled by chance from the lists below. All
patterns and lists were written for this purpose.
"""

import random

from pairwright.generators.language.treebank import TreebankSentence

_LISTS = {
    "NN": """man woman boy girl child person baby dog cat horse cow sheep bird elephant bear zebra giraffe bus truck car train bicycle bike
        motorcycle airplane plane boat kite surfboard skateboard snowboard ball bat racket frisbee bench chair couch sofa bed table desk
        toilet sink oven stove microwave refrigerator fridge toaster clock vase laptop computer keyboard mouse phone book scissors teddy
        umbrella bag backpack suitcase tie hat shirt jacket helmet glove pizza cake donut sandwich apple banana orange carrot broccoli bowl
        plate cup glass fork knife spoon bottle street road sidewalk beach ocean water wave field grass park city kitchen bathroom bedroom
        room building house bridge tower window door wall floor fence tree flower plant snow mountain hill sky cloud sign light traffic
        hydrant meter circle square triangle star rectangle ellipse shape object background front court game player skier surfer crowd
        lawn pedestrian outfit asphalt pavement gravel brick concrete cement crosswalk intersection sidewalk curb driveway alley highway
        kid toddler infant adult lady guy teenager girlfriend couple family crowd spectator rider cyclist bicyclist biker skateboarder
        snowboarder batter catcher pitcher umpire golfer chef cook waiter vendor farmer officer soldier fireman worker passenger driver
        puppy kitten pony goat duck goose swan pigeon parrot owl eagle seagull pig rabbit squirrel monkey lion tiger panda calf
        lamb chicken turkey fish lamp candle vase pillow blanket sheet curtain towel rug carpet mat cabinet shelf drawer dresser
        bookcase fireplace television tv monitor screen remote camera tripod radio speaker guitar piano ladder hose bucket basket
        tray pan pot kettle blender dishwasher faucet tub shower mirror toothbrush toothpaste soap napkin straw sugar salt cheese
        bread meat chicken bacon egg rice pasta noodle soup salad sauce tomato onion pepper mushroom lettuce potato cucumber cookie
        pie pastry muffin bagel burger hamburger hotdog burrito taco sushi dessert chocolate cream coffee tea beer wine juice milk
        lemon lime peach pear grape berry strawberry melon pineapple dress skirt suit coat sweater vest uniform costume jersey shoe
        boot sock scarf belt watch necklace ring wig mask pole post tower wagon cart trailer van taxi cab tractor
        jet helicopter ship ferry canoe kayak raft yacht pier dock harbor lake river pond pool waterfall coast shore island forest
        desert meadow valley canyon cliff cave farm barn zoo stadium arena airport runway station platform track rail tunnel church
        castle hotel restaurant bakery cafe store shop market mall office school library museum hospital garage porch balcony roof
        ceiling hallway staircase stair chimney statue fountain monument flag banner poster painting portrait mural graffiti map
        balloon doll toy puzzle puppet frame wire rope chain wheel tire engine hood bumper seat saddle leash collar cage nest
        leaf branch bush hedge vine rose tulip daisy cactus palm sunlight sunset sunrise rain fog shadow night day evening
        air wind fire smoke ice mud dirt dust sand rock stone wood metal plastic leather cotton hair beard mustache face head hand
        arm leg foot nose mouth eye ear tail neck back trunk wing paw horn tusk mane fur hotel trick stunt race parade party
        wedding ceremony birthday dinner breakfast bird tennis soccer football baseball basketball hockey golf
        group bunch pair herd flock picture photo view side top corner counter lap food meal lunch paper box skate ramp""",
    "NNS": """men women boys girls children people dogs cats horses cows sheep birds elephants bears zebras giraffes buses trucks cars
        trains bicycles motorcycles airplanes boats kites surfboards skateboards skis balls benches chairs tables books umbrellas bags
        suitcases hats shirts pizzas donuts sandwiches apples bananas oranges carrots vegetables fruits bowls plates cups glasses forks
        knives bottles streets waves trees flowers plants mountains clouds signs lights circles squares triangles stars shapes players
        skiers surfers kids adults teens riders bikes planes phones laptops computers papers cabinets shelves drawers pillows blankets curtains
        cakes cookies slices pieces fries hotdogs berries strawberries peppers onions tomatoes goats ducks geese puppies kittens kites
        balloons hills clouds rails tables beds boards posts poles lamps walls tiles uniforms outfits costumes gloves shoes boots windows buildings houses toys tracks stairs rocks leaves hands wheels toppings items""",
    "JJ": """red blue green yellow orange purple pink brown black white gray grey large small big little tall short long young old new
        wooden metal round empty full open closed wet dry dirty clean dark bright light colorful striped furry fluffy grassy sandy snowy
        rocky busy crowded tiny huge narrow wide tan blond happy beautiful cute modern vintage double fresh green sunny cloudy rusty""",
    "VBG": """riding standing sitting walking running holding wearing eating drinking playing flying jumping swinging throwing catching
        looking watching lying laying sleeping driving skiing surfing skateboarding swimming grazing parking hanging carrying cutting
        cooking preparing talking smiling posing waiting reading leaning crossing pulling pushing chasing traveling floating resting
        using kicking hitting brushing feeding petting drinking climbing moving performing showing facing""",
    "VBZ": """rides stands sits walks runs holds wears eats drinks plays flies jumps swings throws catches looks watches lies lays sleeps
        drives hangs carries cuts cooks prepares talks smiles poses waits reads leans crosses pulls pushes rests uses kicks hits shows
        surfs skis travels grazes""",
    "VBP": """ride stand sit walk run hold wear eat drink play fly jump look watch lie sleep hang carry talk smile pose wait graze rest
        travel gather""",
    "VBN": """parked filled covered topped made painted seated decorated surrounded stacked lined placed attached tied displayed mounted
        cut sliced cooked dressed shown loaded piled connected equipped""",
    "IN": "on in at near by with under above behind beside over along across against around inside through below",
    "CD": "two three four five six several",
    "DT": "a the a an the some",
}
_WORDS = {tag: words.split() for tag, words in _LISTS.items()} | {"CD": _LISTS["CD"].split()[:-1]}

PATTERNS = """
DT NN VBG DT NN IN DT NN
DT NN VBG IN DT NN
DT JJ NN VBG IN DT NN
DT JJ NN VBG IN DT JJ NN
DT NN VBZ DT NN IN DT NN
DT NN VBZ IN DT NN
DT NN is/VBZ VBG DT NN
DT NN is/VBZ VBG IN DT JJ NN
DT NN is/VBZ VBN IN DT NN
DT NNS are/VBP VBG IN DT NN
DT NNS VBP IN DT NN
NNS VBP DT NN
CD NNS VBG
CD NNS VBG IN DT NN
CD JJ NNS VBG IN DT NN
CD NNS VBP IN DT NN
CD NNS are/VBP VBG DT NN
there/EX are/VBP CD NNS IN DT NN
there/EX is/VBZ DT JJ NN IN DT NN
DT close/JJ up/NN of/IN DT JJ NN NN
DT close/JJ up/NN of/IN DT NN
close/JJ up/NN of/IN DT NN VBN IN NNS
DT close/JJ up/NN view/NN of/IN DT JJ NN
DT group/NN of/IN NNS VBG IN DT NN
DT couple/NN of/IN NNS VBG DT NN
DT bunch/NN of/IN JJ NNS IN DT NN
DT picture/NN of/IN DT NN VBG DT NN
an/DT image/NN of/IN DT NN and/CC DT NN
DT NN and/CC DT NN VBG IN DT NN
DT JJ NN and/CC DT JJ NN
DT JJ and/CC JJ NN VBG IN DT NN
NN and/CC NN IN DT NN
DT JJ NN to/IN the/DT left/NN of/IN DT JJ NN
DT JJ JJ NN to/IN the/DT right/NN of/IN DT JJ JJ NN
DT JJ JJ NN is/VBZ left/JJ of/IN DT JJ NN
DT JJ NN above/IN DT JJ NN and/CC DT JJ NN below/IN DT NN
DT JJ NN next/JJ to/IN DT JJ NN
DT NN sitting/VBG next/RB to/IN DT NN
DT NN VBG on/IN top/NN of/IN DT NN
DT NN VBZ on/IN top/NN of/IN DT NN
DT NN VBG in/IN front/NN of/IN DT NN
DT NN VBN in/IN front/NN of/IN DT NN
CD NNS VBN in/IN front/NN of/IN DT JJ NN
DT NN VBN with/IN NNS and/CC NNS
DT NN VBN IN DT NN next/JJ to/IN DT NN
DT NN that/WDT is/VBZ VBG IN DT NN
DT NN with/IN DT NN VBG IN it/PRP
DT NN VBG his/PRP$ NN
DT NN VBG her/PRP$ NN while/IN VBG IN DT NN
DT NN VBZ his/PRP$ NN while/IN VBG DT NN
DT NN NN VBN IN DT NN
DT NN NN VBG IN DT NN NN
DT JJ NN NN IN DT NN
some/DT NNS and/CC NNS IN DT NN
some/DT people/NNS VBG IN DT NN
many/JJ NNS VBG IN DT NN
several/JJ NNS VBG IN DT JJ NN
DT NN VBG down/IN DT NN
DT NNS VBG down/IN DT JJ NN
DT NN VBG down/RP IN DT NN
DT NN NN and/CC DT NN IN DT NN
DT JJ NN VBN IN NN
NN NN and/CC NN NN IN JJ NN
DT NN looks/VBZ up/RP at/IN DT NN
DT NN VBG up/RP at/IN DT NN
DT very/RB JJ NN VBG IN DT NN
DT NN full/JJ of/IN JJ NNS
DT NN full/JJ of/IN NNS IN DT NN
DT NN made/VBN of/IN NN
DT NN ,/, NN and/CC NN IN DT NN
DT NN ,/, DT NN ,/, and/CC DT NN
NN VBG DT NN IN DT NN
NN IN DT JJ NN
JJ NN VBG IN DT NN
JJ NNS IN DT NN
DT NN of/IN NNS VBG DT NN
DT NN getting/VBG ready/JJ to/TO hit/VB DT NN
DT NN about/JJ to/TO eat/VB DT NN
DT NN trying/VBG to/TO catch/VB DT NN
DT NN 's/POS NN IN DT NN
"""


def _pattern(line: str) -> list[tuple[str, str]]:
    return [(word, tag) for word, _, tag in (part.partition("/") for part in line.split())]


_PATTERNS = [_pattern(line) for line in PATTERNS.strip().splitlines()]


def caption_sentences(count: int, chance: random.Random) -> list[TreebankSentence]:
    """Return ``count`` filled patterns; six in ten end in a period, half start with a capital."""
    return [_fill(chance.choice(_PATTERNS), chance) for _ in range(count)]


def _fill(pattern: list[tuple[str, str]], chance: random.Random) -> TreebankSentence:
    words = [word if tag else chance.choice(_WORDS[word]) for word, tag in pattern]
    tags = [tag or word for word, tag in pattern]
    for at in range(len(words) - 1):
        if words[at] in {"a", "an"}:
            words[at] = "an" if words[at + 1][0] in "aeiou" else "a"
    if chance.random() < 0.5:
        words[0] = words[0].capitalize()
    if chance.random() < 0.6:
        words, tags = [*words, "."], [*tags, "."]
    joined = {",", ".", "'s"}
    spaces = [after not in joined for after in words[1:]] + [False]
    return TreebankSentence(tuple(words), tuple(tags), tuple(spaces))
