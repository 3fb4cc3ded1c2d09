"""Grammatical number of what a model wrote: nouns behind number words, and the verb of what a caption begins with.

A *slip* is a word in a form that what stands before it does not allow ("two woman", "a man stand"), or a group without its
article ("with couple of dogs"). A text with a slip that its source does not have is rejected.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.captions.phrases import NounPhrase, noun_phrases
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_VAGUE = words_with("vague")
_GROUPS: Final = words_with("collective") & words_with("of_several")  # "couple", "bunch": one of them has an article
_ANY_NUMBER: Final = words_with("collective") | words_with("invariant") | flagged("mass")
_BEFORE_GROUP: Final = frozenset({"IN", "TO", "VB", "VBD", "VBG", "VBP", "VBZ"})
_GOES_ON: Final = frozenset({"VBN", "VBD", "JJ", "HYPH", "CD", "POS", "NN", "NNS"})  # "two graffiti | covered walls"
_ONE_ACTS: Final = frozenset({"is", "was", "has", "does"})
_MANY_ACT: Final = frozenset({"are", "were", "have", "do"})


def has_slip(source: Sequence[Token], text: Sequence[Token]) -> bool:
    """Whether a text has a slip that its source does not have."""
    found = set(_slips(text))
    return bool(found) and not found <= set(_slips(source))


def _slips(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for phrase in noun_phrases(tokens):
        yield from _slips_of(tokens, phrase)


def _slips_of(tokens: Sequence[Token], phrase: NounPhrase) -> Iterator[tuple[str, str]]:
    head, words = tokens[phrase.head], [token.text.lower() for token in tokens[phrase.start : phrase.head]]
    form, following = head.text.lower(), tokens[phrase.end] if phrase.end < len(tokens) else None
    opening = words[0] if words else ""
    if form in _GROUPS and following is not None and following.text.lower() == "of":
        if phrase.is_bare and phrase.start and tokens[phrase.start - 1].tag in _BEFORE_GROUP:
            yield "", "of"
        return
    plural, uninflected = head.tag == "NNS", form == head.lemma
    unclear = len(phrase.nouns) > 1 or head.tag not in {"NN", "NNS"} or (following and following.tag in _GOES_ON)
    if unclear or head.lemma in _ANY_NUMBER or (plural and uninflected) or not _AMOUNTS.isdisjoint((form, *words)):
        return
    one, many = not _ONE.isdisjoint(words), not _MANY.isdisjoint(words)
    if one and many:
        if len(words) > 1 and (plural or words[1] in _VAGUE):  # "a three dogs", "a various box"
            yield opening, words[1]
    elif one is not many and plural is one:
        yield opening, form if one else ""
    elif following is not None and not phrase.start:  # of others the tags leave in doubt what they do
        verb = following.text.lower()
        if (following.tag == "VBZ" or verb in _ONE_ACTS) if plural else (following.tag == "VBP" or verb in _MANY_ACT):
            yield form, verb
