"""What a hard negative may say that somebody does, instead of what the caption says.

`INSTEAD` names, for the lemma of a verb, others that cannot well be done by the same one with the same thing at the
same moment: who rides a horse does not lead it, who holds a ball does not kick it. Verbs that only shade the meaning
("look" and "stare") or that go together ("eat" and "hold") are not set against each other. Which of them fits the
doer, the object and the preposition is for the pool to say (`relating.py`).

`PARTICIPLES` does the same for participles whose opposite has another form: a parked bus is not driving. `SAME` are
verbs that captioners use of the same act; a mention of one counts as a mention of all. The tables are our own.
"""

from functools import lru_cache

from pairwright.generators.language.inflection import inflect
from pairwright.generators.wordlists import word_set

_FORMS = ("VB", "VBG", "VBZ", "VBD", "VBN")


def _table(*lines: str) -> dict[str, tuple[str, ...]]:
    entries = (line.partition(": ") for line in lines)
    return {verb: tuple(others.split("|")) for verb, _, others in entries}


INSTEAD = _table(
    "sit: stand|lie|walk|run|jump|swim", "stand: sit|lie|run|jump|swim|sleep|kneel",
    "walk: sit|lie|run|swim|sleep|jump|ride", "run: sit|lie|sleep|swim|stand|graze", "lie: stand|walk|run|jump|play",
    "lay: stand|walk|run|jump|play", "jump: sit|lie|sleep|kneel|walk", "sleep: stand|walk|run|play|eat|jump",
    "kneel: stand|run|jump|walk|lie", "squat: stand|run|jump|lie", "rest: run|walk|jump|fight|play",
    "crouch: stand|run|jump|lie", "hold: wear|ride|throw|kick|catch|drop|chase|fly|hit|wash|push|pull|cook|feed|lead",
    "carry: ride|wear|throw|kick|push|pull|eat|wash|drive|fly|use|feed|sell",
    "wear: hold|carry|throw|wash|sell|buy|remove|adjust",
    "ride: hold|carry|push|pull|wash|feed|lead|pet|fix|watch|chase|park|drop",
    "play: watch|sleep|fight|eat|work", "fly: land|sit|stand|swim|perch|hold|carry|park|walk|crash",
    "eat: cook|cut|sell|throw|chase|wash|sniff|sleep|serve|drink|carry", "drive: push|wash|pull|park|load|paint|walk",
    "watch: play|ride|chase|kick|feed|throw|fight", "graze: sleep|run|lie|swim|fight|sit|drink",
    "ski: snowboard|walk|climb|skateboard|sled|swim|run", "snowboard: ski|walk|climb|run|swim",
    "skateboard: walk|bike|surf|run|swim|ski", "surf: swim|sail|walk|ski|run|fish", "swim: walk|stand|surf|sit|fly|run",
    "skate: walk|bike|ski|run|sit", "make: eat|sell|cut|throw|serve|break", "take: paint|draw|drop|throw",
    "swing: drop|throw|carry|wash|clean|catch|fix", "hang: fall|stand|float|lie", "smile: cry|sleep|frown",
    "laugh: cry|sleep|frown", "pull: push|ride|feed|wash", "push: pull|ride|carry|wash|kick",
    "prepare: eat|throw|sell|drop|refuse", "use: fix|sell|throw|buy|clean|drop|carry|wash|steal",
    "pose: sleep|run|fight|swim|ski|surf|eat", "cut: eat|bake|carry|throw|wash|make|decorate|sell",
    "slice: eat|bake|carry|throw|wash", "throw: catch|hold|kick|eat|carry|hit", "toss: catch|hold|kick|eat|carry|hit",
    "hit: catch|throw|drop|miss|hold|kick|serve", "talk: sleep|eat|swim|ski|surf|step",
    "cook: eat|sell|throw|wash|serve|buy", "bake: eat|sell|cut|throw|buy", "cross: block|clean|leave|sweep|paint",
    "drink: pour|spill|swim|eat|sell|bathe", "feed: chase|ride|milk|wash|kick|photograph|lead|pet",
    "read: write|burn|throw|close|sell", "write: read|erase", "serve: catch|eat|drop|cook|hold|hit",
    "catch: throw|kick|drop|hit|serve|eat", "float: sink|fly|stand|land", "chase: lead|ride|feed|carry|pet|follow",
    "lead: chase|ride|follow|feed|wash|push", "follow: lead|chase|pass|push", "kick: catch|hold|throw|carry|hit",
    "hug: fight|push|chase|kick|hit|feed", "kiss: fight|push|kick|hit|feed|bite", "brush: cut|wash|dry|cover|feed",
    "wash: paint|throw|sell|eat|ride|fix", "clean: paint|throw|sell|eat|break|ride", "climb: descend|ski|leave|paint",
    "open: close|lock|shut|paint", "close: open|paint", "enter: leave|exit|pass", "leave: enter|approach|reach",
    "load: unload|sell|burn", "unload: load|burn", "sail: sink|dock|fly|burn", "work: sleep|play|dance|swim",
    "dance: sleep|eat|sit|swim|work", "wait: run|sleep|swim|fight|ski|jump", "pass: hit|enter|leave|follow",
    "turn: crash|stop|park|wait", "land: fly|park|crash|sail", "travel: park|wait|stop|crash|sink",
    "move: wait|stop|park|sleep", "fall: climb|stand|hang|sit", "paint: wash|break|sell|clean", "fix: ride|break|sell",
    "lick: chase|kick|carry|feed|throw", "sniff: eat|chase|carry|drop|bite", "bite: kiss|wash|feed|lick",
    "chew: chase|throw|carry|wash|drop", "pet: chase|ride|feed|wash|kick|milk|lead", "herd: feed|milk|follow|wash",
    "pour: drink|spill|freeze|sell", "lift: drop|push|kick|throw", "drop: catch|hold|lift|carry", "mix: eat|throw|sell",
    "touch: kick|paint|throw|chase", "point: walk|run|sleep|jump", "enjoy: sell|throw|refuse|make",
    "share: sell|throw|steal|make", "buy: sell|eat|throw|make", "sell: buy|eat|throw|burn", "push: pull|ride|carry",
    "wander: sleep|lie|sit|stand|swim", "roam: sleep|lie|sit|swim", "stroll: run|sit|lie|sleep|swim",
    "race: rest|sleep|walk|stand|wait", "gallop: stand|lie|sleep|walk|sit", "bathe: sleep|eat|run|fight",
    "fight: sleep|kiss|hug|eat|graze", "gather: run|swim|sleep|fight", "lean: jump|run|walk|lie",
    "perch: fly|swim|walk|eat|fight", "pitch: catch|hit|kick|drop", "bat: pitch|catch|slide", "dive: sleep|sit|stand|walk",
    "row: push|sail|carry|paint", "paddle: push|sail|carry|sit|stand", "peek: jump|fall|climb",
    "relax: run|fight|jump|work|ski", "lounge: run|fight|jump|work|stand", "nap: run|fight|jump|play|stand|eat",
    "bend: sit|lie|run|jump", "slide: climb|sit|sleep|stand", "spin: stop|fall|stand", "show: hide|sell|steal|break",
    "display: hide|sell|break", "contain: block|miss", "decorate: eat|cut|throw|sell", "dry: wash|cut|wet|paint",
    "blow: smell|paint|clean", "grind: sit|miss|sleep", "roll: stop|break|sit", "put: throw|drop|hide|cut|eat",
    "place: throw|drop|cut|eat|burn", "stop: race|drive|turn|speed", "speed: wait|stop|park|crash", "approach: leave|pass",
    "wade: fly|sleep|lie|sit", "try: refuse|fail",
    "go: wait|stop|park|sleep", "come: wait|stop|sleep", "give: steal|throw|sell|hide",
    "reach: run|sleep|spit", "step: sit|lie|sleep|swim", "face: leave|block|eat", "overlook: block|leave",
    "operate: fix|sell|clean|steal", "steer: push|fix|wash|pull", "photograph: chase|feed|ride|kick|paint",
    "snowmobile: walk|ski|swim", "sled: walk|ski|snowboard|swim", "bike: walk|run|swim|skateboard",
    "attempt: refuse|miss", "perform: watch|miss|refuse", "do: miss|watch|refuse", "get: give|throw|sell|lose",
    "parasail: swim|ski|walk", "windsurf: swim|walk|ski", "kiteboard: swim|walk|ski", "fish: swim|sleep|ski|sing",
    "shear: feed|chase|wash|ride", "milk: feed|chase|wash|ride", "tie: cut|burn|lose", "comb: cut|wash|pull|cover",
    "blend: eat|spill|throw", "peel: eat|throw|cook|wash", "chop: eat|throw|cook|wash", "spray: drink|kick|paint",
    "listen: dance|sleep|shout|fight", "type: sleep|sit|draw|spill", "study: sleep|burn|throw", "sing: sleep|eat|cry",
    "celebrate: cry|sleep|fight", "cheer: cry|sleep|fight", "splash: sleep|lie|fly", "stretch: run|sit|sleep",
    "yawn: run|eat|bark", "bark: sleep|eat|swim", "fetch: drop|hide|chew|eat", "grab: drop|kick|throw|eat",
    "pick: throw|drop|plant|kick", "plant: pick|cut|eat|burn", "balance: fall|sit|sleep", "compete: sleep|rest|eat",
    "practice: watch|sleep|refuse", "return: miss|hold|drop|catch", "tow: wash|paint|push", "drag: ride|push|wash|kick",
)  # fmt: skip

# Of things: a vase does not stand up, but it may fall.
INSTEAD_OF_THINGS = _table(
    "sit: fall|hang|float|roll|fly|burn", "stand: fall|hang|float|lean|roll|burn", "lie: hang|float|fly|stand|roll",
    "lay: hang|float|fly|stand|roll", "rest: hang|float|fall|fly|roll", "fly: land|sit|park|crash|float|lie",
    "hang: fall|stand|lie|float", "float: sink|hang|burn|fly", "go: wait|stop|park|crash", "land: fly|park|crash",
)  # fmt: skip

# Participles, as written: both may follow "is" or a noun, so each may stand where the other stands.
PARTICIPLES = _table(
    "parked: driving|racing|turning|burning", "docked: sailing|sinking|racing", "moored: sailing|sinking|racing",
    "anchored: sailing|sinking|racing", "seated: standing|walking|running|sleeping", "stopped: driving|racing|turning",
    "perched: flying|swimming|walking", "driving: parked|stopped", "traveling: parked|stopped|waiting",
    "travelling: parked|stopped|waiting", "moving: parked|stopped|waiting", "speeding: parked|stopped|waiting",
    "going: parked|stopped|waiting", "sailing: docked|anchored|sinking", "gathered: fighting|sleeping|running|dancing",
    "mounted: falling|lying|leaning", "stacked: scattered|hanging|hidden", "piled: scattered|hanging|hidden",
    "scattered: stacked|piled", "curled: standing|running|jumping", "huddled: running|scattered|sleeping",
    "crossing: blocking|leaving", "closed: open", "opened: closed", "lit: unlit|broken",
    "broken: repaired|intact", "crowded: empty|deserted", "filled: empty", "dressed: undressed",
    "pulling: waiting|parked|stopped", "passing: parked|stopped|waiting", "running: parked|stopped",
    "suspended: lying|standing|falling", "placed: hanging|hidden|burning",
    "arranged: scattered|hidden", "lined: scattered|hidden", "displayed: hidden|buried|burning", "served: burned|thrown",
    "covered: surrounded", "surrounded: covered", "topped: surrounded", "fenced: empty", "grounded: flying",
    "grazing: sleeping|running|fighting", "hanging: falling|lying|standing", "set: burning|hidden", "left: hidden|burned",
    "stuffed: covered|surrounded", "wrapped: surrounded|hidden", "attached: thrown|leaning", "loaded: surrounded|covered",
)  # fmt: skip

# Said of nobody without telling of what: "feeding on a horse" is not what was meant.
WITH_OBJECT = word_set(
    "hold carry wear throw kick push pull wash feed lead pet chase catch hit load unload paint sell make cut use buy "
    "steal drop photograph remove adjust milk hug kiss bite fix clean break close open follow lift burn hide decorate "
    "refuse miss block lose lock shut enter exit leave approach lick smell touch peel chop bake serve give share spill"
)
# What can be done with whatever the first verb is done with; the pool need not have seen it.
ALWAYS = _table(
    "hold: drop|throw|clean", "carry: drop|throw", "wear: hold|carry|wash", "swing: drop|throw|clean", "use: clean|drop",
    "play: watch", "hit: miss|catch|drop", "read: burn|throw|close", "watch: miss|ignore", "take: draw", "serve: drop|catch",
    "ride: wash|clean|push", "cut: drop|throw", "kick: catch|throw|miss", "throw: catch|drop|kick", "catch: drop|miss|kick",
    "pull: push", "push: pull", "drive: push|pull|wash", "fly: carry|drop|fold", "cook: throw|burn|sell", "eat: throw|sell|drop",
    "prepare: throw|sell|drop", "make: throw|sell|drop",
)  # fmt: skip
# Said of the same deed in spite of all: one rides a skateboard by pushing it.
TOGETHER = frozenset(
    {("push", "skateboard"), ("push", "scooter"), ("hold", "horse"), ("pull", "luggage"), ("hold", "child")}
)

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


@lru_cache(maxsize=4096)
def same_act(one: str, other: str) -> bool:
    """Whether captioners may use the two verbs of the same act."""
    return one == other or any(one in group and other in group for group in SAME)
