"""Plausibility constraints: co-occurrence, prepositional links, countability and selectional preferences in the pool."""

from typing import Final

from pairwright.generators.captions.box_checks import number_of
from pairwright.generators.edits.constraints.knowledge import MIN_COUNT, Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.function_words import words_with

MIN_PLURAL_SHARE: Final = 0.01  # share of plurals among the captions with a count noun
MIN_PLURAL_SHARE_OF_MASS: Final = 0.1  # the same for a noun that is also used without an article
MASS_SHARE: Final = 0.3  # share of singulars without an article from which a noun may be a mass noun
ALWAYS_MASS_SHARE: Final = 0.9  # the same, from which it is always one
PLAUSIBILITY_MARGIN: Final = 0.05  # plausibility below 0 that is tolerated
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
    caption, (old, noun) = edit.caption, (words.rpartition(" ")[2] for words in (edit.old, edit.new))
    tag, phrase, share = caption.tags[edit.end - 1], caption.ending_at(edit.end), known.share_without_article(noun)
    if tag == "NNS":
        count, plural = known.pool.form_frequency, inflect(noun, "NNS")
        least = MIN_PLURAL_SHARE if share < MASS_SHARE else MIN_PLURAL_SHARE_OF_MASS
        return plural != noun and count(plural) < count(noun) * least
    if tag != "NN" or phrase is None:
        return False
    if caption.lower[phrase.start] in words_with("one"):
        return share > ALWAYS_MASS_SHARE
    return phrase.is_bare and share < MASS_SHARE <= known.share_without_article(old)


def is_unseen_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the pool hardly ever has the new attribute with the noun, though both are common enough."""
    word, noun = edit.new, edit.after.rpartition(" ")[2]
    if not noun or number_of(word):
        return False
    seen = max(known.pool.adjacency(word, noun), known.pool.cooccurrence(word, noun) // 2)
    return seen < MIN_COUNT and known.expects_cooccurrence(word, noun)
