"""Object swaps: the nouns of two phrases are exchanged, and their attributes or numbers stay.

"A blue car behind a red truck" gives "a blue truck behind a red car", "two men and a woman" gives "two women and a
man".

The weight of a swap is the probability of each noun in the place of the other, relative to its own, by the cloze model.
"""

import math
from collections.abc import Container
from typing import Final

from pairwright.generators.captions.caption import Caption, Span
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.slots import NOUN, context_of
from pairwright.generators.edits.swaps.attributes import Modifier, Swap, is_countable
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.inflection import inflect
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with

_MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate
_CONTINUES: Final = frozenset({"of", "'s", "’s", "'", "-"})  # after a noun inside a larger phrase
_JOINS: Final = words_with("at_one_place") | (words_with("having") - words_with("joins_items"))


def swap_objects(caption: Caption, materials: EditMaterials, one: Modifier, other: Modifier) -> Swap | str:
    """Return the swap of the nouns of a pair of `swapped_pairs`, inflected for their new positions, or a reason code."""
    phrase, second, known = one.phrase, other.phrase, materials.knowledge
    whole = all(caption.is_whole(each) and caption.word(each.end) not in _CONTINUES for each in (phrase, second))
    if not whole:
        return "not_grammatical"
    same_number = caption.plural(phrase) is caption.plural(second)
    if not (same_number or (is_countable(caption, phrase) and is_countable(caption, second))):
        return "not_grammatical"
    joined = second.start == phrase.end + 1 and caption.word(phrase.end) in _JOINS
    classes, second_classes = (known.nouns.classes(caption.head(each)) for each in (phrase, second))
    if classes.isdisjoint(second_classes) or (joined and not known.nouns.is_alive(caption.head(phrase))):
        return "no_candidate"  # a bed with two pillows is no pillow with two beds
    nouns, second_nouns = ((max(each.phrase.nouns[0], each.end), each.phrase.end) for each in (one, other))
    if any(caption.word(at) in concepts() for start, end in (nouns, second_nouns) for at in range(start, end - 1)):
        return "not_grammatical"  # an attribute that is tagged as a noun: "a large purple | orange cross"
    changes = (
        caption.change(*nouns, _in_number_of(caption, second_nouns, phrase)),
        caption.change(*second_nouns, _in_number_of(caption, nouns, second)),
    )
    return Swap(changes, _weight(caption, materials.model.cloze, nouns, second_nouns))


def _weight(caption: Caption, model: ClozeModel, first: Span, second: Span) -> float:
    """Return the weight of a swap of two nouns, 0 if the model does not know both."""
    index = model.index(NOUN)
    columns = [index.get(_key(caption, span, index), -1) for span in (first, second)]
    if min(columns) < 0:
        return 0.0
    log_probs = model.log_probs(NOUN, [context_of(caption, *span) for span in (first, second)])[:, columns]
    return math.exp(min(log_probs[0, 1] - log_probs[0, 0] + log_probs[1, 0] - log_probs[1, 1], _MAX_LOG_RATIO))


def _key(caption: Caption, nouns: Span, known: Container[str]) -> str:
    """Return the compound of a span if the model knows it, else its last noun."""
    head = caption.lemmas[nouns[1] - 1]
    compound = " ".join((*caption.lower[nouns[0] : nouns[1] - 1], head))
    return compound if compound in known else head


def _in_number_of(caption: Caption, nouns: Span, place: NounPhrase) -> str:
    """Return nouns inflected for the position of another phrase."""
    written = lowercase_span(caption.pair.caption, *span(caption.tokens, *nouns))
    head, tag = caption.tokens[nouns[1] - 1], caption.tag(place.head)
    return written if tag == head.tag else written[: len(written) - len(head.text)] + inflect(head.lemma, tag)
