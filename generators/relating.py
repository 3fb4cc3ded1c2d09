"""REPLACE a relation: another place, another direction, another deed.

Verbs and prepositions give way to what leaves no room for the original ("on a bench" against "beside a bench", "riding a
horse" against "leading a horse"): `placing.py` and `acting.py` tell by what. Among all that a caption offers, one is
drawn by the odds of captions, so that words come in as often as they go out where there is a choice, and the text runs on
as captions do (`odds.py`).

Last come two rewordings that are false of whatever place or thing, and therefore not to be used more than needed:
taking a thing away ("without") and putting it "far from" where it is. Whoever reads texts alone sees through them.
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.acting import deeds, lives, other_deed, verbs_of
from pairwright.generators.box_truth import place_in_doubt
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, GENDERED, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.having import HAVING_LONGER, UNCERTAIN, belongings, beside_it
from pairwright.generators.nouns import FIGURES, MASS
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.phrasing import other_phrase, phrasings
from pairwright.generators.placing import MEDIA, other_place, places
from pairwright.generators.pronouns import EACH_OTHER, grounds, landed, other_side, pointed_at, times
from pairwright.generators.relation_slots import (
    VERBS,
    RelationSlot,
    before_it,
    is_bound,
    is_named,
    is_place,
    is_worn,
    meant,
    others_there,
)
from pairwright.generators.relations import EVENTS, FAR, NO_PLACE, NOT_FAR, Found
from pairwright.generators.scenes import Scene
from pairwright.generators.wordlists import word_set

_NEVER_FAR = MEDIA | FIGURES | NO_PLACE | EVENTS | {"floor"}
_WITH_A_WAY = word_set("look stare gaze glance climb crawl")
_HAVING = {"with": ("without",), "has": ("lacks", "is without"), "have": ("lack", "are without")}
_SOME = word_set("some several many various multiple numerous")  # "without any", and not "without some"
_AMOUNTS = word_set("lot lots bunch plenty variety assortment array selection number couple pair pile")
_WITHOUT_ANY = {"with": "without any", "has": "is without any", "have": "are without any"}
_HAVING_LONGER_BEGINS = frozenset(words[0] for words in HAVING_LONGER)
_LOOKING = frozenset({"look", "stare", "gaze", "peer"})
_FACES = word_set("ear ears mouth face eye eyes head chest lip lips cheek")
_GONE = word_set("missing without lacks lack lacking removed")
_UP = word_set("up down out on off away inside")  # "their cameras | up taking pictures"
_IN_COMPANY = word_set(
    "talk speak interact mix chat fight compete work do deal help be have fill cover line load wrestle go come end meet"
)
_SHOWN = word_set("show see depict picture display serve")
_NEARLY = frozenset({"half", "almost", "nearly"})
_HURDLES = word_set("hurdle obstacle jump bar rail pole fence hill")
_MEASURES = word_set("very so right just directly straight really too almost out over up down half high low deep")


def replace_relation(
    caption: Caption, candidates: Candidates, rng: Draws, *, last_resorts: bool = True
) -> Iterator[Outcome]:
    """Exchange a preposition or a verb for one that excludes it, or put one in the place of the other.

    Where nothing can be exchanged, ``last_resorts`` deny the relation, which shows: "without", "far from".
    """
    offers = [
        *((slot, other_place) for slot in places(caption, candidates)),
        *((slot, other_deed) for slot in deeds(caption, candidates)),
        *((slot, other_phrase) for slot in phrasings(caption, candidates)),
        *((slot, beside_it) for slot in belongings(caption, candidates)),
        *((slot, other_side) for slot in pointed_at(caption, candidates)),
    ]
    offers = [(_weighed(caption, candidates, slot), maker) for slot, maker in offers]
    unseen = []
    for slot, maker in rng.by_weight(offers, [sum(slot.weights) for slot, _ in offers]):
        seen, rest = _scenes(caption, candidates, slot)
        unseen.append((rest, maker))
        if seen.news:
            yield maker(caption, candidates, seen, rng)
    yield from (_other_way(caption, at) for at in verbs_of(caption))
    yield from _away(caption)
    yield from _apart(caption)
    yield from times(caption, rng)
    yield from landed(caption, candidates)
    yield from grounds(caption)
    yield from (maker(caption, candidates, rest, rng) for rest, maker in unseen if rest.news)
    if last_resorts:
        yield from _last_resorts(caption, candidates, rng)


def _weighed(caption: Caption, candidates: Candidates, slot: RelationSlot) -> RelationSlot:
    """Return a slot whose weights also tell how usual the words around go on with what may be written."""
    old, before = " ".join(caption.lower[slot.start : slot.end]), caption.word(slot.start - 1)
    runs = candidates.odds.of_runs(before, old, slot.news, caption.word(slot.end))
    # Squared, since what reads oddly is to be avoided more than evened out.
    return slot._replace(weights=tuple(weight * run * run for weight, run in zip(slot.weights, runs, strict=True)))


def _scenes(caption: Caption, candidates: Candidates, slot: RelationSlot) -> tuple[RelationSlot, RelationSlot]:
    """Return what of a slot captions have of such things, or deeds, at such a place, and what they do not have."""
    doer, after = slot.doer or before_it(caption, slot.start), caption.starting_at(slot.end)
    following = next((found for found in caption.relations if found.start == slot.end), None)
    beyond = caption.starting_at(following.end) if following is not None else None
    told = candidates.scenes.are_told(
        slot.news,
        slot.lemmas,
        Scene(
            who=caption.head(doer) if doer is not None else "",
            act=caption.lemmas[slot.start - 1] if caption.tag(slot.start - 1) in VERBS else "",
            noun=caption.head(after) if after is not None else "",
            following=" ".join(caption.lower[following.start : following.end]) if following is not None else "",
            beyond=caption.head(beyond) if beyond is not None else "",
        ),
    )
    if all(told):
        return slot, slot._replace(news=())
    seen, unseen = ([at for at, each in enumerate(told) if each is wanted] for wanted in (True, False))
    return _of_them(slot, seen), _of_them(slot, unseen)


def _of_them(slot: RelationSlot, kept: Sequence[int]) -> RelationSlot:
    """Return a slot of which only some may be written."""
    return slot._replace(
        news=tuple([slot.news[at] for at in kept]),
        weights=tuple([slot.weights[at] for at in kept]),
        lemmas=tuple([slot.lemmas[at] for at in kept]) if slot.lemmas else (),
    )


def _last_resorts(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    yield from _without(caption, candidates)
    for found in rng.shuffled(caption.relations):
        each_other = caption.lower[found.end : found.end + 2] in EACH_OTHER
        yield _far_apart(caption, found) if each_other else _far(caption, candidates, found)


def _without(caption: Caption, candidates: Candidates) -> Iterator[Outcome]:
    for at, word in enumerate(caption.lower):
        if word in _HAVING:
            yield _lacking(caption, candidates, at, _HAVING[word])
        elif word == "in":
            yield _undressed(caption, candidates, at)
    for at, word in enumerate(caption.lower):
        for size in (1, 2) if word in _HAVING_LONGER_BEGINS else ():
            if caption.lower[at : at + size] in HAVING_LONGER and (word != "full" or caption.tag(at) == "JJ"):
                yield _lacking(caption, candidates, at, ("without",), size)


def _undressed(caption: Caption, candidates: Candidates, at: int) -> Outcome:
    """Take away what somebody is dressed in ("a man in a hat")."""
    who, worn = caption.ending_at(at), caption.starting_at(at + 1)
    if who is None or worn is None or not is_worn(caption, worn) or not lives(caption, candidates, who):
        return "no_edit"
    return _lacking(caption, candidates, at, ("without",))


def _lacking(caption: Caption, candidates: Candidates, at: int, news: Sequence[str], size: int = 1) -> Outcome:
    """Take away what something is said to have; the last resort, since it reads as a denial."""
    if size == 1 and caption.lower[at - 1 : at + 1] in HAVING_LONGER:
        return "no_edit"  # "stuffed without sauce"
    described = caption.tag(at + size) == "VBN"  # "with | arched doorways"
    after = caption.starting_at(at + size + described)
    had = caption.tag(at - 1).startswith("NN") or (caption.tag(at - 1) in {"WDT", "WP"} and caption.word(at) != "with")
    acts = (
        caption.word(at) == "with"
        and caption.tag(at - 1) in {"VBG", "VBZ", "VBP"}
        and caption.lemmas[at - 1] not in _IN_COMPANY
    )
    shown = caption.word(at) == "with" and caption.tag(at - 1) == "VBN" and caption.lemmas[at - 1] in _SHOWN
    said = had or acts or shown or (size > 1 and caption.word(at - 1) in {"is", "are"})
    new = next((new for new in news if all(map(candidates.usage.is_written, new.split()))), "")
    if after is None or not said or not new:
        return "no_edit"
    thing, amount = meant(caption, after), caption.head(after) in _AMOUNTS
    if amount and thing is not after:
        return _without_any(caption, candidates, (at, thing))
    some = caption.word(after.start) in _SOME
    inside = caption.lower[after.start + some : after.end]
    if (
        not is_named(caption, after)
        or not caption.is_whole(after)
        or not (_SOME | UNCERTAIN).isdisjoint(inside)
        or caption.tag(after.end)[:2] in {"JJ", "RB", "RP"}
        or (caption.word(after.end) in _UP and caption.tag(after.end + 1).startswith("VB"))
        or (size > 1 and caption.word(at - 1) in _NEARLY)  # "half full of"
        or (caption.word(after.end) == "and" and caption.tag(after.end + 1) == "VBG")  # "with a hat and wearing a tie"
        or (some and _goes_on_with_one(caption, after))
        or (caption.word(after.end) == "with" and caption.tag(after.end + 1) == "PRP$")  # "with his left hand"
        or (caption.tag(after.start) == "PRP$" and caption.head(after) in NO_PLACE)  # "with his head in his hands"
    ):
        return "not_grammatical"
    if caption.words.has_any(_GONE):
        return "true_of_image"
    return (caption.change(at, at + size + some, f"{new} any" if some else new),)


def _without_any(caption: Caption, candidates: Candidates, place: tuple[int, NounPhrase]) -> Outcome:
    """Take away what there is a lot of ("with lots of | toys")."""
    at, thing = place
    alone = thing.determiner < 0 and thing.count < 0 and caption.is_whole(thing) and is_named(caption, thing)
    alone = alone and not _goes_on_with_one(caption, thing)
    many = caption.plural(thing) or caption.head(thing) in MASS
    new = _WITHOUT_ANY.get(caption.word(at), "")
    if not (alone and many and new and caption.tag(at - 1).startswith("NN")):
        return "not_grammatical"
    if caption.words.has_any(_GONE):
        return "true_of_image"
    written = all(map(candidates.usage.is_written, new.split()))
    return (caption.change(at, thing.start, new),) if written else "no_candidate"


def _goes_on_with_one(caption: Caption, thing: NounPhrase) -> bool:
    """Whether "any" would not go with what follows: "without any chairs | and a lamp"."""
    return caption.word(thing.end) == "and" and caption.word(thing.end + 1) in {"a", "an", "one", "and"}


def _stands_alone(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase needs no other to be whole: not the "bed" of "in bed"."""
    own = phrase.determiner >= 0 or phrase.count >= 0 or bool(phrase.adjectives)
    return own or caption.plural(phrase) or caption.head(phrase) in MASS


def _is_telegram(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a caption leaves its articles out: "Cat on bed"."""
    return phrase.start == 0 and phrase.determiner < 0 and phrase.count < 0 and not caption.plural(phrase)


def _other_way(caption: Caption, at: int) -> Outcome:
    """Turn the direction of a verb round: "looking down", "climbing up"."""
    new = {"up": "down", "down": "up"}.get(caption.word(at + 1), "")
    follows = caption.tag(at + 2) in {"IN", "TO", "DT", "", ".", "CC"} and caption.word(at + 2) != "of"
    if not new or not follows or caption.tokens[at].lemma not in _WITH_A_WAY:
        return "no_edit"
    return "true_of_image" if caption.words.has(new) else (caption.change(at + 1, at + 2, new),)


def _away(caption: Caption) -> Iterator[Outcome]:
    """Turn somebody away from what he looks out of, or holds to his ear."""
    for at, word in enumerate(caption.lower):
        after = caption.starting_at(at + 1)
        if after is None:
            continue
        head = caption.head(after)
        if word == "out" and caption.lemmas[at - 1] in _LOOKING and head in {"window", "door"}:
            start = at
        elif word == "to" and head in _FACES and not GENDERED.isdisjoint(caption.lower[after.start : after.end]):
            start = at - (caption.word(at - 1) == "up")
        else:
            continue
        if word == "to" and not caption.tag(start - 1).startswith("NN"):
            continue
        said = caption.words.has("away") or not caption.is_whole(after)
        yield "true_of_image" if said else (caption.change(start, at + 1, "away from"),)


def _apart(caption: Caption) -> Iterator[Outcome]:
    """Part what is side by side."""
    for at in range(len(caption.lower) - 2):
        if caption.lower[at : at + 3] == ("side", "by", "side") and caption.word(at + 3) not in {"with", "to", "of"}:
            said = caption.words.has_any(("far", "apart"))
            yield "true_of_image" if said else (caption.change(at, at + 3, "far apart"),)


def _far_apart(caption: Caption, found: Found) -> Outcome:
    """Part what is near each other."""
    if " ".join(caption.lower[found.start : found.end]) not in NOT_FAR - {"against"}:
        return "no_edit"
    return "true_of_image" if caption.words.has("far") else (caption.change(found.start, found.end, FAR),)


def _far(caption: Caption, candidates: Candidates, found: Found) -> Outcome:
    """Put a thing far from the place at which it is."""
    wording, after = " ".join(caption.lower[found.start : found.end]), caption.starting_at(found.end)
    if wording not in NOT_FAR or after is None or caption.word(found.start - 1) in _MEASURES:
        return "no_edit"
    crossed = wording == "over" and caption.head(after) in _HURDLES  # "going over | a hurdle"
    if crossed or not is_place(caption, found.start, after) or is_bound(caption, found.start, found.end):
        return "no_edit"
    noun, before = caption.head(after), before_it(caption, found.start)
    inside = {noun, *caption.lower[after.start : after.end]}
    if before is None or not is_named(caption, before) or noun in _NEVER_FAR or is_worn(caption, after):
        return "no_edit"
    if not ANAPHORS.isdisjoint(inside) or not (_stands_alone(caption, after) or _is_telegram(caption, before)):
        return "not_grammatical"
    if not all(map(candidates.usage.is_written, FAR.split())):
        return "no_candidate"
    doubted = (
        others_there(caption, before, after)
        or caption.words.said_of("far", noun)
        or place_in_doubt(caption.words, caption.head(before), FAR, noun)
    )
    return "true_of_image" if doubted else (caption.change(found.start, found.end, FAR),)
