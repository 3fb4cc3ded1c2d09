"""Grammar constraints: edits inside of proper names, repeated nouns and pronoun agreement."""

from typing import Final

from pairwright.generators.captions.caption import GENDERED
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.nouns import flagged, gendered_words

_OPPOSITE_SEX: Final = {"male": "female", "female": "male"}
_ANOTHER = frozenset({"another", "other"})


def is_in_proper_name(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether an edit changes part of a proper name: "Red" of the Red Sox."""
    return edit.caption.in_name(edit.start)


def has_second_instance(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a caption mentions another instance of the replaced noun: "a cup beside another cup"."""
    caption = edit.caption
    left = (*caption.lower[: edit.start], *caption.lower[edit.end :])  # replacing "another cat" itself leaves one cat
    return not _ANOTHER.isdisjoint(left) and caption.lemmas.count(caption.lemmas[edit.end - 1]) > 1


def disagrees_with_pronoun(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a pronoun that refers only to the replaced person disagrees with the new one: "a woman and his bike"."""
    caption, noun = edit.caption, edit.new.rpartition(" ")[2]
    if GENDERED.isdisjoint(caption.distinct_words):
        return False
    pronouns, others = GENDERED & caption.distinct_words, {*caption.lemmas[: edit.start], *caption.lemmas[edit.end :]}
    return any(
        noun in flagged(opposite) and others.isdisjoint(flagged(sex)) and not pronouns.isdisjoint(gendered_words(sex))
        for sex, opposite in _OPPOSITE_SEX.items()
    )
