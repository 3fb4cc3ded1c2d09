"""Plausibility constraints: co-occurrence, prepositional links, countability and selectional preferences in the pool."""

from collections.abc import Iterator
from enum import Enum, auto

from pairwright.generators.captions.box_checks import number_of
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import (
    ALWAYS_MASS_SHARE,
    EXPECTED_COOCCURRENCES,
    MASS_SHARE,
    MIN_COUNT,
    MIN_PLURAL_SHARE,
    MIN_PLURAL_SHARE_OF_MASS,
    PLAUSIBILITY_MARGIN,
    Knowledge,
)
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.function_words import words_with

_UBIQUITOUS = words_with("ubiquitous")


def is_ubiquitous(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether nearly every image shows the new object, mentioned or not: a floor, a hand."""
    return edit.new in _UBIQUITOUS


def often_cooccurs(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the new object often co-occurs with the old one: next to a toilet is a sink, mentioned or not."""
    return known.often_cooccur(edit.old.rpartition(" ")[2], edit.new.rpartition(" ")[2])


def is_implausible(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the new word co-occurs with the words of the caption less often than by chance."""
    word = edit.new.rpartition(" ")[2]
    rest = [lemma for lemma in edit.caption.contents if lemma not in edit.old.split()]
    return known.pool.plausibility(word, rest) < -PLAUSIBILITY_MARGIN


def has_wrong_countability(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the new noun is not used in this number or with this article: "rices", "a cattle"."""
    form = noun_form_of(edit.caption, edit.old, edit.end, known)
    return form is not None and lacks_noun_form(edit.new, form, known)


class NounForm(Enum):
    """Form of a noun in a caption: singular with article, bare mass noun, or plural."""

    SINGULAR = auto()
    MASS = auto()
    PLURAL = auto()


def noun_form_of(caption: Caption, old: str, end: int, known: Knowledge) -> NounForm | None:
    """Return the form of the noun ``old`` that ends before token ``end``; None for a bare noun that is no mass noun."""
    tag, phrase = caption.tags[end - 1], caption.ending_at(end)
    if tag == "NNS":
        return NounForm.PLURAL
    if tag != "NN" or phrase is None:
        return None
    if caption.lower[phrase.start] in words_with("one"):
        return NounForm.SINGULAR
    return (
        NounForm.MASS if phrase.is_bare and known.share_without_article(old.rpartition(" ")[2]) >= MASS_SHARE else None
    )


def lacks_noun_form(noun: str, form: NounForm, known: Knowledge) -> bool:
    """Return whether captions do not use a noun in a form."""
    head = noun.rpartition(" ")[2]
    share = known.share_without_article(head)
    if form is NounForm.SINGULAR:
        return share > ALWAYS_MASS_SHARE
    if form is NounForm.MASS:
        return share < MASS_SHARE
    count, plural = known.pool.form_frequency, inflect(head, "NNS")
    return plural != head and count(plural) < count(head) * (
        MIN_PLURAL_SHARE if share < MASS_SHARE else MIN_PLURAL_SHARE_OF_MASS
    )


def is_unseen_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the pool hardly ever has the new attribute with the noun, though both are common enough."""
    return any(
        max(known.pool.adjacency(word, noun), known.pool.cooccurrence(word, noun) // 2) < MIN_COUNT
        and known.expects_cooccurrence(word, noun, EXPECTED_COOCCURRENCES)
        for word, noun in _noun_attributes(edit)
        if not number_of(word)
    )


def _noun_attributes(edit: ProposedEdit) -> Iterator[tuple[str, str]]:
    """Yield the new attributes of an edit, each with the head noun that it modifies."""
    pairs = ((edit.new, edit.before), (edit.old, edit.after)) if edit.form == "swap" else ((edit.new, edit.after),)
    return ((words, noun.rpartition(" ")[2]) for words, noun in pairs if words and noun)
