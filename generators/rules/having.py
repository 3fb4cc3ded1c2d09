"""What a thing has: put beside it, or near it.

A pizza with cheese is not next to the cheese, and a man in a hat does not hold it. That holds of what is a part of a
thing, in it, on it or worn, as the tables here tell; of what only goes with it ("a man with a dog") nothing is said.
Such a thing is put beside its owner by words that captions use all the time, and so give nothing away.
"""

from collections.abc import Iterator

from pairwright.generators.captions.caption import ANAPHORS, Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    RelationSlot,
    has_none_beside,
    is_named,
    is_worn,
    may_be_others,
    meant,
)
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.lemmas import verb_of_participle
from pairwright.generators.rules.acting import SIDES, lives
from pairwright.generators.words.nouns import OF_PEOPLE, SURROUNDINGS, WORN
from pairwright.generators.words.relations import (
    BESIDE_IT,
    DONE_TO_WORN,
    FOODS,
    HANDLED,
    HOLDERS,
    NO_PLACE,
    PARTS_OF_BUILDINGS,
    POURED,
    TABLES,
    TOPPINGS,
    WITH_PARTS,
)
from pairwright.generators.words.verbs import forms_of
from pairwright.generators.words.wordlists import word_set

# Whoever is said to wear or hold a thing, or what to be full of it, has it.
HAVING_LONGER = frozenset(
    {("wearing",), ("holding",), ("carrying",), ("containing",), ("filled", "with"), ("full", "of"), ("topped", "with")}
    | {
        ("decorated", "with"),
        ("adorned", "with"),
        ("stuffed", "with"),
        ("equipped", "with"),
        ("including",),
        ("featuring",),
    }
    | {
        (state, "with")
        for state in ("cluttered", "packed", "piled", "littered", "laden", "crowded", "dotted", "lit", "furnished")
    }
    | {("garnished", "with"), ("stacked", "with"), ("decorated", "in")}
    | {("covered", "with"), ("covered", "in"), ("loaded", "with"), ("surrounded", "by"), ("lined", "with")}
)
_HAVING = frozenset({"with", "of", "in", "has", "have"})
_BEGINS = _HAVING | {words[0] for words in HAVING_LONGER}
UNCERTAIN = word_set("no all any both each every few other another more most only just")
# Of a holder, and nowhere but on it.
_PARTS = word_set(
    "leg lid handle top side edge wheel drawer rim cover cloth tablecloth design pattern door color topping"
)
# Who is said to be with one, and by nobody to ride, is not on it.
_MOUNTED = word_set("bike bicycle motorcycle horse elephant surfboard scooter motorbike")
_RIDES = (
    frozenset().union(*map(forms_of, ("ride", "surf", "sit", "jump", "drive"))) | word_set("on trick wave rider race")
) - {"bike", "bikes", "bicycle"}  # the thing itself
_DISHES = HOLDERS - TABLES - {"shelf"}  # a table is not next to what is on it: it would have to float
_ON_FOOD = frozenset(
    f"{done} with" for done in ("topped", "covered", "filled", "loaded", "garnished", "stuffed", "decorated")
)
# Nobody is photographed holding the shirt of his own; so only where a caption offers nothing else.
_KEPT_ON = WORN - word_set("hat cap tie glasses sunglasses helmet glove scarf mask goggles jacket coat shoe boot robe")
_SELDOM = 1e-6
_TOUCHED = frozenset({"tie", "hat", "cap"})  # one may hold what one wears
_BUSY = frozenset(DONE_TO_WORN) - {"holding", "carrying"}  # what nobody does who does something else
_TAKEN = frozenset({"hold", "carry"})
_SURROUNDED = ("surrounded", "by")
_FIXED = word_set("inside on up")
_HELD = frozenset({("holding",), ("carrying",), _SURROUNDED})


def belongings(caption: Caption, candidates: Candidates) -> Iterator[RelationSlot]:
    """Yield the words by which a thing is said to have, hold or wear another, whatever else stands in the way."""
    for at, word in enumerate(caption.lower):
        if word not in _BEGINS:
            continue
        size = 2 if caption.lower[at : at + 2] in HAVING_LONGER else 1
        longer = size > 1 or (word,) in HAVING_LONGER
        if not longer and word not in _HAVING:
            continue
        owner, owned = caption.ending_at(at), caption.starting_at(at + size)
        if owner is None or owned is None:
            continue
        owned = meant(caption, owned)
        news = _beside(caption, candidates, " ".join(caption.lower[at : at + size]), owner, owned)
        if news:
            if word in {"has", "have"}:
                news = tuple(f"{'is' if word == 'has' else 'are'} {new}" for new in news)
            weights = candidates.odds.of_places(word, news, caption.head(owned))
            if caption.head(owned) in _KEPT_ON:
                weights = tuple(_SELDOM * weight for weight in weights)
            yield RelationSlot(at, at + size, news, weights)


def _beside(
    caption: Caption, candidates: Candidates, wording: str, owner: NounPhrase, owned: NounPhrase
) -> tuple[str, ...]:
    """Return what excludes that one thing has another."""
    one, other = caption.head(owner), caption.head(owned)
    if one in HOLDERS and wording not in {"in", "has", "have"}:
        return BESIDE_IT if one in _DISHES and other not in _PARTS | POURED else ()
    if wording == "of" or tuple(wording.split()) in _HELD:
        return ()
    if is_worn(caption, owned) and lives(caption, candidates, owner):
        return DONE_TO_WORN
    return () if wording == "in" else _beside_whole(candidates, wording, (one, other))


def _beside_whole(candidates: Candidates, wording: str, things: tuple[str, str]) -> tuple[str, ...]:
    """Return what excludes that a thing is a part of another, in it or in somebody's hand."""
    one, other = things
    upon = wording in _ON_FOOD and one in FOODS and candidates.things.is_of(other, "food")
    wholes = ((FOODS, TOPPINGS), (WITH_PARTS, PARTS_OF_BUILDINGS))
    if upon or any(one in whole and other in parts for whole, parts in wholes):
        return BESIDE_IT
    if wording == "with" and one in OF_PEOPLE and other in _MOUNTED:
        return (*HANDLED, "on")
    handled = wording == "with" and one in OF_PEOPLE and other not in NO_PLACE
    return HANDLED if handled and candidates.usage.has_object("hold", other) else ()


def beside_it(caption: Caption, candidates: Candidates, slot: RelationSlot, rng: RandomStream) -> Outcome:
    """Put beside a thing what it has ("a plate of | food", "a pizza with | cheese", "a man in | a hat")."""
    owner, owned = caption.ending_at(slot.start), caption.starting_at(slot.end)
    if owner is None or owned is None:
        return "no_edit"
    owned = meant(caption, owned)
    noun = caption.head(owned)
    anaphors = not ANAPHORS.isdisjoint(caption.lower[slot.start :])
    if anaphors or has_none_beside(caption, owned) or _is_fixed(caption, owned.end):
        return "not_grammatical"  # "a table next to a vase on it", "a box next to pizza inside"
    if not is_named(caption, owned) or not caption.is_whole(owned) or noun in SURROUNDINGS:
        return "not_grammatical"
    if (caption.head(owner) in HOLDERS and may_be_others(caption, owner)) or not UNCERTAIN.isdisjoint(
        caption.lower[owned.start : owned.end]
    ):
        return "true_of_image"
    rides = noun in _MOUNTED and caption.words.has_any(_RIDES)
    acts = caption.tag(owned.end) == "VBG"
    reason = "no_candidate"
    for new in rng.weighted_shuffle(slot.news, slot.weights):
        if new == "on" and rides:
            reason = "true_of_image"
            continue
        words = new.removeprefix("is ").removeprefix("are ")
        verb = verb_of_participle(words.split()[0]) if words.split()[0].endswith("ing") else ""
        if not _suits(caption, candidates, owned, (verb, words)) or (acts and words in _BUSY):
            continue
        if not (caption.words.has_any(forms_of(verb)) if verb else caption.words.said_of(words, noun)):
            return (caption.change(slot.start, slot.end, new),)
        reason = "true_of_image"
    return reason


def _is_fixed(caption: Caption, at: int) -> bool:
    """Whether what comes next tells where on its owner a thing is: "on top", "at the top", "in the front"."""
    return caption.word(at) in _FIXED or (
        caption.word(at) in {"at", "in"} and not SIDES.isdisjoint(caption.lower[at + 1 : at + 3])
    )


def _suits(caption: Caption, candidates: Candidates, owned: NounPhrase, new: tuple[str, str]) -> bool:
    """Whether captions have a relation, or a verb with its preposition, before such a thing; garments may be anywhere."""
    (verb, words), noun = new, caption.head(owned)
    worn, preposition = is_worn(caption, owned), words.partition(" ")[2]
    if not verb:
        return candidates.usage.stands_before(words, noun) or (worn and candidates.usage.is_written(words.split()[0]))
    if preposition:
        return candidates.usage.are_said_before(verb, preposition, noun)
    return candidates.usage.is_written(words) and (
        (verb == "drop" and not candidates.things.is_alive(noun))
        or (worn and verb in _TAKEN and noun not in _TOUCHED)
        or candidates.usage.has_object(verb, noun)
    )
