"""What a hard negative may say that somebody does, instead of what the caption says.

`INSTEAD` names, for the lemma of a verb, others that cannot be done by the same one with the same thing at the same
moment: who rides a horse does not lead it, who holds a ball does not kick it. Left out is whatever only shades the
meaning ("look" and "stare"), goes together ("eat" and "hold", "sit" and "rest", "sniff" and "eat"), comes right before
or after it and looks the same in a picture ("fly" and "land", "walk" and "run"), or may be done with another thing of
the same name ("wear" and "hold"). Which of them fits the doer, the object and the preposition is for the pool to say
(`rules/relating.py`).

`PARTICIPLES` does the same for participles whose opposite has another form: a parked bus is not driving. `SAME` are
verbs that captioners use of the same act; a mention of one counts as a mention of all. The tables are our own.
"""

from functools import lru_cache

from pairwright.generators.language.inflection import inflect
from pairwright.generators.words.wordlists import word_set

_FORMS = ("VB", "VBG", "VBZ", "VBD", "VBN")


def _table(*lines: str) -> dict[str, tuple[str, ...]]:
    entries = (line.partition(": ") for line in lines)
    return {verb: tuple(others.split("|")) for verb, _, others in entries}


INSTEAD = _table(
    "sit: stand|lay|walk|run|jump|kneel|travel|race", "stand: sit|lie|lay|run|jump|swim|sleep|kneel",
    "walk: sit|lie|lay|swim|sleep|jump|ride|drive|ski|skate|feed|wash|carry|chase",
    "run: sit|lie|lay|sleep|swim|graze|stand|ride|wait", "lie: stand|walk|run|jump|swim|play|graze",
    "lay: stand|walk|run|jump|swim|play", "jump: sit|lie|lay|sleep|kneel|stand|walk",
    "sleep: fly|walk|run|jump|eat|play|stand|swim|graze", "kneel: run|jump|walk|lie|swim|stand",
    "squat: lay|stand|run|jump|lie|walk", "rest: run|walk|jump|fight|play|stand", "crouch: lay|stand|run|jump|lie|walk",
    "hold: wear|drop|throw|kick|ride|bury|catch|hit|walk|wash|build|sell|buy|push|pull",
    "carry: wear|ride|throw|kick|wash|drive|fly|sell|drop|pull|push|walk|lead", "wear: hold|carry|wash|sell|buy|drop|fold",
    "ride: hold|carry|push|pull|wash|feed|lead|fix|chase|drop|watch|walk|run|paint|load|milk",
    "play: watch|sleep|work|swim", "fly: sit|stand|swim|perch|carry|park|walk|crash|drop|fold|drive|build",
    "eat: sell|throw|chase|wash|sleep|cook|prepare|bake|make|buy|serve|sniff",
    "drive: push|wash|pull|load|paint|walk|park", "watch: play|ride|chase|kick|feed|throw|fight",
    "graze: sleep|run|swim|fight|lie|lay|jump|play|sit", "ski: snowboard|walk|skateboard|sled|swim|drive",
    "snowboard: ski|walk|swim", "skateboard: walk|surf|swim|ski|bike|drive",
    "surf: walk|ski|fish|skateboard|sit", "swim: lay|walk|surf|fly|run|climb", "skate: walk|bike|ski|drive",
    "make: eat|sell|buy|throw|break|wear", "take: paint|draw|drop|throw|sell|buy",
    "swing: drop|throw|wash|clean|catch|fix|carry", "hang: fall|stand|lie|sit", "smile: cry|sleep|frown",
    "laugh: cry|sleep|frown", "pull: hold|push|ride|feed|wash|chase|carry|drive", "push: hold|pull|ride|wash|kick|carry|drive",
    "prepare: eat|sell|drop|buy|throw", "use: sell|throw|buy|drop|steal|carry|repair|fix|wash|paint|clean",
    "pose: sleep|run|fight|swim|eat", "cut: throw|wash|sell|bake|drop|eat|decorate|make|paint",
    "slice: bake|throw|wash|drop|eat", "throw: hold|carry|kick|eat|bury|ride|wash|buy", "toss: kick|eat|bury|ride",
    "hit: hold|carry|catch|throw|drop|miss", "talk: sleep|dance|fight|cry|sing", "cook: sell|throw|wash|buy|eat|freeze",
    "bake: eat|sell|throw|buy|decorate", "cross: block|clean|sweep|paint|leave", "drink: spill|sell|pour|swim|buy",
    "feed: chase|ride|wash|kick|milk|lead|carry", "read: write|burn|throw|close|sell|buy", "write: read|erase",
    "serve: catch|eat|drop|cook|buy", "catch: hold|carry|kick|drop|miss|serve", "float: sink",
    "chase: ride|feed|carry|pet|wash|lead", "lead: chase|ride|follow|push|feed|carry|wash|milk",
    "follow: lead|push|ride|feed", "kick: hold|carry|catch|hold|throw|carry", "hug: fight|push|chase|kick",
    "kiss: fight|push|kick|bite", "brush: cut|cover|feed|bite", "wash: paint|throw|sell|eat|ride",
    "clean: paint|throw|sell|eat|break", "climb: descend|ski|paint|leave", "open: close|lock|shut|paint",
    "close: open|paint", "enter: leave|exit|pass", "leave: enter|approach|reach", "load: unload|sell|burn|wash|paint",
    "unload: load|burn", "sail: sink|dock|burn", "work: sleep|dance|swim", "dance: sleep|sit|swim",
    "wait: sleep|swim|fight|ski|jump|run|play|race", "pass: hit|enter|follow", "turn: crash|park",
    "land: park|sail|sink", "travel: park|wait|crash|sink|sit|stand", "move: wait|park|sleep|sit", "fall: climb|stand",
    "paint: wash|break|sell", "fix: ride|break|sell", "lick: chase|kick|throw", "sniff: chase|kick|ride",
    "bite: kiss|wash|feed", "chew: chase|throw|wash|drop|bury", "pet: chase|kick|ride|feed|wash",
    "herd: milk|wash|ride", "pour: drink|freeze|sell", "lift: drop|kick", "drop: catch|hold|lift|carry",
    "mix: eat|throw|sell", "touch: paint|throw|chase", "point: sleep|swim", "buy: sell|eat|throw",
    "sell: buy|eat|throw|burn", "wander: lay|sleep|lie|sit|swim", "roam: sleep|lie|sit|swim", "stroll: sit|lie|sleep|swim",
    "race: rest|sleep|sit|wait", "gallop: graze|stand|lie|sleep|sit", "bathe: sleep|run|fight",
    "fight: sleep|kiss|hug|graze", "gather: swim|sleep", "lean: lay|jump|walk|swim", "perch: lay|fly|swim|walk|fight",
    "pitch: catch|hit|kick|drop", "bat: pitch|catch", "dive: sleep|sit|stand|walk", "row: push|carry|paint",
    "paddle: push|carry", "peek: fall|sleep", "relax: run|fight|jump|work|ski", "lounge: run|fight|jump|work",
    "nap: run|fight|jump|eat", "bend: lie|sleep|swim", "slide: climb|sleep", "show: hide", "display: hide",
    "decorate: eat|throw|burn", "dry: wash|wet|paint", "grind: miss|sleep", "put: burn", "place: throw|burn",
    "stop: race|drive|speed", "speed: wait|park|crash", "approach: leave|exit", "wade: fly|sleep|lie", "try: refuse",
    "attempt: refuse", "come: sleep", "give: steal|throw|hide", "step: sit|lie|sleep|swim", "operate: sell|steal|push",
    "steer: push|pull|wash", "photograph: chase|ride|kick|paint", "snowmobile: walk|ski|swim",
    "sled: walk|ski|snowboard|swim", "bike: walk|swim|skateboard|run", "perform: watch", "do: watch",
    "parasail: swim|ski|walk", "windsurf: swim|walk|ski", "kiteboard: swim|walk|ski", "fish: swim|sleep|ski",
    "shear: feed|chase|ride", "milk: feed|chase|ride", "tie: cut|burn|lose", "comb: cut|cover", "blend: eat|throw",
    "peel: eat|throw|cook", "chop: eat|throw|cook", "spray: drink|kick|paint", "listen: sleep|fight",
    "type: sleep|draw", "study: sleep|burn|throw", "sing: sleep|eat|cry", "celebrate: cry|sleep|fight",
    "cheer: cry|sleep|fight", "splash: sleep|fly", "stretch: run|swim", "yawn: run|eat", "bark: sleep|eat|swim",
    "fetch: drop|hide|eat", "grab: drop|kick|throw", "pick: throw|drop|plant|kick", "plant: pick|cut|eat|burn",
    "balance: fall|sleep", "compete: sleep|rest", "practice: sleep|refuse", "return: miss|catch|drop",
    "tow: wash|paint|push", "drag: ride|push|wash|kick", "look: climb|jump|fall|sleep|swim|drive|ride",
    "stare: sleep|climb|jump|swim", "gaze: sleep|climb|jump|swim", "enjoy: sell|refuse|prepare|buy|cook|make",
    "share: sell|steal|buy|prepare|make|cook", "surround: leave", "reach: sleep|run", "face: leave|chase",
    "board: leave|exit|paint|wash",
)  # fmt: skip

# Of things: a vase does not stand up, but it may fall.
INSTEAD_OF_THINGS = _table(
    "sit: travel|move|race|drive|hang", "stand: fall|travel|drive", "lie: hang|stand",
    "lay: hang|stand", "rest: fall|hang", "fly: sit|park|crash|lie|drive|stand|fall",
    "hang: fall|stand|lie|sit", "float: sink|burn|crash|fly|hang", "go: wait|park|crash|stop", "land: park|sail|sit",
    "drive: park|wait|sit|stop", "travel: park|wait|crash|stop|sit|stand", "move: park|wait|stop|sit",
    "ride: park|wait|stop", "pull: wait|stop|park", "head: park|wait|stop", "take: park|sit|wait", "run: park|wait|sit|stop",
    "come: park|wait", "turn: park|wait", "pass: park|wait|stop", "cross: block", "wait: travel|race|drive|move",
    "stop: travel|race|drive", "lean: fall|hang", "sail: dock|sink|burn",
)  # fmt: skip

# Participles, as written: both may follow "is" or a noun, so each may stand where the other stands.
PARTICIPLES = _table(
    "taking: parked|stopped", "parked: driving|racing|turning|burning", "docked: sailing|sinking|racing", "moored: sailing|sinking|racing",
    "anchored: sailing|sinking|racing", "seated: standing|walking|running", "stopped: driving|racing|turning",
    "perched: flying|swimming|walking", "driving: parked|stopped", "traveling: parked|stopped|waiting",
    "travelling: parked|stopped|waiting", "moving: parked|stopped|waiting", "speeding: parked|stopped|waiting",
    "going: parked|stopped|waiting", "sailing: docked|anchored|sinking", "gathered: sleeping|running|scattered",
    "mounted: falling|lying", "stacked: scattered|hidden", "piled: scattered|hidden", "scattered: stacked|piled",
    "curled: standing|running|jumping", "huddled: running|scattered", "crossing: blocking", "closed: open",
    "opened: closed", "lit: unlit|broken", "broken: repaired|intact", "crowded: empty|deserted", "filled: empty",
    "dressed: undressed", "pulling: waiting|parked|stopped", "passing: parked|stopped|waiting",
    "suspended: lying|standing|falling", "arranged: scattered|hidden", "spread: piled|stacked|hidden", "lined: scattered|piled|stacked", "displayed: hidden|buried|burning",
    "served: burned|thrown", "grounded: flying", "grazing: sleeping|running|fighting|lying", "flying: parked|sitting", "driven: parked|towed",
    "covered: uncovered", "painted: unpainted", "rolling: parked|stopped", "hanging: falling|lying|standing",
)  # fmt: skip

# Verbs whose third person is a thing's plural as well: "boys on skis".
SPORTS = word_set("ski snowboard skateboard surf skate sled surfboard bike paddle row")
# Said of nobody without telling of what: "feeding on a horse" is not what was meant.
WITH_OBJECT = word_set(
    "hold carry wear throw kick push pull wash feed lead pet chase catch hit load unload paint sell make cut use buy "
    "steal drop photograph remove adjust reach milk hug kiss bite fix clean break close open follow lift burn hide decorate "
    "watch refuse miss block lose lock shut enter exit leave approach lick smell touch peel chop bake serve give share spill "
    "prepare"
)
# What can be done with whatever the first verb is done with; the pool need not have seen it.
ALWAYS = _table(
    "hold: drop", "carry: drop", "swing: drop|throw", "use: drop", "play: watch", "hit: miss|catch|drop",
    "read: burn|close", "watch: miss", "serve: drop|catch", "ride: wash", "cut: drop", "kick: catch|throw",
    "throw: drop|kick", "catch: drop|miss|kick", "pull: push", "push: pull", "drive: push|pull|wash", "fly: drop|fold",
    "cook: sell|burn", "eat: sell|buy", "prepare: sell|drop", "share: sell|steal",
)  # fmt: skip
ALWAYS_WITH = frozenset(
    {(verb, noun) for verb in ("draw", "paint") for noun in ("picture",)}
    | {("watch", noun) for noun in ("trick", "stunt", "wave")}
)
# Said of the same deed in spite of all: one rides a skateboard by pushing it, who plays a video game watches it, a
# pitcher holds the ball that he throws.
TOGETHER = frozenset(
    {("push", "skateboard"), ("push", "scooter"), ("push", "skate board"), ("pull", "luggage")}
    | {("watch", thing) for thing in ("wii", "video game", "wii game", "nintendo wii", "screen")}
    | {("throw", thing) for thing in ("ball", "baseball", "frisbee", "tennis ball", "football", "pitch", "basketball")}
    | {
        (verb, thing)
        for verb in ("drop", "throw", "chase")
        for thing in ("hand", "child", "baby", "girl", "boy", "sign")
    }
    | {("drop", thing) for thing in ("face", "head", "arm", "mouth")}
    | {("walk", thing) for thing in ("sign", "pitch", "turn", "light", "order", "ride", "signal")}
    | {(verb, "look") for verb in ("throw", "drop")}
    | {("make", thing) for thing in ("face", "smile", "gesture", "sign", "phone", "call")}
    | {("walk", thing) for thing in ("beach", "street")}
    | {("run", thing) for thing in ("race", "horse", "wave")}
    | {("hold", "hand")}
    | {
        (verb, "wave")
        for verb in ("kick", "drop", "throw", "wash", "paint", "pull", "push", "serve", "hold", "carry", "walk")
    }
    | {("carry", thing) for thing in ("passenger", "load", "people")}
)

# What cannot be done meanwhile and takes another preposition: who rides a bike does not walk with it.
IN_WORDS = _table(
    "ride: walk with|pose with|stand with|stand next to|stand near|stand by|wait with|walk by|sit by|sit near|run with",
    "hold: reach for|look for",
    "carry: reach for|look for|wait for|stand on|sit on",
    "eat: play with|pose with|reach for|wait for|walk with|run with",
    "throw: reach for|wait for|jump for|run with|walk with|sit with",
    "swing: pose with|walk with|sit with|stand with",
    "fly: pose with|sit with|reach for|wait for",
    "cut: pose with|wait for|play with|walk with|reach for",
    "slice: pose with|wait for|play with|reach for",
    "catch: wait for|sit with|walk with|look for",
    "hit: pose with|walk with|sit with|look for|wait for|reach for",
    "use: reach for|look for|walk with|sit on|wait for",
    "wear: reach for|play with",
    "play: reach for|look for",
    "hug: walk with|run from|reach for",
    "drive: stand on|stand next to|stand by|pose with|walk by|sit on|stand near|wait for|lean on|stand behind|walk past",
    "pull: sit in|sit on|pose with|ride in|ride on|stand on|sit with",
    "push: sit in|sit on|pose with|ride in|ride on|stand on|sit with",
    "read: reach for|look for|walk with|wait for|pose with",
    "cook: pose with|wait for|reach for",
    "prepare: pose with|wait for|reach for",
    "make: pose with|wait for|reach for",
    "feed: pose with|run with|run from|sit on|ride on",
    "lead: sit on|ride on|sit near|sit by",
    "pet: walk with|run with|ride on|sit on",
    "wash: pose with|ride in|ride on|sit in|sit on|walk with",
    "chase: pose with|sit with|sit near|sit by|sleep near",
    "cross: sit in|stand in|sit on|stand on|stand by|stand near|wait by|sit by|sit near|work on|lie in",
    "watch: play with|run with|ride on|ride in|walk with",
    "kick: sit on|sit with|pose with|wait for|stand on",
    "enjoy: wait for|look for|walk past|reach for",
    "drink: play in|wait for|swim in|reach for|play with",
)
# What can be said of whatever the first verb is said of; the pool need not have seen it before such a noun.
ALWAYS_IN_WORDS = {
    verb: tuple((phrase.partition(" ")[0], phrase.partition(" ")[2]) for phrase in phrases.split("|"))
    for verb, phrases in {
        "hold": "reach for|point at", "carry": "reach for|point at", "eat": "reach for|point at",
        "wear": "reach for", "use": "point at|reach for", "hug": "point at|reach for",
        "swing": "reach for|point at", "kick": "point at|wait for", "cut": "point at|reach for",
        "drink": "reach for|point at", "throw": "point at|reach for", "pull": "point at", "push": "point at",
        "drive": "point at|wait for", "lead": "point at|look for", "feed": "point at|look for", "pet": "look for|point at",
        "bite": "reach for", "chew": "reach for", "play": "look for",
    }.items()
}  # fmt: skip
# What excludes a verb with its preposition, whatever else `INSTEAD` tells of the verb.
INSTEAD_OF_PHRASES = {
    tuple(old.split(" ", 1)): tuple((new.partition(" ")[0], new.partition(" ")[2]) for new in news.split("|"))
    for old, news in {
        "talk on": "look at|reach for|point at|look for", "speak on": "look at|reach for|point at",
        "look at": "talk on", "text on": "talk on", "play on": "talk on", "type on": "talk on",
        "play with": "sit with|sleep with|walk with|look for", "talk to": "walk past|look for|run from",
        "pose with": "play with|run with|walk with", "sit with": "play with", "walk with": "play with|sit with",
        "work on": "point at|sit on", "look in": "sit on|stand on", "climb on": "stand under|sit under|stand next to",
        "lean against": "sit in|stand on|sit on", "lean on": "sit in|stand behind", "jump over": "stand on|sit on|stand next to",
        "dress in": "reach for|look for", "look through": "sit behind",
        "chew on": "reach for|point at|look for", "nibble on": "reach for|look for", "munch on": "reach for|look for",
        "snack on": "reach for|look for", "eat from": "walk past|sleep near", "drink from": "walk past|sleep near|look at", "wait for": "walk past", "pose for": "point at|look at",
        "listen to": "point at|look for|reach for", "cut into": "reach for|point at", "bite into": "reach for|point at",
        "swing at": "wait for", "speak into": "reach for|point at|look for",
    }.items()
}  # fmt: skip
# The same of things, whose participles ("attached to") give way to what such a thing does instead.
INSTEAD_OF_PHRASES_OF_THINGS = {
    tuple(old.split(" ", 1)): tuple((new.partition(" ")[0], new.partition(" ")[2]) for new in news.split("|"))
    for olds, news in {
        "hang from|attach to|mount to|connect to|tie to|hook to": "lean against|lie under|stand next to|sit next to|sit under",
        "hang on|mount on|hang above|hang over|attach on": "lean against|lie under|stand next to|sit under|sit next to",
        "lean against|lean on": "hang from|hang over|stand on|lie under",
        "stack on|place on|set on|pile on|display on|serve on|put on": "lie under|hang over|lean against|sit next to|lie next to",
        "fly over|fly above|fly near|fly by|fly across|fly at|fly past|float over|hover over|soar over": "lie on|sit on|sit near|sit next to|sit by|lie in",
        "place in|set in|display in|put in|stack in": "lie under|sit next to|lie next to|sit behind",
    }.items()
    for old in olds.split("|")
}
# The same of what is driven and flown, which does not stand while it goes.
INSTEAD_OF_PHRASES_OF_VEHICLES = {
    (verb, preposition): tuple(
        (new, where)
        for new, where in (
            ("park", "on"), ("park", "near"), ("park", "by"), ("park", "next to"), ("park", "at"), ("park", "in"),
            ("stop", "on"), ("stop", "at"), ("stop", "by"), ("sit", "on"), ("sit", "at"), ("sit", "by"), ("wait", "at"),
        )
        if where not in {preposition, "on" if preposition == "in" else ""}
    )
    for verb in ("drive", "travel", "go", "move", "ride", "run", "head", "come", "roll", "pass", "speed", "race", "pull")
    for preposition in ("down", "along", "through", "over", "past", "across", "up", "on", "in", "into")
}  # fmt: skip
# ... and the other way round.
INSTEAD_OF_PHRASES_OF_PARKED = {
    (verb, preposition): tuple(
        (new, where)
        for new in ("drive", "travel", "move", "fly", "sail", "ride")
        for where in ("past", "by", "down", "along", "through", "across", "over", "around", "near", "into", "on")
        if where != preposition
        and not (where == "into" and preposition in {"in", "on"})
        and not (where == "on" and new in {"fly", "ride"})
    )
    for verb in ("park", "stop", "dock", "moor", "anchor", "sit", "wait")
    for preposition in (
        "on", "in", "at", "near", "by", "beside", "next to", "in front of", "behind", "outside", "outside of", "alongside",
        "on top of", "on the side of", "inside of", "along", "under", "around", "close to", "between", "inside",
    )
}  # fmt: skip
# The same of verbs with a preposition, before what can be held, worn, eaten or ridden.
OUT_OF_WORDS = _table(
    "sit on: hold|carry|push|pull",
    "stand on: hold|carry|push|pull",
    "lie on: hold|carry",
    "lean on: hold|carry|ride",
    "lean against: ride|carry",
    "reach for: hold|carry|wear|eat|throw|cut",
    "jump on: hold|carry|push",
    "play with: wear|eat|cut|ride",
    "walk with: ride|eat|swing|throw",
    "stand with: ride|swing|throw",
    "stand next to: ride|drive",
    "walk by: ride|hold|drive",
    "ride on: hold|carry|feed|lead|pet|push",
    "sit next to: ride|carry",
    "sit in: push|pull|drive",
    "stand by: ride|drive",
    "stand near: ride|drive",
    "stand behind: ride|drive",
    "stand in front of: ride|drive",
    "walk next to: ride|drive",
    "walk near: ride|drive",
    "pose with: ride|eat|cut|throw|swing",
    "walk past: ride|hold|drive",
    "sit by: ride|drive",
    "sit near: ride|drive",
    "wait for: ride|hold|drive|eat|catch",
    "wait with: ride|throw|swing",
    "surf on: hold|carry",
    "skateboard on: hold|carry",
    "jump over: hold|carry|ride",
    "climb on: feed|ride",
    "sit with: ride|throw|swing",
    "run with: ride|eat|cut",
)
# Done in place: not "down a street".
STANDING = word_set("stand sit pose wait lean lie lay sleep kneel")
# What sends a thing, or somebody, on a way: "throwing a hat | across the room" is not "holding" it across.
SENDING = word_set("throw toss kick hit push pull carry lead ride drive walk run fly chase follow pass serve")
WAYS = word_set("down up along across through over around into toward towards past onto")
_THROWN = word_set("throw toss kick hit pass serve")
# What only machines and people do, as far as captions do not say it of an animal.
STEERED = word_set(
    "drive ride ski snowboard skateboard surf skate sled bike row sail work read write cook bake prepare make sell buy "
    "decorate serve"
)
# Words of games that those who play them watch as well.
ON_SCREEN = word_set(
    "wii video nintendo tv television screen controller remote computer xbox playstation console monitor"
)
# Done on something, and not in the air.
GROUNDED = word_set("walk stand sit kneel lie lay run swim park perch graze sleep ride drive")
# Done on wheels, skis or snow, and not on water.
ON_LAND = word_set("ski skateboard snowboard skate sled bike drive")
# Done on or in these, whatever captions have a preposition before.
DONE_AT = {
    "swim": word_set(
        "water ocean river lake pond pool sea stream body wave surf marsh swamp canal bay harbor tub bathtub"
    ),
    "travel": word_set(
        "bus train plane airplane jet ship boat ferry subway motorcycle bike bicycle carriage canoe raft kayak wagon cart "
        "truck trolley tram helicopter scooter horse elephant camel donkey car van taxi street road highway path sidewalk "
        "alley avenue lane runway track railroad railway trail rail line bridge water ocean river lake sea air sky snow desert "
        "direction group field city country herd traffic"
    ),
}
# Done on foot, and so by nobody who is on or in what carries him.
ON_FOOT = word_set("walk run jump wander stroll graze")
# Too heavy for whoever is said to sit in it to be pushed, pulled or carried by one.
HEAVY = word_set("car truck bus van train airplane plane jet boat ship helicopter")
# Said in two words; both give way ("lying down" is not "standing down").
WITH_PARTICLE = {
    "down": word_set("sit lie lay kneel crouch squat"), "up": word_set("hold stand sit lift raise line light"),
    "around": word_set("walk run wander roam play stand sit lie lay"), "out": word_set("walk spread"), "off": word_set("take"),
}  # fmt: skip

SAME = tuple(
    frozenset(group.split())
    for group in (
        "throw toss pitch hurl", "eat chew munch graze bite nibble dine", "walk stroll stride wander hike march roam",
        "travel move drive head speed", "run race jog gallop sprint rush charge", "lie lay recline sleep rest nap lounge",
        "sit seat perch squat crouch kneel", "hold carry grip grasp grab", "look watch stare gaze view observe peer",
        "ride cycle bike pedal", "pull drag tow haul", "push shove", "cut slice carve chop", "cook bake grill fry prepare make",
        "wash clean bathe rinse scrub", "fly soar hover glide", "jump leap hop", "talk speak chat", "pet stroke touch rub",
        "fix repair", "catch grab", "swing hit bat strike", "stop park wait", "lead guide", "close shut", "swim wade paddle",
        "fight wrestle", "kick", "photograph shoot", "fall drop tumble crash", "laugh smile", "follow chase", "smell sniff",
        "burn", "sell offer", "hide cover", "remove take",
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def forms_of(verb: str) -> frozenset[str]:
    """Return every form of a verb and of those that captioners use of the same act."""
    group = {verb}.union(*(group for group in SAME if verb in group))
    return frozenset(inflect(member, tag) for member in group for tag in _FORMS)


def keeps_its_way(old: str, new: str, beyond: str) -> bool:
    """Whether the word after what a deed is done to goes with another deed as well: "a racket | at a ball"."""
    if beyond in WAYS:
        return new in SENDING or old not in SENDING | {"swing"}
    return not (beyond == "at" and old == "swing" and new != "throw") and not (
        beyond == "to" and old in _THROWN and new not in _THROWN
    )


@lru_cache(maxsize=4096)
def same_act(one: str, other: str) -> bool:
    """Whether captioners may use the two verbs of the same act."""
    return one == other or any(one in group and other in group for group in SAME)
