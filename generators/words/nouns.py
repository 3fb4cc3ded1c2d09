"""What pairwright knows of the nouns of captions: kinds, frames, people, things without a plural.

`KINDS` are groups of nouns of which one thing is only one: what is a dog is no cat. They come before WordNet's
co-hyponyms as replacements, since WordNet knows no pictures (its nearest neighbours of a *pizza* are not what stands on
tables). Members that may be said of the same thing are sorted out by `synonyms.reword_each_other`. A noun may stand in
several kinds.

`FRAMES` are nouns that speak of the picture, of parts or of amounts ("a close up", "the side", "a group of"); changing
them changes nothing that can be seen for sure, so they are never edited. `OF_PEOPLE` are persons: they are only
replaced through `KINDS`, since most words for people can be true of one person at once (a man, a surfer, a father).
"""

from pairwright.generators.words.wordlists import word_set

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
    "tennis player|baseball player|soccer player|basketball player|golfer",
    "tennis game|baseball game|soccer game|basketball game", "soccer match|boxing match",
    "video game|board game|card game", "skate board|surf board|snow board", "batter|pitcher|catcher|umpire|goalie",
    "tennis court|basketball court|soccer field|baseball field", "tennis ball|soccer ball|football|basketball",
    "bench|fire hydrant|mailbox|parking meter|statue|fountain|picnic table|trash can",
)  # fmt: skip

# What may stand where the first noun stands; not meant the other way round.
_INSTEAD_OF = (
    "airport: beach|park|farm|stadium", "airplane: kite|bird|balloon|bus|truck|train|boat", "baby: dog|cat", "backpack: umbrella|camera|guitar|box",
    "bag: box|bucket|bottle|umbrella", "ball: frisbee|kite|balloon|book|umbrella|stick|banana|car|wall|dog",
    "baseball bat: tennis racket|umbrella|broom|guitar", "baseball field: tennis court|beach|street|parking lot",
    "basket: box|bowl|bucket|bag|drawer", "bat: racket|golf club|hockey stick", "bathtub: sink|toilet|bed|fireplace",
    "cake: pizza|sandwich|salad|watermelon|steak", "street corner: beach|field|forest|bridge", "harbor: street|field|desert|parking lot",
    "jumbo jet: helicopter|bus|truck|boat|kite|bird|balloon", "duffel bag: chair|box|umbrella|guitar", "tag: flower|ribbon|button",
    "railway station: airport|park|beach|parking lot", "mountain peak: bridge|building|lighthouse", "step: bench|rail|rock|table",
    "ribbon: cake|pizza|rope", "wire: tree|roof|fence", "robe: coat|dress|suit", "cone: bench|tree|barrel", "post: tree|bench|statue",
    "savannah: street|beach|parking lot|forest", "savanna: street|beach|parking lot|forest", "swamp: street|beach|desert",
    "clock face: mirror|painting|flag", "freezer: oven|sink|dishwasher", "living room: kitchen|bathroom|bedroom|office|garage|restaurant",
    "baseball team: soccer team|football team", "soccer team: baseball team|football team", "duck: dog|squirrel|seagull|swan|cat",
    "picture frame: lamp|clock|television", "ram: horse|cow|dog|pig", "ski pole: umbrella|flag|bag|guitar", "coin: ring|key|button",
    "board: umbrella|bicycle|box|kite|bag|chair", "beach: runway|park|forest|desert|street|mountain|kitchen|parking lot|airport|farm|stadium|river",
    "bear: elephant|lion|monkey|zebra", "bed: couch|table|bench|desk|chair|car|suitcase", "beer: wine|coffee|juice|milk",
    "bicycle: motorcycle|car|horse|skateboard", "bike: car|horse|scooter|skateboard",
    "bird: cat|squirrel|dog|butterfly|plane", "birthday cake: pizza|sandwich|salad",
    "blanket: pillow|laptop|newspaper", "boat: bus|truck|car|train", "bottle: cup|bowl|vase|plate|box",
    "bowl: cup|bottle|basket|box|jar", "box: bag|basket|suitcase|bucket", "branch: roof|rock|fence|pole|wire",
    "bread: fruit|rice|cheese|meat", "building: bridge|statue|mountain|tent", "bus: train|truck|boat|airplane|car|motorcycle|horse",
    "cabinet: shelf|bed|couch", "candle: flower|lamp|vase", "cap: scarf|mask|wig",
    "carrot: apple|tomato|potato|banana", "cart: truck|boat|bicycle|car", "cattle: sheep|people|deer",
    "ceiling: table", "cellphone: camera|book|wallet|laptop|toothbrush|banana|cup", "cell phone: camera|book|laptop|remote control|wallet|banana|cup|toothbrush", "pizza: cake|fruit|soup|bread", "refrigerator: bed|fireplace|television|couch",
    "chair: table|bed|couch|desk|bench|dresser|bookshelf|lamp",
    "cheese: butter|jam|cream|bacon|ham|sausage|chicken|beef|rice|pasta|soup", "chicken: beef|bacon|ham|sausage|shrimp",
    "shop: church|school|barn|house|office", "boarder: skier|swimmer|cyclist", "mug: plate|bowl|bottle|vase|box",
    "turkey: beef|bacon|ham|sausage|salad", "tennis match: soccer match|boxing match|soccer game|baseball game|basketball game",
    "city: beach|forest|desert|farm",
    "clock: mirror|painting|calendar|lamp|flag|television|window|bell|statue", "clock tower: church|bridge|lighthouse|statue|windmill|fountain",
    "cloud: bird|kite|balloon", "coat: dress|apron|robe", "coffee table: bed|desk|bench",
    "computer: television|printer|lamp", "controller: phone|camera|book|toothbrush", "couch: table|desk|bench",
    "counter: bed|chair|couch|table", "court: beach|field|street|parking lot", "cow: horse|sheep|pig|goat",
    "cup: plate|bowl|bottle|vase|box", "curtain: mirror|painting|towel", "desk: bed|couch|bench",
    "desktop: laptop|television|printer", "dessert: salad|soup|sandwich|pizza", "dining table: bed|couch|desk|bench",
    "dirt: snow|sand|grass|ice", "dock: roof|street|bridge|hill", "doll: book|ball|balloon|kite",
    "donut: sandwich|apple|banana|pizza", "door: gate|curtain", "doughnut: sandwich|apple|banana|cookie|pizza",
    "dress: suit|uniform|costume", "egg: tomato|potato|mushroom|apple", "elephant: giraffe|horse|cow|camel",
    "enclosure: street|kitchen|parking lot|boat", "eye: tail", "fence: bench|tree|bush|car", "field: beach|street|forest|desert|parking lot",
    "fire hydrant: mailbox|parking meter|stop sign|bench|trash can", "fireplace: television|bed|sink",
    "intersection: beach|forest|field|park|parking lot", "street sign: fire hydrant|mailbox|billboard|statue|flag|clock", "road sign: fire hydrant|mailbox|statue|flag|clock", "tree branch: fence|roof|rock|wire|pole", "goose: dog|cow|sheep|cat", "sea gull: dog|cat|squirrel|crab", "arrow: star|heart|flower", "jersey: dress|jacket|coat|hat",
    "park bench: fire hydrant|mailbox|statue|fountain|picnic table", "palm tree: building|statue|pole|fountain",
    "wedding cake: pizza|sandwich|salad|pie", "market: beach|park|farm|stadium", "slope: beach|street|field|bridge|roof|parking lot",
    "furniture: luggage|food", "trailer: boat|bus|tractor|train", "jetliner: helicopter|bus|truck|boat|kite|bird",
    "flag: banner|kite|balloon", "floor: bed|table|couch|bench", "flower: cactus|mushroom|leaf|candle",
    "forest: beach|desert|street|parking lot|kitchen", "fridge: oven|sink|dishwasher|fireplace",
    "frisbee: ball|kite|balloon|stick", "fruit: vegetable|bread|candy|cheese",
    "garden: street|beach|kitchen|parking lot", "giraffe: elephant|zebra|lion|camel", "glass: plate|bowl|vase|pot",
    "glove: shoe|hat|sock|bat", "grass: sand|snow|mud|dirt|gravel|concrete", "guy: lady",
    "hat: scarf|tie|glove|backpack|watch", "hay: grass|sand|snow|mud", "helmet: crown|wig|mask",
    "hill: beach|street|bridge|roof", "home: church|barn|store|school", "horse: cow|sheep|dog|camel",
    "hot dog: pizza|sandwich|salad|donut|banana", "hotdog: pizza|sandwich|salad|taco|donut",
    "house: church|barn|castle|tent|tower", "jacket: dress|apron|robe|costume",
    "jet: helicopter|train|bus|truck|boat|kite|bird|balloon", "keyboard: mouse|speaker|phone|camera|lamp",
    "kite: frisbee|ball|balloon|umbrella|flag|bird|airplane", "kitten: puppy|rabbit|duckling", "lake: mountain|road|field|forest",
    "lamb: calf|puppy|piglet", "lamp: clock|vase|television|mirror",
    "laptop: phone|television|camera|printer|radio|book", "laptop computer: book|camera|television|phone",
    "leaf: flower|feather|stone", "luggage: furniture|trash|food|hay|fruit|clothing", "meter: mailbox|bench|tree|statue",
    "microwave: toaster|blender|coffee maker", "mirror: painting|clock|television|computer|lamp|car|tree|building",
    "monitor: lamp|printer|speaker|clock", "motorcycle: car|bicycle|horse|truck|boat",
    "mountain: beach|bridge|building|lake|river", "mouth: paw", "necktie: scarf|hat|necklace",
    "newspaper: book|magazine|laptop|phone", "noodle: potato|bean|carrot", "nose: tail|tongue|paw",
    "ocean: desert|forest|field|mountain|street|pool|parking lot", "pan: basket|bottle|cup|box",
    "park: beach|parking lot|zoo|stadium|kitchen|street|forest|desert", "parking lot: beach|field|forest|park",
    "parking meter: fire hydrant|mailbox|bench", "path: beach|river|roof|bridge",
    "phone: camera|book|wallet|laptop|toothbrush|banana|cup", "hand: pocket|bag|purse", "knife: pen|brush|phone|bottle", "pillow: blanket|book|towel",
    "plane: train|bus|boat|helicopter|truck|kite|bird|balloon|car|motorcycle|bicycle", "plant: lamp|clock|book|statue|bottle",
    "plate: basket|box|pan", "platform: roof|beach|bridge|bed", "pole: tree|bench|statue|fence",
    "police officer: firefighter|soldier|farmer", "pool: street|field|parking lot|garden",
    "pot: plate|bottle|box|basket", "produce: candy|furniture|clothing", "puppy: kitten|rabbit|piglet",
    "purse: camera|book|umbrella", "racket: bat|frisbee|kite|umbrella", "racquet: bat|frisbee|kite|umbrella",
    "rail: bench|ramp|rock", "rain: snow|fog", "ramp: bench|wave|hill",
    "remote: phone|book|camera|pen|mouse", "restroom: kitchen|bedroom|garage|office",
    "river: road|bridge|mountain|forest", "road: river|bridge|beach|forest|field", "rock: branch|log|bench|fence|box",
    "rug: bed|couch|bench", "runway: beach|river|field", "sand: snow|grass|mud",
    "sandwich: pizza|salad|cake|donut|soup", "sauce: cheese|sugar|butter", "scissors: glasses|goggles|tongs",
    "seat: table|bed", "sheep: cow|horse|goat|pig|dog", "shelf: bed|chair|couch|car|sink",
    "shirt: dress|skirt|hat|scarf|jacket", "shoe: hat|glove|sock|shirt", "shore: street|hill|bridge|roof",
    "shower: toilet|sink|fireplace|bed", "sidewalk: roof|beach|bridge",
    "sign: clock|mirror|flag|mailbox|book|balloon", "sink: toilet|stove|bed|fireplace|bathtub",
    "ski: skateboard|sled|bicycle|horse|motorcycle", "snow: sand|grass|mud|dirt|gravel|water", "sofa: table|desk|bed|bench",
    "station: park|forest|garage|beach", "stick: ball|frisbee|rope|umbrella", "stone: branch|log|bench|box",
    "stop sign: traffic light|fire hydrant|billboard|mailbox|parking meter|flag|bench|tree", "stove: refrigerator|sink|bathtub|fireplace|bed|couch",
    "street: beach|field|forest|bridge|river|park|parking lot", "street light: tree|flag|clock", "stuffed animal: doll|book|pillow",
    "suit: dress|costume|robe", "suitcase: box|bicycle|guitar|chair",
    "surf board: skateboard|bicycle|boat|kayak", "surfboard: skateboard|snowboard|boat|canoe|horse|bicycle|sled", "table: chair|bed|bench|couch|stove|refrigerator|car|boat|truck", "tail: paw|trunk",
    "taxi: bus|truck|motorcycle|ambulance", "teddy bear: doll|toy car|balloon|ball|puppet|cat|dog|book|pillow",
    "television: computer|mirror|painting|clock|fireplace", "tennis ball: frisbee|baseball|balloon",
    "tennis court: beach|baseball field|street|parking lot", "tennis racket: baseball bat|frisbee|umbrella|broom",
    "tennis racquet: baseball bat|frisbee|umbrella|broom", "tie: scarf|necklace|hat",
    "toilet: bathtub|shower|bed|refrigerator|stove", "tomato: onion|mushroom|olive|pepper|cheese|carrot|apple|egg",
    "toothbrush: phone|fork|pen|banana|toy", "towel: pillow|curtain|blanket", "tower: bridge|church|statue|fountain|barn|house|tree",
    "toy: book|shoe|bottle|plate", "track: road|bridge|beach", "train track: road|bridge|beach", "railroad track: road|bridge|beach",
    "traffic light: stop sign|billboard|clock|fire hydrant|flag", "train: bus|truck|boat|airplane",
    "train station: airport|park|beach|parking lot", "tray: basket|box|bag|bucket",
    "tree: building|statue|pole|fountain", "truck: bus|train|boat|car|motorcycle", "trunk: tail",
    "tub: sink|toilet|bed|shower", "tv: computer|mirror|painting|clock|fireplace",
    "umbrella: camera|book|flag|balloon|bag|kite|guitar", "uniform: dress|costume|robe", "vase: bottle|bowl|lamp|clock|basket",
    "vegetable: fruit|cookie|donut|egg|candle", "video game: book|movie|newspaper", "wall: fence|tree|curtain|door|car|box",
    "wave: hill|boat|ramp|horse", "window: fireplace|staircase|television|painting|lamp", "wine: beer|coffee|juice|water|milk",
    "wine glass: plate|bowl|vase|candle", "yard: beach|street|kitchen|parking lot",
    "zebra: giraffe|elephant|lion|cow|deer", "zoo: street|beach|kitchen|parking lot",
    "screen: window|mirror|painting", "bush: bench|rock|fence|car", "container: vase|book|candle|lamp",
    "fry: carrot|grape|cookie|olive", "meat: fruit|cake|candy|ice cream", "graffiti: snow|grass|flower",
    "tile: grass|carpet|snow", "engine: boat|bus|tractor|helicopter",
    "pasture: beach|street|desert|parking lot|kitchen", "van: bus|train|boat|motorcycle|tractor", "tent: car|boat|house|bench",
    "curb: beach|bench|roof|bed", "town: beach|forest|desert|farm", "wheel: horn|basket|flag",
    "pastry: sandwich|pizza|apple|salad", "bun: apple|bowl|cone", "tarmac: beach|grass|river|field",
    "blender: toaster|microwave|lamp|clock", "soup: salad|pizza|cake|fruit", "urinal: bathtub|shower|bed|stove",
    "ship: train|bus|truck|airplane", "highway: beach|river|field|bridge", "rice: fruit|salad|bread|bean",
    "trail: beach|river|street", "desert: beach|forest|street|lake", "cage: box|car|basket|tent", "roof: bench|car|bed|bridge",
    "pond: street|field|desert|mountain", "fish: bird|rabbit|pizza|salad",
    "hillside: beach|street|parking lot|roof", "gate: bench|statue|tree", "wing: tail|wheel|propeller",
    "wagon: boat|truck|bus|bicycle", "sunglasses: mask|hat|scarf", "lift: boat|bus|bridge", "leash: skateboard|bicycle|blanket",
    "sailboat: bus|truck|train|helicopter", "pier: street|roof|bed|field", "dresser: couch|table|bed|bench",
    "stadium: beach|forest|farm|kitchen|park", "deck: beach|street|bed|roof", "wetsuit: dress|costume|robe|apron",
    "bull: horse|sheep|pig|dog|goat", "calf: lamb|puppy|kitten", "napkin: plate|book|newspaper",
    "bucket: basket|vase|box|suitcase", "bookshelf: bed|couch|fireplace", "microphone: phone|camera|banana|bottle",
    "balloon: kite|ball|flower|umbrella", "rope: stick|chair|towel", "canoe: bus|car|truck|train", "stool: bed|couch|table",
    "tourist: soldier|farmer|clown", "bath tub: bed|sink|fireplace|couch", "bathroom sink: bathtub|shower|bed",
    "kitchen counter: bed|couch|bench", "kitchen table: bed|couch|bench", "stop light: fire hydrant|billboard|flag",
    "corn dog: donut|banana|sandwich|taco", "jet ski: bicycle|horse|motorcycle|skateboard", "ski lift: bus|boat|bridge",
    "ski slope: beach|street|field", "snow bank: bench|beach|bridge", "city bus: train|boat|truck|taxi",
    "tour bus: train|boat|truck|taxi", "school bus: train|boat|truck|taxi", "passenger train: bus|boat|truck|airplane",
    "fighter jet: helicopter|kite|bird|balloon", "passenger jet: helicopter|bus|train|boat",
    "gas station: beach|church|farm|park", "game controller: book|banana|toothbrush|camera|cup|umbrella",
    "wii controller: book|banana|toothbrush|camera", "wii remote: book|banana|toothbrush|camera", "surf: sand|snow|grass",
    "surfer: swimmer|skier|snowboarder|skateboarder|dog", "sticker: button|flower|ribbon", "doorway: tree|car|window|tent",
    "apartment: barn|church|tent|restaurant", "parachute: kite|balloon|bird|airplane", "man: woman|baby", "woman: man|baby",
    "mouse: banana|phone|book|camera", "monkey: dog|cat|bear|bird", "cheese pizza: salad|sandwich|cake|burger",
    "pepperoni pizza: salad|sandwich|cake|burger", "polar bear: penguin|elephant|dog|lion", "brown bear: dog|horse|lion|elephant",
    "black bear: dog|horse|lion|elephant", "grizzly bear: dog|horse|lion|elephant",
    "mountain bike: horse|motorcycle|skateboard|scooter", "dirt bike: horse|bicycle|skateboard|scooter",
    "baby elephant: giraffe|horse|cow|zebra|lion", "baby giraffe: elephant|horse|cow|zebra|lion",
    "water bottle: camera|book|phone|banana", "hair dryer: phone|banana|camera|toothbrush",
    "tooth brush: phone|banana|camera|fork", "bath towel: pillow|blanket",
    "toilet seat: chair|window|mirror", "bed frame: couch|bench", "window sill: couch|bed|bench", "bus stop: beach|park|church",
    "stove top: bed|couch|table", "baseball cap: scarf|tie|crown", "baseball glove: umbrella|book|frisbee",
    "computer monitor: mirror|lamp|painting", "computer mouse: banana|phone|book", "computer keyboard: guitar|book|piano",
    "computer desk: bed|couch|bench", "computer screen: window|mirror|painting", "office chair: bed|couch|bench",
    "television screen: window|mirror|painting", "entertainment center: fireplace|bed|piano", "coffee cup: plate|bowl|vase",
    "coffee mug: plate|bowl|vase", "coffee maker: lamp|vase|clock", "cutting board: plate|towel|newspaper",
    "paper plate: towel|book|basket", "dinner plate: bowl|basket|tray", "chocolate cake: pizza|salad|sandwich|burger",
    "ice cream: soup|salad|pizza", "french fry: carrot|grape|cookie", "orange juice: milk|coffee|wine",
    "train car: bus|truck|boat|airplane", "bathroom mirror: painting|clock|television|lamp", "drink: sandwich|book|flower|candle",
)  # fmt: skip

# What nearly every scene, person or vehicle has, said or not: never written as something that is not there.
EVERYWHERE = word_set(
    "floor wall window door ground ceiling sky light air wheel tire head face hair hand arm leg foot eye ear nose body"
)

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
    "pet wild outdoors room place thing herd flock sunlight daylight sun body gadget device contraption kite-flying dozen thing family team player rider other crowd lady's"
)

# Where things are, rather than what is there: they do not change places with what is in them.
SURROUNDINGS = word_set(
    "street road field grass beach water ocean sea lake river sky bathroom kitchen bedroom room restroom yard park "
    "city town snow sand hill mountain slope court forest wood sidewalk runway highway track airport station zoo dirt "
    "shore pond path area grassland land ground floor parking lot garden harbor wall world country air background "
    "ceiling office restaurant stadium museum hallway market village pavement walk savannah tarmac"
)

# What has no underside and no inside: nothing is under a wall or outside a field.
OPEN_PLACES = word_set(
    "street road field grass beach ocean sea sky hill mountain slope snow sand dirt shore path ground floor land area "
    "world country air wall ceiling track grassland court yard side way corner background rain sun light distance "
    "middle highway runway sidewalk desert city town background leash phone ramp lawn pavement tarmac curb"
)

# What somebody who tells of a picture would not pass over, so that silence speaks against it. With "a" before it.
ADDABLE = tuple(
    noun.replace("_", " ")
    for noun in """
    dog cat horse cow sheep elephant giraffe zebra bear goat pig rabbit monkey duck parrot squirrel camel swan
    kitten puppy lamb bird bus truck train motorcycle bicycle boat airplane helicopter tractor scooter trolley
    carriage canoe sailboat umbrella kite frisbee skateboard surfboard snowboard sled balloon guitar piano
    drum laptop camera newspaper doll teddy_bear couch tennis_racket baseball_bat suitcase ladder tent flag
    pizza sandwich burger hot_dog cake cookie donut pie salad pancake taco waffle cupcake muffin bagel
    croissant banana apple pineapple watermelon pear lemon carrot pumpkin candle vase teapot fireplace statue
    fountain fire_hydrant parking_meter stop_sign mailbox windmill lighthouse clock bench waterfall wheelchair
    stroller basket bucket crown robot snowman birdcage hammock telescope trophy wagon toddler clown bride
    firefighter policeman circle square triangle star heart cross
    """.split()  # noqa: SIM905 - read and mended as a list of words
)

# What a picture may also have in view, beside `ADDABLE`. Captions pass it over where it belongs (a sink in a kitchen, a
# road under a bus), so it is called absent only where the pool hardly ever has it in such company (`rules/adding_objects.py`).
IN_VIEW = tuple(
    noun.replace("_", " ")
    for noun in """
    bed sink toilet bathtub stove oven refrigerator fridge television computer desk keyboard ball bat racket racquet ramp
    fence cell_phone cellphone phone knife fork spoon cup bowl plate tray pan glass bottle lamp book blanket pillow box bag
    backpack remote controller bridge house church barn tower clock_tower traffic_light street_sign van taxi
    jet plane bike seagull giraffe flower towel mirror rug carpet toothbrush hill mountain river lake ocean beach field
    street road park forest garden parking_lot sidewalk pool cliff dock pier runway highway playground tunnel platform
    strawberry tomato potato onion egg chicken broccoli sausage burrito brownie toaster blender microwave printer
    dresser bookshelf crib tractor ship canoe kayak raft chandelier ceiling_fan palm_tree christmas_tree
    soccer_ball tennis_ball wine_glass coffee_cup coffee_mug mug pitcher jar basketball football staircase escalator
    billboard gate cabin shed gazebo pond stream wave desert kitchen bathroom bedroom living_room office restaurant
    zoo airport train_station market store shop library museum tennis_court baseball_field soccer_field shower
    table counter
    """.split()  # noqa: SIM905 - read and mended as a list of words
)

# Drawn in a plane, where what is under another may be beside it as well.
FIGURES = word_set("circle square triangle star heart cross rectangle diamond oval hexagon pentagon shape")
# Who is in a coat wears it.
WORN = word_set(
    "shirt jacket coat suit dress uniform hat cap costume sweater vest skirt pants jeans shorts wetsuit outfit clothes "
    "clothing gear attire tie robe apron hoodie t-shirt blouse bikini swimsuit trunk sunglasses glasses helmet glove shoe "
    "boot sock sandal sneaker slipper sweatshirt cardigan blazer goggles scarf mask top tuxedo pajamas overalls underwear tutu kimono jersey"
)

# What may be said to be in the air.
FLYING = word_set(
    "airplane plane jet helicopter aircraft kite bird seagull pigeon eagle duck butterfly balloon frisbee airliner flag ball "
    "parachute drone goose owl parrot glider"
)

OF_PEOPLE = word_set(
    "man woman boy girl guy lady gentleman person people male female bride groom king queen mother father son daughter "
    "husband wife brother sister baby infant toddler teenager surfer skier snowboarder skateboarder cyclist "
    "motorcyclist soldier policeman firefighter doctor chef clown farmer batter catcher pitcher umpire player rider "
    "waiter waitress friend student worker officer driver spectator fan pedestrian tourist kid child adult"
)
# Of whom "his" or "her" tells which, and of whom a group may hold the other one.
SEXED = word_set(
    "man woman boy girl guy lady gentleman male female bride groom king queen mother father son daughter husband wife "
    "brother sister waiter waitress person people friend child kid adult baby infant toddler"
)
# Words that tell of which sex somebody is, as written.
MALE = word_set("man men guy guys gentleman gentlemen male males boy boys he him his himself")
FEMALE = word_set("woman women lady ladies female females girl girls she her hers herself")
GATHERINGS = word_set(
    "people couple group family crowd persons children kids friends others adults pair team them they players guys "
    "everyone both men women boys girls"
)
PEOPLE = OF_PEOPLE | GATHERINGS
# What a dictionary takes for a person or an animal, and hardly any caption does.
LIFELESS = word_set(
    "trick stunt monitor controller lush fry trailer feeder poster comforter hood star metropolitan conveyor conveyer maker "
    "catch gourmet quiche cutter maroon peach crumb planter divider tier processor hind tart kiwi bleacher topper charger mount "
    "macaroni pacifier checker contemporary pop tick poop sucker wader brownie snoot grind roaster booster plunger "
    "fireball shaker rocker amazon broad cobbler opener replacement stacker floater ottoman para beef wheeler decadent "
    "jack punk poke protector neutral white red diamondback stripper bumper blinker dresser roller sleeper beater "
    "scraper peeler grater loafer pumper oyster mussel sardine help trot cutlet"
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
