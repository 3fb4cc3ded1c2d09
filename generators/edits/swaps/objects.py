"""Object swaps: the nouns of two phrases are exchanged, and their attributes or numbers stay.

"A blue car behind a red truck" gives "a blue truck behind a red car", "two men and a woman" gives "two women and a
man".
"""

from collections.abc import Iterator
from typing import Final

from pairwright.generators.captions.caption import GENDERED, Caption
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.swaps.attributes import (
    counted_pairs,
    described_pairs,
    is_countable,
    reject_number_swap,
)
from pairwright.generators.edits.swaps.proposal import (
    Span,
    SwapMaterials,
    SwapProposal,
)
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with

_CONTINUES: Final = frozenset({"of", "'s", "’s", "'", "-"})  # after a noun inside a larger phrase
_JOINS: Final = words_with("at_one_place") | (words_with("having") - words_with("joins_items"))


def swap_objects(caption: Caption, materials: SwapMaterials) -> Iterator[SwapProposal | str]:
    """Yield swaps of two nouns, or reason codes of rejections."""
    for one, other, rejection in described_pairs(caption, materials):
        parts = (one.phrase, one.end), (other.phrase, other.end)
        yield rejection or _exchange_nouns(caption, materials, *parts)
    for counted, second in counted_pairs(caption):
        rejection = reject_number_swap(caption, materials, counted, second)
        yield rejection or _exchange_nouns(caption, materials, (counted.phrase, 0), (second.phrase, 0))


def _exchange_nouns(
    caption: Caption, materials: SwapMaterials, one: tuple[NounPhrase, int], other: tuple[NounPhrase, int]
) -> SwapProposal | str:
    """Return the swap of the nouns of two phrases, each from a token on, inflected for their new positions."""
    (phrase, _), (second, _) = one, other
    whole = all(caption.is_whole(each) and caption.word(each.end) not in _CONTINUES for each in (phrase, second))
    if not whole or _are_pronouns_of(caption, materials, phrase, second):
        return "not_grammatical"
    same_number = caption.plural(phrase) is caption.plural(second)
    if not (same_number or (is_countable(caption, phrase) and is_countable(caption, second))):
        return "not_grammatical"
    joined = second.start == phrase.end + 1 and caption.word(phrase.end) in _JOINS
    if (joined and not materials.knowledge.nouns.is_alive(caption.head(phrase))) or not _share_class(
        caption, materials, phrase, second
    ):
        return "no_candidate"  # a bed with two pillows is no pillow with two beds
    nouns, second_nouns = ((max(each.nouns[0], least), each.end) for each, least in (one, other))
    if any(caption.word(at) in concepts() for start, end in (nouns, second_nouns) for at in range(start, end - 1)):
        return "not_grammatical"  # an attribute that is tagged as a noun: "a large purple | orange cross"
    changes = (
        caption.change(*nouns, _in_number_of(caption, second_nouns, phrase)),
        caption.change(*second_nouns, _in_number_of(caption, nouns, second)),
    )
    return SwapProposal(changes, (nouns, second_nouns))


def _are_pronouns_of(caption: Caption, materials: SwapMaterials, *phrases: NounPhrase) -> bool:
    """Return whether a gendered pronoun may refer to one of the phrases."""
    people = any(materials.knowledge.nouns.is_person(caption.head(phrase)) for phrase in phrases)
    return people and not GENDERED.isdisjoint(caption.lower)


def _share_class(caption: Caption, materials: SwapMaterials, one: NounPhrase, other: NounPhrase) -> bool:
    """Return whether two nouns share a class, such as furniture."""
    first, second = (materials.knowledge.nouns.profile(caption.head(phrase)) for phrase in (one, other))
    return not first.classes.isdisjoint(second.classes)


def _in_number_of(caption: Caption, nouns: Span, place: NounPhrase) -> str:
    """Return nouns inflected for the position of another phrase."""
    written = lowercase_span(caption.pair.caption, *span(caption.tokens, *nouns))
    head, tag = caption.tokens[nouns[1] - 1], caption.tag(place.head)
    return written if tag == head.tag else written[: len(written) - len(head.text)] + inflect(head.lemma, tag)
