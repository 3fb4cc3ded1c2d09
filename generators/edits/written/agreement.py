"""Detection of agreement errors in number: nouns after number words.

An *agreement error* is a noun in a form that the words before it do not allow ("two woman", "a three dogs"). A text with
an error that its source does not have is rejected.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.captions.phrases import NounPhrase, noun_phrases
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_VAGUE = words_with("vague")
_ANY_NUMBER: Final = words_with("collective") | words_with("invariant") | flagged("mass")
_CONTINUES_PHRASE: Final = frozenset(
    {"VBN", "VBD", "JJ", "HYPH", "CD", "POS", "NN", "NNS"}
)  # "two graffiti | covered walls"


def adds_agreement_error(source: Sequence[Token], text: Sequence[Token]) -> bool:
    """Return whether a text has an agreement error that its source does not have."""
    found = set(_agreement_errors(text))
    return bool(found) and not found <= set(_agreement_errors(source))


def _agreement_errors(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for phrase in noun_phrases(tokens):
        yield from _errors_of_phrase(tokens, phrase)


def _errors_of_phrase(tokens: Sequence[Token], phrase: NounPhrase) -> Iterator[tuple[str, str]]:
    head, words = tokens[phrase.head], [token.text.lower() for token in tokens[phrase.start : phrase.head]]
    form, continues = (
        head.text.lower(),
        {token.tag for token in tokens[phrase.end : phrase.end + 1]} & _CONTINUES_PHRASE,
    )
    plural, uninflected = head.tag == "NNS", form == head.lemma
    unclear = len(phrase.nouns) > 1 or head.tag not in {"NN", "NNS"} or continues
    if unclear or head.lemma in _ANY_NUMBER or (plural and uninflected) or not _AMOUNTS.isdisjoint((form, *words)):
        return
    one, many = not _ONE.isdisjoint(words), not _MANY.isdisjoint(words)
    if one and many:
        if len(words) > 1 and (plural or words[1] in _VAGUE):  # "a three dogs", "a various box"
            yield words[0], words[1]
    elif one is not many and plural is one:
        yield words[0], form if one else ""
