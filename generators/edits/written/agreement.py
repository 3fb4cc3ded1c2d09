"""Detection of agreement errors in number: nouns after number words ("two woman", "a dogs").

A text with an error that its source does not have is rejected.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_ANY_NUMBER: Final = words_with("collective") | words_with("invariant") | flagged("mass")


def adds_agreement_error(source: Sequence[Token], text: Sequence[Token]) -> bool:
    """Return whether a text has an agreement error that its source does not have."""
    return not set(_agreement_errors(text)) <= set(_agreement_errors(source))


def _agreement_errors(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for phrase in noun_phrases(tokens):
        head, words = tokens[phrase.head], {token.text.lower() for token in tokens[phrase.start : phrase.head]}
        ends = [token.tag for token in tokens[phrase.end : phrase.end + 1]] not in (["HYPH"], ["VBN"], ["JJ"])
        inflected = head.tag == "NN" or head.text.lower() != head.lemma
        clear = (
            inflected
            and ends
            and len(phrase.nouns) == 1
            and head.lemma not in _ANY_NUMBER
            and words.isdisjoint(_AMOUNTS)
        )
        one, many = not words.isdisjoint(_ONE), not words.isdisjoint(_MANY)
        if clear and (one if head.tag == "NNS" else many and not one):
            yield tokens[phrase.start].text.lower(), head.text.lower() if head.tag == "NNS" else ""  # "two zebra"
