"""Attribute swaps: adjectives and materials of two noun phrases are exchanged.

"A red car and a blue bus" gives "a blue car and a red bus". A swap is false if the two attributes exclude each other for
both nouns. One captioner who uses both words distinguishes them, even if viewers often confuse them (gray and silver are
one colour, blue and green two). Attributes of different classes ("a small bathroom with a green toilet") are not
exchanged: both nouns may have both. Nor are phrases far apart, of which a long caption has the square of their number.

The weight of a swap is how often the pool has each attribute with the other noun, relative to its own, so that the
frequencies of all words cancel out.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import are_opposed
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.lexicon.attributes import concepts, words_of_class
from pairwright.generators.lexicon.nouns import flagged

FURTHEST: Final = 64  # tokens between two phrases; a long caption has more pairs than can be judged
SMOOTHING: Final = 0.5  # added to counts before their ratio is taken


class Modifier(NamedTuple):
    """An attribute of a noun phrase that may be exchanged.

    Attributes:
        words: its words; "black and white" has two.
    """

    phrase: NounPhrase
    start: int
    end: int
    words: tuple[str, ...]


class Swap(NamedTuple):
    """A swap that makes a caption false.

    Attributes:
        weight: probability of the new caption relative to the old one, for sampling.
    """

    changes: tuple[Change, ...]
    weight: float


def swap_attributes(caption: Caption, materials: EditMaterials, one: Modifier, other: Modifier) -> Swap:
    """Return the swap of two attributes of `swapped_pairs`."""
    changes = caption.exchange((one.start, one.end), (other.start, other.end))
    return Swap(changes, _weight(caption, materials.knowledge, one, other))


def swapped_pairs(
    caption: Caption, known: Knowledge, constraints: Sequence[Constraint]
) -> list[tuple[Modifier, Modifier, str]]:
    """Return pairs of attributes of different phrases, in order of position.

    Each comes with the reason code why neither they nor their nouns may be exchanged, or an empty string.
    """
    attributes = [each for phrase in caption.phrases for each in _modifiers_of(caption, known, phrase)]
    pairs = ((one, other) for one, other in _near(attributes) if set(one.words).isdisjoint(other.words))
    return [(one, other, _reject(caption, known, constraints, one, other)) for one, other in pairs]


def _near(modifiers: Sequence[Modifier]) -> Iterator[tuple[Modifier, Modifier]]:
    """Yield the pairs of modifiers of different phrases that are at most `FURTHEST` tokens apart, in order of position."""
    for at, one in enumerate(modifiers, 1):
        for other in modifiers[at : at + FURTHEST + 1]:
            if other.phrase is not one.phrase and other.start - one.end <= FURTHEST:
                yield one, other


def _reject(
    caption: Caption, known: Knowledge, constraints: Sequence[Constraint], one: Modifier, other: Modifier
) -> str:
    """Return why a swap of two attributes, or of their nouns, is rejected; else an empty string."""
    first, second = caption.head(one.phrase), caption.head(other.phrase)
    if first == second:
        return "identical"

    def violated(before: str, after: str) -> str:
        """Return why the words of the other may hold of the nouns, or an empty string."""
        words = " ".join(one.words), " ".join(other.words)
        edit = ProposedEdit(
            caption, "swap", "attribute", *words, before, after, one.start, one.end, (other.start, other.end)
        )
        found = first_violated(constraints, edit, known)
        return found.reason if found is not None else ""

    if not all(are_opposed(*words, distinguished=True) for words in product(one.words, other.words)):
        return "no_candidate"  # "a small bathroom with a green toilet" may also be a green one with a small toilet
    return violated(first, "") and violated("", second)  # one of the two is false, which is enough


def _modifiers_of(caption: Caption, known: Knowledge, phrase: NounPhrase) -> Iterator[Modifier]:
    if not (phrase.adjectives or len(phrase.nouns) > 1) or not caption.is_thing(phrase):
        return
    colours, coloured = words_of_class("colour"), not known.nouns.is_person(caption.head(phrase))
    if phrase.joined:
        if phrase.adjectives and coloured:
            first, end = phrase.adjectives[0], phrase.adjectives[-1] + 1
            words = tuple(caption.word(at) for at in range(first, end) if caption.word(at) not in {"and", ","})
            if colours.issuperset(words):
                yield Modifier(phrase, first, end, words)
        return
    adjectives = ((at, caption.tag(at) == "JJ") for at in phrase.adjectives)
    for at, described in (*adjectives, *((at, caption.word(at) in concepts()) for at in phrase.nouns[:-1])):
        word = caption.word(at)
        whole = at not in caption.parts and caption.tag(at + 1) != "HYPH"
        if described and whole and (coloured or word not in colours):
            yield Modifier(phrase, at, at + 1, (word,))


def is_countable(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether the noun of a phrase is countable."""
    head = caption.head(phrase)
    return head not in flagged("mass") and head not in flagged("plural_only")


def _weight(caption: Caption, known: Knowledge, one: Modifier, other: Modifier) -> float:
    """Return the weight of a swap of two attributes."""
    weight = 1.0
    for own, moved in ((one, other), (other, one)):
        old, seen = (
            min(known.pool.adjacency(word, caption.head(own.phrase)) for word in each.words) for each in (own, moved)
        )
        weight *= (seen + SMOOTHING) / (old + SMOOTHING)
    return weight
