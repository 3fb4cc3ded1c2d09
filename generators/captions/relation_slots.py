"""A place of a caption that wants another relation, and what the caption tells around it."""

from typing import NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.language.word_set import word_set
from pairwright.generators.lexicon.nouns import flagged

VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN", "VB"})
GAZING = frozenset({"look", "stare", "gaze", "glance", "peer"})
_FOCUSED = frozenset({"focus", "emphasis"})
_AIMED = word_set("swing look shot glance hit throw")  # nouns of an aim: "a swing at a ball"
# What can be near or missing, though its name tells too little to be exchanged (`nouns.FRAMES`).
_NAMED_LOOSELY = word_set(
    "room area ground person people adult child kid animal vehicle food meal dish player rider crowd team topping store"
)
_FURTHEST = 3  # tokens between a thing and its relation: "a man who is standing on"
# Verbs that choose their preposition: "looking at" is no place.
_BINDING = word_set(
    "look stare gaze point wave smile bark fight argue throw aim glance yell laugh shout shoot arrive kick swing hit lunge "
    "nibble chew snack graze munch talk speak chat call text play dress cover fill make fall compete participate "
    "engage run rely depend focus hang wrap surround cut feature specialize drip attach stop turn plug pull prepare get "
    "take top decorate line load pile pack stuff clothe base split divide arrange put pour spread build reflect embed"
)
# ... and those of them that tell nothing but an activity, which may well be in a kitchen.
_ACTIVITIES = word_set(
    "smile bark yell laugh shout kick swing hit nibble chew snack graze munch talk speak chat text play compete "
    "participate run take prepare get fall pose stop turn pull"
)
_PLAINLY_PLACES = frozenset({"next to", "near", "beside", "close to", "alongside", "in front of", "behind"})
_AMOUNTS = word_set(
    "lot piece kind type bunch variety slice pile assortment couple pair group set loaf bag box bouquet body"
)


class RelationSlot(NamedTuple):
    """A place of a caption at which one of several words may be written; all of the same token positions.

    Attributes:
        start: first token that goes.
        end: one past the last.
        news: what may be written.
        weights: of each, above 0.
        lemmas: of what may be written where it is a verb; empty for a relation.
        doer: of a verb, where it is known.
    """

    start: int
    end: int
    news: tuple[str, ...]
    weights: tuple[float, ...]
    lemmas: tuple[str, ...] = ()
    doer: NounPhrase | None = None


def is_worn(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase names what one has on."""
    return not flagged("worn").isdisjoint((caption.head(phrase), caption.word(phrase.head)))


def is_place(caption: Caption, start: int, after: NounPhrase) -> bool:
    """Whether a relation at token ``start`` tells where something is, and not anything else."""
    return start > 0 and is_named(caption, after) and caption.is_whole(after)


def has_none_beside(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a text goes on to say what is missing, which goes with the old words: "wearing a jacket | and no pants"."""
    return caption.lower[phrase.end : phrase.end + 2] == ("and", "no")


def others_there(caption: Caption, before: NounPhrase | None, after: NounPhrase) -> bool:
    """Whether another thing, or a thing at another place, of the same name may be what is told."""
    noun = caption.head(after)
    if not caption.plural(after) and noun not in flagged("open") and caption.words.several(noun):
        return True
    return before is not None and not caption.plural(before) and caption.words.several(caption.head(before))


def is_bound(caption: Caption, start: int, end: int) -> bool:
    """Whether a preposition belongs to its verb ("looking at", "made by") and tells no place."""
    if caption.tag(end - 1) == "RP" or caption.tag(start - 1) == "DT":
        return True  # "the inside of"
    if caption.word(start - 1) == "from" or caption.word(start - 1) in _FOCUSED:
        return True  # "from across", "with focus on"
    if (
        start
        and caption.word(start) == "at"
        and (caption.lemmas[start - 1] in _AIMED or not GAZING.isdisjoint(caption.lemmas[:start]))
    ):
        return True
    at = start - 1
    while at > 0 and caption.tag(at) in {"RB", "RP"}:
        at -= 1  # "looking directly at", "looking down behind"
    token = caption.tokens[at] if at >= 0 else None
    if token is None or token.tag not in VERBS:
        return False
    if caption.word(start) == "by" and token.tag in {"VBN", "VBD"}:
        return True
    return token.lemma in _BINDING and not _tells_where(caption, (start, end), token.lemma)


def _tells_where(caption: Caption, span: tuple[int, int], verb: str) -> bool:
    """Whether the place is told of a verb that may choose a preposition: "smiling next to", "eating in a kitchen"."""
    if " ".join(caption.lower[span[0] : span[1]]) in _PLAINLY_PLACES:
        return verb not in GAZING
    after = caption.starting_at(span[1])
    return verb in _ACTIVITIES and after is not None and caption.head(after) in flagged("surroundings")


def before_it(caption: Caption, start: int) -> NounPhrase | None:
    """Return the thing that a relation is said of: the noun phrase before it, verbs and adverbs between."""
    at = start
    while (
        at > 0
        and start - at < _FURTHEST
        and (caption.tag(at - 1)[:2] in {"VB", "RB", "RP"} or caption.word(at - 1) in {"that", "who", "which"})
    ):
        at -= 1
    return caption.ending_at(at)


def may_be_others(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether another thing of that name could make the opposite true."""
    return caption.plural(phrase) or phrase.count >= 0 or caption.words.several(caption.head(phrase))


def is_named(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase names what can be at a place or missing, be it by a word that tells little of it."""
    loosely = caption.head(phrase) in _NAMED_LOOSELY or len(phrase.nouns) > 1  # "a stove top"
    return caption.is_thing(phrase) or (loosely and caption.tag(phrase.head) in {"NN", "NNS"})


def meant(caption: Caption, owned: NounPhrase) -> NounPhrase:
    """Return what there is a lot of, where a phrase only says that there is ("with lots of | food")."""
    if caption.head(owned) not in _AMOUNTS or caption.word(owned.end) != "of":
        return owned
    return caption.starting_at(owned.end + 1) or owned
