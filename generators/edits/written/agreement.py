"""Detection of agreement errors in number: nouns after number words, and the verb after the first noun phrase.

An *agreement error* is a word in a form that the words before it do not allow ("two woman", "a man stand"), or a
collective noun without its article ("with couple of dogs"). A text with an error that its source does not have is
rejected.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.captions.phrases import NounPhrase, noun_phrases
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged

_ONE, _MANY, _AMOUNTS = words_with("one"), words_with("many"), words_with("amount")
_VAGUE = words_with("vague")
_GROUPS: Final = words_with("collective") & words_with("of_several")  # "couple", "bunch": singular with an article
_ANY_NUMBER: Final = words_with("collective") | words_with("invariant") | flagged("mass")
_BEFORE_GROUP: Final = frozenset({"IN", "TO", "VB", "VBD", "VBG", "VBP", "VBZ"})
_CONTINUES_PHRASE: Final = frozenset(
    {"VBN", "VBD", "JJ", "HYPH", "CD", "POS", "NN", "NNS"}
)  # "two graffiti | covered walls"
_SINGULAR_VERBS: Final = frozenset({"is", "was", "has", "does"})
_PLURAL_VERBS: Final = frozenset({"are", "were", "have", "do"})


def adds_agreement_error(source: Sequence[Token], text: Sequence[Token]) -> bool:
    """Return whether a text has an agreement error that its source does not have."""
    found = set(_agreement_errors(text))
    return bool(found) and not found <= set(_agreement_errors(source))


def _agreement_errors(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for phrase in noun_phrases(tokens):
        yield from _errors_of_phrase(tokens, phrase)


def _errors_of_phrase(tokens: Sequence[Token], phrase: NounPhrase) -> Iterator[tuple[str, str]]:
    head, words = tokens[phrase.head], [token.text.lower() for token in tokens[phrase.start : phrase.head]]
    form, following = head.text.lower(), tokens[phrase.end] if phrase.end < len(tokens) else None
    opening = words[0] if words else ""
    if form in _GROUPS and following is not None and following.text.lower() == "of":
        if phrase.is_bare and phrase.start and tokens[phrase.start - 1].tag in _BEFORE_GROUP:
            yield "", "of"
        return
    plural, uninflected = head.tag == "NNS", form == head.lemma
    unclear = (
        len(phrase.nouns) > 1 or head.tag not in {"NN", "NNS"} or (following and following.tag in _CONTINUES_PHRASE)
    )
    if unclear or head.lemma in _ANY_NUMBER or (plural and uninflected) or not _AMOUNTS.isdisjoint((form, *words)):
        return
    one, many = not _ONE.isdisjoint(words), not _MANY.isdisjoint(words)
    if one and many:
        if len(words) > 1 and (plural or words[1] in _VAGUE):  # "a three dogs", "a various box"
            yield opening, words[1]
    elif one is not many and plural is one:
        yield opening, form if one else ""
    elif following is not None and not phrase.start:  # of later phrases, tags do not tell which verb is theirs
        verb = following.text.lower()
        if (
            (following.tag == "VBZ" or verb in _SINGULAR_VERBS)
            if plural
            else (following.tag == "VBP" or verb in _PLURAL_VERBS)
        ):
            yield form, verb
