"""Constraints on what an image shows: edits that other captions or boxes state or leave possible.

Other captions are not parsed: they are compared by words, under all names that captioners use for a thing, which errs
on the side of rejecting. A relation is compared in both directions ("flowers in a vase", "a vase with flowers") and in
the passive.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Final

from pairwright.generators.captions.box_checks import count_may_hold, is_vague, number_of, position_in_doubt
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import (
    are_opposed,
    may_be_same_action,
    names_of,
    relations_between,
    same_forms,
    split_relation,
    supports_relation,
    verbs_in,
)
from pairwright.generators.edits.constraints.meaning import count_differently
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.attributes import same_concept
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import loosely_same

_COLLECTIVE: Final = words_with("collective")
_MAX_DISTANCE: Final = 8  # words between subject and object


def is_stated_object(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a caption or box mentions the new object."""
    words, new, old = edit.caption.words, edit.new, edit.old
    if old and old.rpartition(" ")[2] == new.rpartition(" ")[2]:
        return words.has(new)
    own = known.own_mentions(new, edit.form).found_in(words.own_set, words.own_text)
    if old and own:  # words for the old object do not count
        own -= (same_forms(old) | names_of(old)) - same_forms(new)
    if own:
        return True
    # Nouns of the caption itself refer to its own objects in other captions, too: "a man" is no other child.
    names = known.mentions(new).found_in(words.elsewhere, words.text_elsewhere) - words.own_set
    if not old:
        names |= (names_of(new) & words.elsewhere) - words.own_set
    # "sofa" may mean the bed, but says that a couch is there.
    if names and not (old and names <= loosely_same(old) - same_forms(new)):
        return True
    return any(part.endswith("ed") and part.startswith(new) for parts in words.hyphenated for part in parts)


def is_stated_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a caption states the new attribute of the same noun."""
    words, own = edit.caption.words, edit.form == "add"
    if not words.others and not own:
        return False
    if edit.form != "swap":
        return any(words.describes(same_concept(word), names_of(noun), own=own) for word, noun in _new_attributes(edit))
    stated = [
        words.describes(same_concept(word), _forms_with(word, noun), own=False) for word, noun in _new_attributes(edit)
    ]
    # For exclusive attributes both must be stated: each one refutes the other.
    exclusive = are_opposed(edit.old, edit.new) or count_differently(edit.old, edit.new)
    return all(stated) if exclusive else any(stated)


def may_be_count(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether boxes, crowds or other captions leave the new count possible."""
    words, old, replaced = edit.caption.words, edit.old.split(), edit.form == "replace"
    stated = max(map(number_of, old), default=0) if replaced else 0
    names = loosely_same if replaced else same_forms
    return any(
        (replaced and ARTICLES.issuperset(old) and words.several(noun))
        or count_may_hold(words, names(noun), word, stated)
        for word, noun in _new_attributes(edit)
        if number_of(word) or is_vague(word)
    )


def is_stated_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether another caption states the new relation of the same two things."""
    relation = relation_of(edit)
    if relation is None:
        return False
    subject, new, thing, old = relation.before, relation.new, relation.after, relation.old
    forward, backward = stated_relations(edit.caption, subject, thing)
    if any(supports_relation(found, new, old, subject, thing) for found in forward):
        return True
    converse = known.relations.converse
    return bool(backward) and not backward.isdisjoint(converse(new) - converse(old) - {old, new})


@lru_cache(maxsize=64)
def stated_relations(caption: Caption, subject: str, thing: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the relation phrases between two things, given by their lemmas, in the other captions of an image.

    Those from subject to object, and those from object to subject.
    """
    subjects, things = names_of(subject), names_of(thing)
    directions = ((subjects, things), (things, subjects))
    forward, backward = (
        frozenset(found for line in caption.words.others for found in _relations_linking(line, *each))
        for each in directions
    )
    return forward, backward


def is_stated_action(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether another caption states the action of the new relation, and not that of the old one."""
    return any(may_be_same_action(key, edit.new, edit.old) for key in stated_verbs(edit.caption))


@lru_cache(maxsize=8)
def stated_verbs(caption: Caption) -> frozenset[str]:
    """Return the verbs of the other captions of an image as relation phrases."""
    return frozenset[str]().union(*map(verbs_in, caption.words.others))


def may_hold_by_boxes(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether boxes leave the new spatial relation possible."""
    words, relation = edit.caption.words, relation_of(edit) if edit.caption.words.boxes else None
    if relation is None:
        return False
    return position_in_doubt(words, relation.before, split_relation(relation.new)[1] or relation.new, relation.after)


def may_hold_of_other_instance(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the image has several instances of a noun, of which another one may meet the edit."""
    if edit.target == "attribute":
        nouns = {noun for word, noun in _new_attributes(edit) if not number_of(word) and not is_vague(word)}
    else:
        nouns = {edit.before, edit.after}
    return any(noun and is_one_of_several(edit.caption, noun) for noun in nouns)


def has_plural_subject(edit: ProposedEdit) -> bool:
    """Return whether the subject of a relation is a plural or collective noun without a number."""
    caption = edit.caption
    for phrase in reversed(caption.by_head.get(edit.before, ())):
        if phrase.end <= edit.start:
            if edit.before in _COLLECTIVE:
                return True
            count = caption.word(phrase.count) if phrase.count >= 0 else ""
            return caption.plural(phrase) and not number_of(count)
    return False


def is_one_of_several(caption: Caption, noun: str) -> bool:
    """Return whether a caption mentions a noun in the singular of which other captions or boxes show several."""
    words = caption.words
    if any(caption.plural(phrase) for phrase in caption.by_head.get(noun, ())):
        return False
    plurals = same_forms(noun) - {noun}
    return words.labels.get(noun, 0) > 1 or any(
        word in words.elsewhere and word not in words.own and word.endswith("s") for word in plurals
    )


def relation_of(edit: ProposedEdit) -> ProposedEdit | None:
    """Return an edit as one of the relation that it states: of swapped objects, the one between them; None if none."""
    if edit.form == "swap" and edit.target == "object":
        caption, places = edit.caption, range(edit.end, edit.second[0])
        between = [(caption.lemmas if caption.tokens[at].pos == "VERB" else caption.lower)[at] for at in places]
        phrase = " ".join(word for word in between if word not in ARTICLES).removesuffix(" the")
        return edit._replace(before=edit.new, new=phrase, after=edit.old, old="") if phrase else None
    return edit if edit.target == "relation" and edit.after else None


def _forms_with(word: str, noun: str) -> frozenset[str]:
    """Return the forms of a noun that a word may describe: with a number its plurals ("two girls on | an elephant")."""
    forms = same_forms(noun)
    return frozenset(map(plural_of, forms)) if number_of(word) > 1 else forms


def _new_attributes(edit: ProposedEdit) -> Iterator[tuple[str, str]]:
    """Yield the new attributes of an edit, each with the lemma of the noun that it modifies."""
    swapped = ((edit.new, edit.before), (edit.old, edit.after))
    for words, noun in swapped if edit.form == "swap" else ((edit.new, edit.after or edit.before),):
        if noun:
            for word in words.split():
                yield word, noun


def _relations_linking(line: tuple[str, ...], firsts: frozenset[str], seconds: frozenset[str]) -> Iterator[str]:
    """Yield the relations between one of the first words and a following one of the second words."""
    starts = [at for at, word in enumerate(line) if word in firsts]
    ends = [at for at, word in enumerate(line) if word in seconds]
    for start, end in product(starts, ends):
        if start < end <= start + _MAX_DISTANCE:
            yield from relations_between(line[start + 1 : end])
