"""REPLACE a relation by its denial: a thing is taken away ("without"), or put "far from" where it is.

False of whatever place or thing, and for that reason the last resort: whoever reads texts alone sees through it. What is
taken away takes along what is joined to it: "a room without chairs or a table".
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.acting import lives
from pairwright.generators.box_truth import place_in_doubt
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.having import HAVING_LONGER, UNCERTAIN
from pairwright.generators.nouns import FIGURES, MASS
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.placing import MEDIA
from pairwright.generators.pronouns import EACH_OTHER
from pairwright.generators.relation_slots import (
    before_it,
    is_bound,
    is_named,
    is_place,
    is_worn,
    meant,
    others_there,
)
from pairwright.generators.relations import EVENTS, FAR, NO_PLACE, NOT_FAR, Found
from pairwright.generators.wordlists import word_set

_NEVER_FAR = MEDIA | FIGURES | NO_PLACE | EVENTS | {"floor"}
_HAVING = {"with": ("without",), "has": ("lacks", "is without"), "have": ("lack", "are without")}
_SOME = word_set("some several many various multiple numerous")  # "without any", and not "without some"
_AMOUNTS = word_set("lot lots bunch plenty variety assortment array selection number couple pair pile")
_WITHOUT_ANY = {"with": "without any", "has": "is without any", "have": "are without any"}
_HAVING_LONGER_BEGINS = frozenset(words[0] for words in HAVING_LONGER)
_GONE = word_set("missing without lacks lack lacking removed")
_UP = word_set("up down out on off away inside")  # "their cameras | up taking pictures"
_IN_COMPANY = word_set(
    "talk speak interact mix chat fight compete work do deal help be have fill cover line load wrestle go come end meet"
)
_SHOWN = word_set("show see depict picture display serve")
_NEARLY = frozenset({"half", "almost", "nearly"})
_HURDLES = word_set("hurdle obstacle jump bar rail pole fence hill")
_MEASURES = word_set("very so right just directly straight really too almost out over up down half high low deep")


def denials(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Deny what a caption says of things and places."""
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
