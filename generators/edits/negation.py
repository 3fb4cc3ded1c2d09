"""NEGATION edits: a false text that negates what the image shows, and a true one that negates what is absent.

    a street with cars  ->  a street without any cars (false), a street without any boats (true)
    a dog on a bed      ->  a dog on a bed with no pillow in sight (false), a dog on a bed with no car in sight (true)

Vision-language models hardly react to "no" and "without" (Alhamoud et al. 2025, NegBench). False texts alone would
teach them that such words are false, so a negative is only written with its positive: both use the same template
(``negation_templates.tsv``) and the same vocabulary. Without a positive nothing is written (`no_positive`).

Only boxes prove absence: the user names the labels that the source annotates exhaustively (`vocabulary`: labels or
names of `label_sets`, "coco" for COCO's 80 categories; in a config ``negatives.vocabulary``). A label is absent if no
box and no crowd region has it and no caption names it or something that may be it. The false text negates a label with
a box that the caption does not mention, or an object that the caption states. Without a vocabulary the type writes
nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.additions.absence import mention_forms
from pairwright.generators.edits.additions.insertion_points import end_of_caption
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import NEGATION_WORDS
from pairwright.generators.edits.floors import NEGATION_FLOOR
from pairwright.generators.edits.proposals import (
    FloatArray,
    WordPair,
    WordProposals,
    insertion_proposals,
    relative_fits,
)
from pairwright.generators.edits.slots import context_of
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.inflection import article
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.label_sets import labels_of
from pairwright.generators.lexicon.nouns import flagged, loosely_same
from pairwright.generators.lexicon.tables import read_rows

_END: Final = "end"
_CLOSING: Final = frozenset({"", ".", "!"})


@dataclass(frozen=True, slots=True)
class NegationSlot:
    """A position at which an object is negated.

    Attributes:
        at: code point of the first character that is replaced.
        end: one past the last.
        frame: the text, with "{}" for the noun.
        several: whether the noun is a plural.
        token: the token before which words are added, or the first that is replaced.
        head: lemma of the noun that is said not to have it; empty at the end of a caption.
        context: cloze context of the noun in the affirmative.
        affirmed: the label that the caption states here; empty at the end of a caption.
    """

    at: int
    end: int
    frame: str
    several: bool
    token: int
    head: str
    context: ClozeContext
    affirmed: str = ""

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the proposed edit, for constraints."""
        return ProposedEdit(caption, "negation", "object", "", new, self.head, start=self.token, end=self.token)

    def change(self, caption: Caption, word: str) -> Change:  # noqa: ARG002 - of a slot it depends on the caption
        """Return the change that negates an object here."""
        noun = plural_of(word) if self.several else word
        frame = self.frame.replace(" a {}", f" {article(noun)} {{}}")
        return Change(self.at, self.end, frame.format(noun))


class Negations:
    """Proposes pairs of a false and a true negation.

    Args:
        vocabulary: labels, or names of label sets, that are annotated exhaustively; see the module.
    """

    def __init__(self, model: ClozeModel, thesaurus: WordNet, vocabulary: Iterable[str]) -> None:
        self._model, self._index = model, model.index("noun")
        known = (label for label in labels_of(tuple(vocabulary)) if label in self._index)
        self.labels = tuple(label for label in known if label not in flagged("plural_only"))
        self._columns = np.array([self._index[label] for label in self.labels], np.int64)
        self._names = {label: mention_forms(label, thesaurus) for label in self.labels}

    def propose(self, captions: Sequence[Caption]) -> list[WordProposals]:
        """Return pairs of negations of each caption, scored in one batch: ``new`` is negated falsely and ``old`` truly."""
        slots = [list(self._slots(caption)) if self.labels else [] for caption in captions]
        fits = relative_fits(self._model, "noun", [[slot.context for slot in found] for found in slots])
        return [
            insertion_proposals(
                caption,
                found,
                self._model.targets("noun"),
                [*self._pairs(caption, found, fit[:, self._columns])],
                "no_positive" if found else "",
                paired=True,
            )
            for caption, found, fit in zip(captions, slots, fits, strict=True)
        ]

    def _pairs(self, caption: Caption, slots: Sequence[NegationSlot], fits: FloatArray) -> Iterator[WordPair]:
        absent = [at for at, label in enumerate(self.labels) if self.is_absent(caption, label)]
        if not absent or not slots:
            return
        present = [at for at, label in enumerate(self.labels) if self._is_unmentioned(caption, label)]
        number = caption.words.labels
        for at, slot in enumerate(slots):
            false = [each for each in present if (number[self.labels[each]] > 1) == slot.several]
            if slot.affirmed:
                false = [self.labels.index(slot.affirmed)]
            fitting = (fits[at] >= np.log(NEGATION_FLOOR)).tolist()
            for new, old in product(false, absent):
                same_length = self.labels[old].count(" ") == self.labels[new].count(" ")
                if fitting[new] and fitting[old] and same_length:
                    yield at, int(self._columns[old]), int(self._columns[new]), float(fits[at, new] - fits[at, old])

    def is_absent(self, caption: Caption, label: str) -> bool:
        """Return whether boxes prove that a label is absent, and no caption names it or something that may be it."""
        words = caption.words
        return (
            bool(words.boxes)
            and loosely_same(label).isdisjoint(words.labels.keys() | words.crowds)
            and not words.has_any(self._names[label])
        )

    def _is_unmentioned(self, caption: Caption, label: str) -> bool:
        """Return whether boxes have a label that the caption does not mention, even as an owner ("a giraffe's head")."""
        text = f" {' '.join(caption.lower)} "  # of tokens
        return label in caption.words.labels and not any(f" {name} " in text for name in self._names[label])

    def _slots(self, caption: Caption) -> Iterator[NegationSlot]:
        if not NEGATION_WORDS.isdisjoint(caption.lower):
            return  # no second negation
        for where, one, more in _frames():
            if where == _END:
                yield from _at_end(caption, one, more)
                continue
            for phrase in caption.things:
                if caption.word(phrase.start - 1) == where:
                    yield from self._behind(caption, phrase, more if caption.plural(phrase) else one)

    def _behind(self, caption: Caption, phrase: NounPhrase, frame: str) -> Iterator[NegationSlot]:
        """Yield the slots that negate an object that a noun is said to have."""
        owner, noun = caption.ending_at(phrase.start - 1), caption.noun(phrase)
        closes = caption.word(phrase.end) in _CLOSING or caption.tag(phrase.end) == "IN"
        if owner is None or not caption.is_thing(owner) or not closes or noun not in self.labels:
            return
        if caption.words.several(caption.head(owner)) and not caption.plural(owner):
            return  # another instance may have none
        start = phrase.start - 1
        span = caption.tokens[start].start, caption.tokens[phrase.end - 1].end
        context = context_of(caption, phrase.start, phrase.end, left=("a",))
        yield NegationSlot(*span, frame, caption.plural(phrase), start, caption.head(owner), context, noun)


def _at_end(caption: Caption, one: str, more: str) -> Iterator[NegationSlot]:
    found = end_of_caption(caption)
    if found is None:
        return
    at, token = found
    joint = "" if one.startswith(",") else " "
    for frame, several in ((joint + one, False), (joint + more, True)):
        context = context_of(caption, token, token, left=("with", "a"))
        yield NegationSlot(at, at, frame, several, token, "", context)


@lru_cache(maxsize=1)
def _frames() -> tuple[tuple[str, str, str], ...]:
    """Return the position of each template, and its singular and plural form."""
    return tuple((row["where"], row["one"], row["several"]) for row in read_rows("negation_templates"))
