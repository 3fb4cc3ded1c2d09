"""Whether an edit leaves a well-formed caption, as far as the words around it tell."""

from typing import Final

from pairwright.generators.captions.caption import GENDERED
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged, gendered_words

OTHER_SEX: Final = {"male": "female", "female": "male"}
_FURTHER = words_with("further")


def splits_word(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit begins or ends inside of a joined word ("walk-in"), and is not one part of it for another."""
    joined = edit.caption.joined
    if not joined or edit.form == "swap":
        return False
    tokens = edit.caption.tokens
    one_part = edit.target != "relation" and edit.end - edit.start == 1 and " " not in edit.new
    if one_part or edit.start >= len(tokens):
        return False
    cuts = {tokens[edit.start].start, tokens[edit.end - 1].end if edit.end > edit.start else tokens[edit.start].start}
    return any(start < cut < end for start, end in joined for cut in cuts)


def is_in_name(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an edit changes a part of a name: "Red" of the Red Sox."""
    return edit.form == "replace" and edit.target != "relation" and edit.caption.in_name(edit.start)


def disagrees_with_pronoun(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a pronoun speaks of the replaced person, but cannot speak of the new one: "a woman and his bike"."""
    noun = edit.new.rpartition(" ")[2]
    return any(noun in flagged(OTHER_SEX[sex]) for sex in sexes_of_pronouns(edit))


def sexes_of_pronouns(edit: ProposedEdit) -> tuple[str, ...]:
    """Return the sexes, "male" and "female", of which there are pronouns, but no other person than the replaced one."""
    caption = edit.caption
    if GENDERED.isdisjoint(caption.lower):
        return ()
    pronouns = GENDERED.intersection(caption.lower)
    others = {*caption.lemmas[: edit.start], *caption.lemmas[edit.end :]}
    return tuple(
        sex for sex in OTHER_SEX if not pronouns.isdisjoint(gendered_words(sex)) and others.isdisjoint(flagged(sex))
    )


def has_further_one(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a caption speaks of one more of the replaced thing: "a cup beside another cup"."""
    caption = edit.caption
    if _FURTHER.isdisjoint(caption.lower) or edit.end <= edit.start:
        return False
    same = [phrase for phrase in caption.phrases if caption.head(phrase) == caption.lemmas[edit.end - 1]]
    return len(same) > 1 and any(not _FURTHER.isdisjoint(caption.lower[phrase.start : phrase.head]) for phrase in same)
