"""Object swaps: the nouns of two phrases are exchanged, and their attributes or numbers stay.

"A blue car behind a red truck" gives "a blue truck behind a red car", "two men and a woman" gives "two women and a
man".

The weight of a swap is the probability of the new caption relative to the old one by the cloze model: of all its slots,
so that the relations and attributes fit the exchanged nouns, too.
"""

import math
from dataclasses import replace
from typing import Final

from pairwright.generators.captions.caption import GENDERED, Caption, ParsedText, Span
from pairwright.generators.captions.phrases import NounPhrase, span
from pairwright.generators.captions.realisation import lowercase_span
from pairwright.generators.edits.constraints.meaning import is_same_object
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.slots import TARGETS, context_of, find_slots
from pairwright.generators.edits.swaps.attributes import Modifier, Swap, is_countable
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with

_MAX_LOG_RATIO: Final = 3.0  # clipped, so that an odd original does not dominate
_UNKNOWN: Final = -12.0  # log-probability of a word that the model does not know
_CONTINUES: Final = words_with("continues_noun")
_JOINS: Final = words_with("at_one_place") | (words_with("having") - words_with("joins_items"))

Noun = tuple[NounPhrase, Span]  # a phrase and the tokens of its noun


def swap_objects(caption: Caption, materials: EditMaterials, one: Modifier, other: Modifier) -> Swap | str:
    """Return the swap of the nouns of a pair of `swapped_pairs`, inflected for their new positions, or a reason code."""
    phrase, second, known = one.phrase, other.phrase, materials.knowledge
    joined = second.start == phrase.end + 1 and caption.word(phrase.end) in _JOINS
    classes, second_classes = (known.nouns.classes(caption.head(each)) for each in (phrase, second))
    if classes.isdisjoint(second_classes) or (joined and not known.nouns.is_alive(caption.head(phrase))):
        return "no_candidate"  # a bed with two pillows is no pillow with two beds
    nouns, second_nouns = ((max(each.phrase.nouns[0], each.end), each.phrase.end) for each in (one, other))
    return exchange_nouns(caption, materials, (phrase, nouns), (second, second_nouns))


def exchange_nouns(caption: Caption, materials: EditMaterials, one: Noun, other: Noun) -> Swap | str:
    """Return the swap of the nouns of two phrases, given in order of position, or a reason code."""
    (phrase, nouns), (second, second_nouns) = one, other
    if not all(caption.is_whole(each) and caption.word(each.end) not in _CONTINUES for each in (phrase, second)):
        return "not_grammatical"
    names = caption.head(phrase), caption.head(second)
    if is_same_object(ProposedEdit(caption, "swap", "object", *names), materials.knowledge):
        return "same_meaning"
    persons = any(materials.knowledge.nouns.is_person(name) for name in names)
    if persons and not GENDERED.isdisjoint(caption.distinct_words):
        return "not_grammatical"
    same_number = caption.plural(phrase) is caption.plural(second)
    if not (same_number or (is_countable(caption, phrase) and is_countable(caption, second))):
        return "not_grammatical"
    if any(caption.word(at) in concepts() for start, end in (nouns, second_nouns) for at in range(start, end - 1)):
        return "not_grammatical"  # an attribute that is tagged as a noun: "a large purple | orange cross"
    first_new, second_new = _inflected(caption, second_nouns, phrase), _inflected(caption, nouns, second)
    tokens = caption.tokens
    exchanged = [
        *tokens[: nouns[0]], *first_new, *tokens[nouns[1] : second_nouns[0]], *second_new, *tokens[second_nouns[1] :]
    ]  # fmt: skip
    log_ratio = _log_prob(ParsedText(exchanged), materials) - _log_prob(caption, materials)
    changes = (
        caption.change(*nouns, _written(caption, second_nouns, first_new[-1])),
        caption.change(*second_nouns, _written(caption, nouns, second_new[-1])),
    )
    return Swap("object", changes, math.exp(min(log_ratio, _MAX_LOG_RATIO)))


def nouns_of(phrase: NounPhrase) -> Span:
    """Return the tokens of the noun of a phrase, compounds as a whole."""
    return phrase.nouns[0], phrase.end


def _log_prob(text: ParsedText, materials: EditMaterials) -> float:
    """Return the sum of the log-probabilities of all slots of a text, each given the others."""
    model, total = materials.model.cloze, 0.0
    slots = find_slots(text, materials.knowledge.thesaurus)
    for kind in TARGETS:
        index = model.index(kind)
        own = [slot for slot in slots if slot.kind == kind]
        contexts = [context_of(text, slot.start, slot.end, slot.before, slot.after) for slot in own]
        rows = model.log_probs(kind, contexts) if contexts else ()
        for slot, row in zip(own, rows, strict=True):
            total += float(row[index[slot.key]]) if slot.key in index else _UNKNOWN
    return total


def _inflected(caption: Caption, nouns: Span, place: NounPhrase) -> list[Token]:
    """Return the tokens of nouns in the number of another phrase."""
    *before, head = caption.tokens[slice(*nouns)]
    tag = caption.tag(place.head)
    return [*before, head if tag == head.tag else replace(head, text=inflect(head.lemma, tag), tag=tag)]


def _written(caption: Caption, nouns: Span, head: Token) -> str:
    """Return the words of nouns, with another form of the head, as in the middle of a sentence."""
    written = lowercase_span(caption.pair.caption, *span(caption.tokens, *nouns))
    old = caption.tokens[nouns[1] - 1].text
    return written if caption.tokens[nouns[1] - 1] is head else written[: len(written) - len(old)] + head.text
