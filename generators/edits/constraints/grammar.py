"""Whether an edit leaves a well-formed caption, as far as the words around it tell."""

from typing import Final

from pairwright.generators.captions.caption import GENDERED
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.nouns import flagged, gendered_words

_OTHER_SEX: Final = {"male": "female", "female": "male"}
_FURTHER = frozenset({"another", "other"})


def is_in_name(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit changes a part of a name: "Red" of the Red Sox."""
    return edit.caption.in_name(edit.start)


def has_further_one(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a caption speaks of one more of the replaced thing: "a cup beside another cup"."""
    caption = edit.caption
    left = (*caption.lower[: edit.start], *caption.lower[edit.end :])  # "a dog" for "another cat" leaves one cat
    return not _FURTHER.isdisjoint(left) and caption.lemmas.count(caption.lemmas[edit.end - 1]) > 1


def disagrees_with_pronoun(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a pronoun speaks of the replaced person, but cannot speak of the new one: "a woman and his bike"."""
    noun = edit.new.rpartition(" ")[2]
    return any(noun in flagged(_OTHER_SEX[sex]) for sex in _sexes_of_pronouns(edit))


def _sexes_of_pronouns(edit: ProposedEdit) -> tuple[str, ...]:
    """Return the sexes, "male" and "female", of which there are pronouns, but no other person than the replaced one."""
    caption = edit.caption
    if GENDERED.isdisjoint(caption.lower):
        return ()
    pronouns = GENDERED.intersection(caption.lower)
    others = {*caption.lemmas[: edit.start], *caption.lemmas[edit.end :]}
    return tuple(
        sex for sex in _OTHER_SEX if not pronouns.isdisjoint(gendered_words(sex)) and others.isdisjoint(flagged(sex))
    )
