"""Detection of agreement errors in number: nouns after number words.

An *agreement error* is a noun in a form that the words before it do not allow ("two woman", "a three dogs"). A text with
an error that its source does not have is rejected.
"""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.captions.phrases import NounPhrase, noun_phrases
from pairwright.generators.edits.written.alignment import lower_words
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_VAGUE = words_with("vague")
_ANY_NUMBER: Final = words_with("collective") | words_with("invariant") | flagged("mass")
# "two graffiti | covered walls"
_CONTINUES_PHRASE: Final = frozenset({"VBN", "VBD", "JJ", "HYPH", "CD", "POS", "NN", "NNS"})


def adds_agreement_error(source: Sequence[Token], text: Sequence[Token]) -> bool:
    """Return whether a text has an agreement error that its source does not have."""
    found = _agreement_errors(text)
    return bool(found) and not found <= _agreement_errors(source)


def _agreement_errors(tokens: Sequence[Token]) -> set[tuple[str, str]]:
    errors = (_error_of_phrase(tokens, phrase) for phrase in noun_phrases(tokens))
    return {error for error in errors if error is not None}


def _error_of_phrase(tokens: Sequence[Token], phrase: NounPhrase) -> tuple[str, str] | None:
    head, words = tokens[phrase.head], lower_words(tokens[phrase.start : phrase.head])
    form, plural = head.text.lower(), head.tag == "NNS"
    continues = any(token.tag in _CONTINUES_PHRASE for token in tokens[phrase.end : phrase.end + 1])
    uninflected = plural and form == head.lemma
    unclear = len(phrase.nouns) > 1 or head.tag not in {"NN", "NNS"} or continues or uninflected
    if unclear or head.lemma in _ANY_NUMBER or not _AMOUNTS.isdisjoint((form, *words)):
        return None
    one, many = not _ONE.isdisjoint(words), not _MANY.isdisjoint(words)
    if one and many:  # "a three dogs", "a various box"
        return (words[0], words[1]) if len(words) > 1 and (plural or words[1] in _VAGUE) else None
    return (words[0], form if one else "") if one is not many and plural is one else None
