"""Swapping what "and" joins, only where the two orders mean the same.

"A and B" may be exchanged when both are whole noun phrases with their own determiners, or both are bare plurals of one
word ("cups and plates": of "red apples and oranges" the colour may belong to both). Nothing before them may belong to
the first only ("on a horse and a dog" may be a man on a horse, and a dog; "a bottle of wine and glasses" is no bottle of
glasses; "a man with a hat and a woman" is a man and a woman), nothing after them to the second only ("a man and a dog on
a leash"), neither speaks of the other ("a man and his dog"), neither is or has a name ("Mario and Luigi characters"),
they are no fixed phrase ("odds and ends"), and the verb stays right in number. What hangs on what something else has
("a room with a bed with | a red cover and a desk") may be joined to either, and nothing comes behind a denial but what
it denies ("no walls and a bowl" may be exchanged, "a bowl and no walls" not).
"""

import random
from collections.abc import Iterator

from pairwright.generators.captions.caption import ANAPHORS, Caption, Outcome
from pairwright.generators.captions.phrases import PROPER, NounPhrase
from pairwright.generators.rules.swapping import changing_places
from pairwright.generators.words.nouns import OF_PEOPLE, PEOPLE
from pairwright.generators.words.wordlists import word_set

# After these the whole of "A and B" is meant, as far as it goes.
_OPENS = frozenset(
    {"", "with", "between", "showing", "shows", "features", "featuring", "containing", "contains", "has"}
)
_OPENS_BARE = frozenset({"with", "and", ",", "between", "containing", "like", "wearing"})
_PICTURES = word_set("picture photo photograph image painting drawing illustration close-up closeup")
# "A group of cats and dogs" has both; "a plate of food and drinks" does not.
_MIXED = word_set("group mix mixture variety assortment collection array selection combination bunch crowd")
# What stands in or on these is told of them only, and what comes after "and" may stand beside them.
_SMALL = word_set("plate bowl dish tray cup glass basket box pan pot container bag vase jar bottle")
_BEASTS = word_set("horse dog cat elephant giraffe zebra cow sheep bear bird")
_MOST_NOUNS = 3
_BE = frozenset({"is", "are", "was", "were"})
_CLOSES = frozenset({"", ".", "!", ";"})
_SUBJECT_ENDS = frozenset({"are", "were"})
# Told of what was named before: "one with | a racket and a fourth standing".
_OF_OTHERS = word_set("one ones another other others more rest same second third fourth fifth last")
_HAVING = frozenset({"with", "has", "containing", "contains", "wearing"})
# Substances that go without a determiner, and can come in either order.
_SUBSTANCES = word_set(
    "food fruit rice meat cheese bread lettuce broccoli chicken bacon ham beef fish shrimp pasta soup sauce gravy spinach "
    "corn celery asparagus cauliflower cabbage garlic basil coffee tea milk juice water wine beer grass snow sand mud "
    "dirt ice furniture luggage silverware ketchup mustard mayo butter jam syrup sugar cream salt pepper wood metal glass"
)
# Said in one order only, or of one thing.
_FIXED = frozenset(
    {
        ("mac", "cheese"),
        ("macaroni", "cheese"),
        ("bed", "breakfast"),
        ("bride", "groom"),
        ("odds", "ends"),
        ("odd", "end"),
    }
    | {
        ("butter", "jelly"),
        ("rock", "roll"),
        ("fish", "chip"),
        ("suit", "tie"),
        ("lady", "gentleman"),
        ("cross", "bone"),
    }
    | {("art", "craft"), ("bit", "piece"), ("pro", "con"), ("star", "stripe"), ("drum", "bass"), ("surf", "turf")}
    | {
        ("black", "white"),
        ("cloak", "dagger"),
        ("meat", "potato"),
        ("cookie", "cream"),
        ("nut", "bolt"),
        ("up", "down"),
    }
    | {
        ("in", "out"),
        ("ham", "cheese"),
        ("cheese", "cracker"),
        ("gin", "tonic"),
        ("arm", "leg"),
        ("mother", "daughter"),
    }
)


def swap_around_and(caption: Caption, rng: random.Random) -> Iterator[Outcome]:
    """Exchange two co-ordinated noun phrases."""
    places = [at for at in range(len(caption.tokens)) if caption.word(at) == "and"]
    for at in rng.sample(places, len(places)):
        one, other = caption.ending_at(at), caption.starting_at(at + 1)
        if one is None or other is None:
            continue
        if _noun_form(caption, one) == _noun_form(caption, other):
            yield "identical"
        elif not _alike(caption, one, other):
            yield "not_grammatical"
        elif not (_nothing_before(caption, one, other) and _nothing_after(caption, other)) or _is_apart(
            caption, one, other
        ):
            yield "may_be_false"
        else:
            yield changing_places(caption, one, other)


def _noun_form(caption: Caption, phrase: NounPhrase) -> tuple[str, ...]:
    return caption.lower[phrase.start : phrase.end]


def _alike(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether each phrase can stand where the other stands."""
    inside = {*_noun_form(caption, one), *_noun_form(caption, other)}
    bare = _is_bare(one) and _is_bare(other)
    both_own = not _is_bare(one) and not _is_bare(other)
    if not (ANAPHORS | _OF_OTHERS).isdisjoint(inside) or not (bare or both_own):
        return False
    tags = {caption.tag(at) for phrase in (one, other) for at in range(phrase.start, phrase.end)}
    if _is_a_clause(caption, one) or _is_a_clause(caption, other):
        return False
    if not tags.isdisjoint({"VBG", "VBZ"} | PROPER):
        return False  # "a garden containing white flowers and a black bench": the second may be in the first
    if bare and not all(_stands_alone(caption, phrase) for phrase in (one, other)):
        return False
    return (caption.head(one), caption.head(other)) not in _FIXED


def _is_a_person(caption: Caption, phrase: NounPhrase) -> bool:
    return caption.head(phrase) in PEOPLE


def _is_a_clause(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a verb is among what was read as nouns: "a woman | cross country ski", "the displays | houses bus schedules"."""
    nouns = phrase.nouns
    does = any(caption.lemmas[at] in OF_PEOPLE | _BEASTS for at in nouns[:-2])
    return does or (len(nouns) > _MOST_NOUNS and all(caption.tag(at) == "NNS" for at in nouns[:2]))


def _is_apart(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    """Whether the second may be no part of what the first is part of, or not be what it is without the first.

    "A horse with | a blond mane and a red horse", "two cows and | a baby", "a toilet and | no paper".
    """
    lone_baby = caption.head(other) == "baby" and not _is_a_person(caption, one)
    if lone_baby or caption.word(other.start) == "no" != caption.word(one.start):
        return True
    if caption.word(one.start - 1) not in _HAVING:
        return False
    owner = caption.ending_at(one.start - 1)
    alike = owner is not None and caption.head(owner) in {caption.head(one), caption.head(other)}
    return alike or _is_a_person(caption, one) is not _is_a_person(caption, other)


def _is_bare(phrase: NounPhrase) -> bool:
    return phrase.determiner < 0 and phrase.count < 0


def _stands_alone(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a noun without a determiner can do without, and nothing describes it that may describe both."""
    return len(phrase.nouns) == phrase.end - phrase.start == 1 and (
        caption.plural(phrase) or (caption.head(phrase) in _SUBSTANCES and caption.word(phrase.start - 1) != "")
    )


def _nothing_before(caption: Caption, one: NounPhrase, other: NounPhrase) -> bool:
    before, holder = caption.word(one.start - 1), caption.word(one.start - 2)
    if before in _HAVING and _is_had(caption, caption.ending_at(one.start - 1)):
        return False  # "a room with a bed with | a red cover and a desk"
    if before in _BE:
        return holder == "there" and caption.plural(one) == caption.plural(other)
    if before == "of":
        return holder in _PICTURES or (_is_bare(one) and _is_bare(other) and holder in _MIXED)
    if _is_bare(one):
        return before in _OPENS_BARE | {""}
    if before in _HAVING and (holder in _SMALL or holder in _OF_OTHERS):
        return False
    return before in _OPENS or (before == "," and holder not in _OPENS)


def _nothing_after(caption: Caption, other: NounPhrase) -> bool:
    after = caption.word(other.end)
    closed = after in _CLOSES and not caption.tag(other.end).startswith(("NN", "JJ", "CD"))
    return closed or (after in _SUBJECT_ENDS and not _do_so_to_the_others(caption, other.end))


def _is_had(caption: Caption, owner: NounPhrase | None) -> bool:
    """Whether what has something is itself what something else has, alone or in a list."""
    if owner is None or _HAVING.isdisjoint(caption.lower[: owner.start]):
        return False
    return caption.word(owner.start - 1) in _HAVING | {",", "and"}


def _do_so_to_the_others(caption: Caption, start: int) -> bool:
    """Whether only the second is told to do something, to the first: "two horses and some people | are watching them"."""
    return any(
        caption.word(at) == "them" and caption.tag(at - 1).startswith("VB") for at in range(start, len(caption.lower))
    )
