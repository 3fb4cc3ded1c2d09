"""Object swaps: the nouns of two phrases are exchanged, and their attributes or numbers stay.

"A blue car behind a red truck" gives "a blue truck behind a red car", "two men and a woman" gives "two women and a
man".
"""

from typing import Final

from pairwright.generators.captions.caption import GENDERED, Caption
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.swaps.attributes import Modifier, is_countable
from pairwright.generators.edits.swaps.proposal import Span, SwapProposal
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with

_CONTINUES: Final = frozenset({"of", "'s", "’s", "'", "-"})  # after a noun inside a larger phrase
_JOINS: Final = words_with("at_one_place") | (words_with("having") - words_with("joins_items"))


def swap_objects(caption: Caption, known: Knowledge, one: Modifier, other: Modifier) -> SwapProposal | str:
    """Return the swap of the nouns of a pair of `swapped_pairs`, inflected for their new positions, or a reason code."""
    phrase, second = one.phrase, other.phrase
    whole = all(caption.is_whole(each) and caption.word(each.end) not in _CONTINUES for each in (phrase, second))
    if not whole or _are_pronouns_of(caption, known, phrase, second):
        return "not_grammatical"
    same_number = caption.plural(phrase) is caption.plural(second)
    if not (same_number or (is_countable(caption, phrase) and is_countable(caption, second))):
        return "not_grammatical"
    joined = second.start == phrase.end + 1 and caption.word(phrase.end) in _JOINS
    if (joined and not known.nouns.is_alive(caption.head(phrase))) or not _share_class(caption, known, phrase, second):
        return "no_candidate"  # a bed with two pillows is no pillow with two beds
    nouns, second_nouns = ((max(each.phrase.nouns[0], each.end), each.phrase.end) for each in (one, other))
    if any(caption.word(at) in concepts() for start, end in (nouns, second_nouns) for at in range(start, end - 1)):
        return "not_grammatical"  # an attribute that is tagged as a noun: "a large purple | orange cross"
    changes = (
        caption.change(*nouns, _in_number_of(caption, second_nouns, phrase)),
        caption.change(*second_nouns, _in_number_of(caption, nouns, second)),
    )
    return SwapProposal(changes, (nouns, second_nouns))


def _are_pronouns_of(caption: Caption, known: Knowledge, *phrases: NounPhrase) -> bool:
    """Return whether a gendered pronoun may refer to one of the phrases."""
    people = any(known.nouns.is_person(caption.head(phrase)) for phrase in phrases)
    return people and not GENDERED.isdisjoint(caption.distinct_words)


def _share_class(caption: Caption, known: Knowledge, one: NounPhrase, other: NounPhrase) -> bool:
    """Return whether two nouns share a class, such as furniture."""
    first, second = (known.nouns.profile(caption.head(phrase)) for phrase in (one, other))
    return not first.classes.isdisjoint(second.classes)


def _in_number_of(caption: Caption, nouns: Span, place: NounPhrase) -> str:
    """Return nouns inflected for the position of another phrase."""
    written = lowercase_span(caption.pair.caption, *span(caption.tokens, *nouns))
    head, tag = caption.tokens[nouns[1] - 1], caption.tag(place.head)
    return written if tag == head.tag else written[: len(written) - len(head.text)] + inflect(head.lemma, tag)
