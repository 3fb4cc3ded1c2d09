"""NEGATION edits: a text that denies what is in the image, and one that denies in the same words what is not.

    a street with cars  ->  a street without any cars (false), a street without any boats (true)
    a dog on a bed      ->  a dog on a bed with no pillow in sight (false), a dog on a bed with no car in sight (true)

Models of images and texts hardly read "no" and "without" (Alhamoud et al. 2025, NegBench). False texts alone would teach
them that such words are false, so a negative is only made with its positive: both have the same frame (
``negation_frames.tsv``), and the same vocabulary on both sides. Without a positive nothing is made (`no_positive`).

That something is absent is proven by boxes only: the user names the labels that the source annotates in every image
(`vocabulary`: labels or names of `label_sets`, "coco" for COCO's 80 categories; in a config ``negatives.vocabulary``).
A label is absent if no box and no region of a crowd has it and no caption names it or what may be it. What is denied
falsely has a box that the caption does not speak of, or is what the caption says that there is. Without a vocabulary
the type makes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.additions.absence import names_of
from pairwright.generators.edits.additions.insertion_points import context_of_insertion, end_of_caption
from pairwright.generators.edits.additions.proposals import WordPair, columns_of, typical_log_probs
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import NEGATION_WORDS
from pairwright.generators.edits.floors import NEGATION_FLOOR
from pairwright.generators.edits.proposals import FloatArray, WordProposals
from pairwright.generators.language.cloze.context import ClozeContext
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.inflection import article
from pairwright.generators.lexicon.label_sets import labels_of
from pairwright.generators.lexicon.nouns import flagged, loosely_same
from pairwright.generators.lexicon.protocols import Thesaurus
from pairwright.generators.lexicon.tables import read_rows

_END: Final = "end"
_CLOSING: Final = frozenset({"", ".", "!"})


@dataclass(frozen=True, slots=True)
class NegationPlace:
    """Where a thing is denied.

    Attributes:
        at: code point of the first character that is replaced.
        end: one past the last.
        frame: the text, with "{}" for the noun.
        several: whether the noun is a plural.
        token: the token before which words are added, or the first that is replaced.
        head: lemma of the noun that is denied to have it; empty at the end of a caption.
        context: around the noun, as if the text affirmed it.
        denied: the label that the caption affirms here; empty at the end of a caption.
    """

    at: int
    end: int
    frame: str
    several: bool
    token: int
    head: str
    context: ClozeContext
    denied: str = ""

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the denial as constraints see it."""
        return ProposedEdit(caption, "negation", "object", "", new, self.head, start=self.token, end=self.token)

    def change(self, caption: Caption, word: str) -> Change:  # noqa: ARG002 - of a slot it depends on the caption
        """Return the change that denies a thing here."""
        noun = plural_of(word) if self.several else word
        frame = self.frame.replace(" a {}", f" {article(noun)} {{}}")
        return Change(self.at, self.end, frame.format(noun))


class Negations:
    """Proposes pairs of a false and a true negation.

    Args:
        model: cloze model of the user's captions.
        thesaurus: WordNet.
        vocabulary: labels, or names of label sets, that have a box wherever there is such a thing; see the module.
    """

    def __init__(self, model: ClozeModel, thesaurus: Thesaurus, vocabulary: Iterable[str]) -> None:
        self._model, self._index = model, model.index("noun")
        known = (label for label in labels_of(tuple(vocabulary)) if label in self._index)
        self.labels = tuple(label for label in known if label not in flagged("plural_only"))
        self._columns = np.array([self._index[label] for label in self.labels], np.int64)
        self._names = {label: names_of(label, thesaurus) for label in self.labels}

    def propose(self, captions: Sequence[Caption]) -> list[WordProposals]:
        """Return pairs of denials of each caption, scored together: ``new`` is denied falsely and ``old`` truly."""
        places = [list(self._places(caption)) if self.labels else [] for caption in captions]
        scores = self._model.log_probs("noun", [place.context for found in places for place in found])
        parts = np.split(scores, np.cumsum([len(found) for found in places])[:-1]) if places else []
        targets = self._model.targets("noun")
        pairs = [
            columns_of(self._pairs(caption, found, part))
            for caption, found, part in zip(captions, places, parts, strict=True)
        ]
        return [
            WordProposals(
                caption, found, targets, *own, () if len(own[0]) or not found else ("no_positive",), paired=True
            )
            for caption, found, own in zip(captions, places, pairs, strict=True)
        ]

    def _pairs(self, caption: Caption, places: Sequence[NegationPlace], log_probs: FloatArray) -> Iterator[WordPair]:
        absent = [at for at, label in enumerate(self.labels) if self.is_absent(caption, label)]
        if not absent or not places:
            return
        present = [at for at, label in enumerate(self.labels) if self._is_unspoken(caption, label)]
        fits = log_probs[:, self._columns] - typical_log_probs(log_probs)[:, None]
        least = np.log(NEGATION_FLOOR)
        for at, place in enumerate(places):
            false = [self.labels.index(place.denied)] if place.denied else self._of_number(caption, present, place)
            for new in false:
                for old in absent:
                    if min(fits[at, old], fits[at, new]) >= least and _alike(self.labels[old], self.labels[new]):
                        yield at, int(self._columns[old]), int(self._columns[new]), float(fits[at, new] - fits[at, old])

    def is_absent(self, caption: Caption, label: str) -> bool:
        """Return whether boxes prove that there is no such thing, and no caption names it or what may be it."""
        words = caption.words
        return (
            bool(words.boxes)
            and loosely_same(label).isdisjoint(words.labels.keys() | words.crowds)
            and not words.has_any(self._names[label])
        )

    def _is_unspoken(self, caption: Caption, label: str) -> bool:
        """Whether boxes show a thing that the caption does not name, nor what may be it."""
        return label in caption.words.labels and not _speaks(caption, self._names[label])

    def _of_number(self, caption: Caption, labels: Iterable[int], place: NegationPlace) -> list[int]:
        return [at for at in labels if (caption.words.labels[self.labels[at]] > 1) == place.several]

    def _places(self, caption: Caption) -> Iterator[NegationPlace]:
        if not NEGATION_WORDS.isdisjoint(caption.lower):
            return  # two negations confuse
        for where, one, more in _frames():
            if where == _END:
                yield from _at_end(caption, one, more)
                continue
            for phrase in caption.things:
                if caption.word(phrase.start - 1) == where:
                    yield from self._behind(caption, phrase, more if caption.plural(phrase) else one)

    def _behind(self, caption: Caption, phrase: NounPhrase, frame: str) -> Iterator[NegationPlace]:
        """Yield how what a noun is said to have is denied."""
        owner, noun = caption.ending_at(phrase.start - 1), caption.noun(phrase)
        closes = caption.word(phrase.end) in _CLOSING or caption.tag(phrase.end) == "IN"
        if owner is None or not caption.is_thing(owner) or not closes or noun not in self.labels:
            return
        if caption.words.several(caption.head(owner)) and not caption.plural(owner):
            return  # another one may have none
        start = phrase.start - 1
        span = caption.tokens[start].start, caption.tokens[phrase.end - 1].end
        left = context_of_insertion(caption, phrase.start, ("a",))
        right = context_of_insertion(caption, phrase.end)
        context = left._replace(right=right.right, bag=tuple(word for word in left.bag if word != caption.head(phrase)))
        yield NegationPlace(*span, frame, caption.plural(phrase), start, caption.head(owner), context, noun)


def _at_end(caption: Caption, one: str, more: str) -> Iterator[NegationPlace]:
    found = end_of_caption(caption)
    if found is None:
        return
    at, token = found
    joint = "" if one.startswith(",") else " "
    for frame, several in ((joint + one, False), (joint + more, True)):
        context = context_of_insertion(caption, token, ("with", "a"), ())
        yield NegationPlace(at, at, frame, several, token, "", context)


def _speaks(caption: Caption, names: frozenset[str]) -> bool:
    words = caption.words
    return any(f" {name} " in words.own_text if " " in name else name in words.own_set for name in names)


def _alike(one: str, other: str) -> bool:
    return one.count(" ") == other.count(" ")


@lru_cache(maxsize=1)
def _frames() -> tuple[tuple[str, str, str], ...]:
    """Return where each frame stands, and the frame for one and for several."""
    return tuple((row["where"], row["one"], row["several"]) for row in read_rows("negation_frames"))
