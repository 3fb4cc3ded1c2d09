"""Whether captions or boxes of the image make an edit true, or may do so.

Other captions are compared by words alone, under all names that captioners use for a thing, which errs on the side of
rejecting. A relation counts in both directions ("flowers in a vase", "a vase with flowers") and in the passive.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.box_checks import is_vague, may_count, number_of, place_in_doubt
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import (
    are_opposed,
    converses,
    deeds_of,
    is_deed,
    is_same_place,
    names_of,
    relations_between,
    same_forms,
    split_relation,
    supports,
)
from pairwright.generators.edits.constraints.meaning import count_differently
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.lemmas import singular_of
from pairwright.generators.lexicon.attributes import same_concept
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same

_COLLECTIVE: Final = words_with("collective")
_BIRDS: Final = frozenset({"bird", "birds"})
_REACH: Final = 8  # words between two related things
_NEAR: Final = 4  # words before a thing in which its preposition stands


class RelationTriple(NamedTuple):
    """What an edit says of two things: lemmas, the new phrase, and the one that it replaces, if any."""

    subject: str
    phrase: str
    object: str
    old: str = ""


class StatedRelations(NamedTuple):
    """RelationTriple phrases that captions have of two things.

    Attributes:
        forward: from the subject to the object.
        backward: from the object to the subject.
        places: before the object, in captions that do not name the subject.
    """

    forward: frozenset[str]
    backward: frozenset[str]
    places: frozenset[str]


def is_said_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a caption or box mentions the new thing."""
    words, new, old = edit.caption.words, edit.new, edit.old
    if old and old.rpartition(" ")[2] == new.rpartition(" ")[2]:
        return words.has(new)
    own = known.own_mentions(new, edit.form).found_in(words.own_set, words.own_text)
    if old and own:  # what may mean the old thing does not count
        own -= (same_forms(old) | names_of(old)) - same_forms(new)
    if own:
        return True
    # What the caption itself names is its own thing, of which other captions speak as well: "a man" is no other child.
    names = known.mentions(new).found_in(words.elsewhere, words.text_elsewhere) - words.own_set
    if not old:
        names |= (names_of(new) & words.elsewhere) - words.own_set
        if names - same_forms(new):  # what else they may call it may be the caption's own thing: "a player" is the man
            names = frozenset(name for name in names if name in same_forms(new) or not is_own_thing(edit.caption, name))
    # "sofa" may mean the bed, but says that a couch is there.
    if names and not (old and names <= loosely_same(old) - same_forms(new)):
        return True
    is_a = known.thesaurus.is_a
    if not _BIRDS.isdisjoint(words.elsewhere) and is_a(new, "bird", "NOUN") and not is_a(old, "bird", "NOUN"):
        return True  # of two captioners one may know which bird it is
    return any(part.endswith("ed") and part.startswith(new) for parts in words.hyphenated for part in parts)


def is_own_thing(caption: Caption, name: str) -> bool:
    """Whether other captions of an image may mean by a name only what the caption itself names otherwise.

    Each that has the name has no second word for such a thing: "a player" of "a man", but not "a man and a player", nor
    "people", who are several.
    """
    words = caption.words
    lines = [line for line in words.others if name in line]
    if name in words.labels or not lines:
        return False
    called = {noun: names for noun in caption.by_head if name in (names := names_of(noun))}
    own = [phrase for noun in called for phrase in caption.by_head[noun]]
    several = name in words_with("collective") | words_with("invariant") or singular_of(name) != name
    if several and len(own) == 1 and not caption.plural(own[0]):
        return False
    return any(all(names.intersection(line) == {name} for line in lines) for names in called.values())


def is_said_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a caption gives the described thing the new attribute."""
    words, own = edit.caption.words, edit.form == "add"
    if not words.others and not own:
        return False
    if edit.form != "swap":
        return any(words.describes(same_concept(word), names_of(noun), own=own) for word, noun in _descriptions(edit))
    said = [words.describes(same_concept(word), same_forms(noun), own=False) for word, noun in _descriptions(edit)]
    # Both have to be true; what excludes the one that is said of its thing is not true of the other as well.
    exclusive = are_opposed(edit.old, edit.new) or count_differently(edit.old, edit.new)
    return all(said) if exclusive else any(said)


def may_be_count(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether there may be as many things as the edit says, by boxes, crowds and other captions."""
    words, old, replaced = edit.caption.words, edit.old.split(), edit.form == "replace"
    said = max(map(number_of, old), default=0) if replaced else 0
    names = loosely_same if replaced else same_forms
    return any(
        (replaced and ARTICLES.issuperset(old) and words.several(noun)) or may_count(words, names(noun), word, said)
        for word, noun in _descriptions(edit)
        if number_of(word) or is_vague(word)
    )


def is_said_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether another caption has the new relation between the same two things, or its place alone."""
    asked = relation_of(edit)
    if asked is None:
        return False
    subject, new, thing, old = asked
    forward, backward, places = said_relations(edit.caption, subject, thing)
    # Captioners call a thing by many names: what is in such a place may be the subject.
    if edit.target == "relation" and any(is_same_place(key, new, old, thing) for key in places):
        return True
    if any(supports(found, new, old, subject, thing) for found in forward):
        return True
    return bool(backward) and not backward.isdisjoint(converses(new) - converses(old) - {old, new})


@lru_cache(maxsize=64)
def said_relations(caption: Caption, subject: str, thing: str) -> StatedRelations:
    """Return what the other captions of an image say of two things, given by their lemmas."""
    subjects, things = names_of(subject), names_of(thing)
    forward, backward, places = set[str](), set[str](), set[str]()
    for line in caption.words.others:
        if things.isdisjoint(line):
            continue
        if subjects.isdisjoint(line):
            places.update(_said_of(line, things))
        else:
            forward.update(_said_between(line, subjects, things))
            backward.update(_said_between(line, things, subjects))
    return StatedRelations(frozenset(forward), frozenset(backward), frozenset(places))


def is_said_deed(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether another caption says that someone does what the new relation says, and not what the old one does."""
    return any(is_deed(key, edit.new, edit.old) for key in said_deeds(edit.caption))


@lru_cache(maxsize=8)
def said_deeds(caption: Caption) -> frozenset[str]:
    """Return the verbs of the other captions of an image as relation phrases."""
    return frozenset[str]().union(*map(deeds_of, caption.words.others))


def may_be_place(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether boxes leave open that the new relation of place holds."""
    said = relation_of(edit) if edit.caption.words.boxes else None
    if said is None:
        return False
    return place_in_doubt(edit.caption.words, said.subject, split_relation(said.phrase)[1] or said.phrase, said.object)


def may_be_other_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether there are several of a thing of which the caption mentions one: the edit may be true of another."""
    if edit.target == "attribute":
        nouns = {noun for word, noun in _descriptions(edit) if not number_of(word) and not is_vague(word)}
    else:
        nouns = {edit.before, edit.after}
    return any(noun and is_one_of_several(edit.caption, noun) for noun in nouns)


def may_be_some_of_them(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a relation is said of an unknown number, of which some may do the one and some the other.

    Things stay where they are, so it is asked of them only what they do; people and animals are anywhere.
    """
    old, new, subject, thing = edit.old, edit.new, edit.before, edit.after
    if not is_of_many(edit):
        return False
    return known.nouns.is_alive(subject) or not known.relations.exclusive(old, new, subject, thing, by_place=True)


def is_of_many(edit: ProposedEdit) -> bool:
    """Whether the subject of a relation is an unknown number of things or persons."""
    caption = edit.caption
    for phrase in reversed(caption.by_head.get(edit.before, ())):
        if phrase.end <= edit.start:
            if edit.before in _COLLECTIVE:
                return True
            count = caption.word(phrase.count) if phrase.count >= 0 else ""
            return caption.plural(phrase) and not number_of(count)
    return False


def is_one_of_several(caption: Caption, noun: str) -> bool:
    """Whether a caption mentions one thing of which other captions or boxes show several."""
    words = caption.words
    if any(caption.plural(phrase) for phrase in caption.by_head.get(noun, ())):
        return False
    plurals = same_forms(noun) - {noun}
    return words.labels.get(noun, 0) > 1 or any(
        word in words.elsewhere and word not in words.own and word.endswith("s") for word in plurals
    )


def relation_of(edit: ProposedEdit) -> RelationTriple | None:
    """Return the relation that an edit says of two things, or None."""
    if edit.form == "swap" and edit.target == "object":
        between = edit.caption.lower[edit.end : edit.second[0]]
        phrase = " ".join(word for word in between if word not in ARTICLES).removesuffix(" the")
        return RelationTriple(edit.new, phrase, edit.old) if phrase else None
    if edit.target != "relation" or not edit.after:
        return None
    return RelationTriple(edit.before, edit.new, edit.after, edit.old)


def _descriptions(edit: ProposedEdit) -> Iterator[tuple[str, str]]:
    """Yield what an edit newly says of things: a word and the lemma of the noun that it describes."""
    swapped = ((edit.new, edit.before), (edit.old, edit.after))
    for words, noun in swapped if edit.form == "swap" else ((edit.new, edit.after or edit.before),):
        if noun:
            for word in words.split():
                yield word, noun


def _said_between(line: tuple[str, ...], firsts: frozenset[str], seconds: frozenset[str]) -> Iterator[str]:
    """Yield the relations that stand between one of the first words and, behind it, one of the second."""
    starts = [at for at, word in enumerate(line) if word in firsts]
    ends = [at for at, word in enumerate(line) if word in seconds]
    for start in starts:
        for end in ends:
            if start < end <= start + _REACH:
                yield from relations_between(line[start + 1 : end])


def _said_of(line: tuple[str, ...], things: frozenset[str]) -> Iterator[str]:
    """Yield the relations that stand right before one of some things."""
    for at, word in enumerate(line):
        if word in things:
            yield from relations_between(line[max(0, at - _NEAR) : at])
