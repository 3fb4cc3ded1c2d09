"""Classification of edited spans by tags: object, attribute or relation.

A span may be ambiguous ("a *baseball* bat" names a kind of bat and describes it), so the result is a set, and an edit
is of the requested target if the set contains it. Numbers are attributes. Participles before
a noun are attributes and elsewhere relations ("a parked car", "a car parked on a street").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Final

from pairwright.generators.captions.phrases import ARTICLES, TWO_WORD_PREPOSITIONS
from pairwright.generators.edits.written.alignment import TokenSpan, lower_words
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import opposites, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.relations import load_relations

OBJECT, ATTRIBUTE, RELATION = "object", "attribute", "relation"
NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})

_COLOURS: Final = words_of_class("colour")
_PHRASES: Final = frozenset(word for pair in opposites() for word in pair if " " in word)  # "upside down"
_NOMINAL: Final = NOUNS | {"PRP"}
_VERBS: Final = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
_MODIFIERS: Final = frozenset({"JJ", "JJR", "JJS", "CD", "VBN", "VBG", "RB", "RBR", "RBS"})
_PREPOSITIONAL: Final = frozenset({"IN", "RP", "TO"})
_CONNECTS: Final = frozenset({"CC", ",", "IN"})
_JOINS_MODIFIERS: Final = frozenset({"HYPH", "CC", ","})
_PLACE_NOUNS, _NUMBERS, _COPULA = words_with("place_noun"), words_with("counts"), words_with("copula")
_PURPOSE = words_with("purpose")
_QUANTIFIES = ARTICLES | _NUMBERS | words_with("of_several")
_RELATED: Final = frozenset(first for first, _ in TWO_WORD_PREPOSITIONS)


@dataclass(frozen=True, slots=True)
class RequestedEdit:
    """A requested edit: its kind (``hard_negative`` or ``hard_positive``), form and target."""

    kind: str
    form: str
    target: str

    @classmethod
    def of_type(cls, kind: str, name: str) -> "RequestedEdit":
        """Return an edit of a type such as "replace-object"."""
        form, _, target = name.partition("-")
        return cls(kind, form, target)


def targets_of_words(span: TokenSpan) -> frozenset[str]:
    """Return the possible targets of a span in its context."""
    words, found = span.content, set[str]()
    if not words:
        return frozenset()
    if " ".join(lower_words(words)) in _PHRASES:
        return frozenset({ATTRIBUTE})
    if verb_of_phrase(span):
        return frozenset({RELATION})
    if _is_noun_phrase(words):
        found.add(OBJECT)
    coloured = all(word.text.lower() in _COLOURS for word in words)  # "a girl in blue"
    if coloured or _are_numbers(words) or (all(map(_is_modifier, words)) and _is_at_noun(span)):
        found.add(ATTRIBUTE)
    lower = lower_words(span.tokens[span.start : span.end + 1])  # "adjacent | to"
    if _is_relation(words) or load_relations().match_preposition(lower, 0) >= span.end - span.start:
        found.add(RELATION)
    return frozenset(found)


def targets_of_addition(new: TokenSpan) -> frozenset[str]:
    """Return the possible targets of an insertion."""
    words, following, found = new.content, new.following(), set[str]()
    named = any(word.tag in NOUNS for word in words)
    between = new.tokens[new.start : new.end]
    if named:
        found.add(OBJECT)
    if words and all(map(_is_modifier, words)) and (_is_at_noun(new) or not named):
        found.add(ATTRIBUTE)
        opens, *rest = [token.tag for token in between]
        alone = opens not in _CONNECTS and (_CONNECTS | {"DT"}).isdisjoint(rest)
        if alone and following is not None and following.tag in NOUNS:
            found.discard(OBJECT)  # "a baseball | cap"
    elif words and not named and all(_is_modifier(word) or word.tag in _PREPOSITIONAL for word in words):
        found.add(ATTRIBUTE)
    return frozenset(found)


def targets_of_swap(source: Sequence[Token], first: tuple[int, int], second: tuple[int, int]) -> frozenset[str]:
    """Return the possible targets of two exchanged spans: objects or attributes."""
    spans = [TokenSpan.of(source, span) for span in (first, second)]
    if all(_are_articles(each.words) or _are_numbers(each.words) for each in spans):
        return frozenset({ATTRIBUTE})
    # An article is exchanged with the number and modifiers of the other noun: "a dog near three black cats".
    found = [frozenset({ATTRIBUTE}) if _are_articles(each.words) else targets_of_words(each) for each in spans]
    both = frozenset.intersection(*found)
    described = (each.before() for each in spans)
    if OBJECT in both and any(
        word is not None and _is_modifier(word) and word.tag not in {"RB", "VBG"} for word in described
    ):
        return both | {ATTRIBUTE}  # "a red car, a blue bus": exchanging the nouns exchanges what describes them
    return both


def verb_of_phrase(span: TokenSpan) -> list[Token]:
    """Return the verb, with its preposition, of a verb phrase with an object ("reading a book"); else an empty list."""
    words = span.content
    if len(words) < 2 or words[0].tag not in _VERBS or words[0].pos != "VERB" or not _may_be_subject(span.before()):
        return []
    verb = words[: 1 + (words[1].tag in _PREPOSITIONAL)]
    determined = any(span.tokens[at].tag in {"DT", "PRP$"} for at in range(span.start, span.end))
    return verb if determined and _is_noun_phrase(words[len(verb) :]) else []


def is_number_change(old: TokenSpan, new: TokenSpan) -> bool:
    """Return whether a number replaces an article or quantifier, or the reverse: "two dogs" for "a dog"."""
    gone, fresh = old.words, [word for word in new.words if word.pos != "PUNCT"]
    quantify = all(word.text.lower() in _QUANTIFIES or word.tag == "CD" for word in (*gone, *fresh))
    return bool(gone and fresh) and quantify and not _are_articles((*gone, *fresh))


def noun_after(tokens: Sequence[Token], start: int) -> str:
    """Return the lemma of the head of the noun phrase at or behind ``start``; empty if there is none."""
    return "".join(token.lemma for token in first_nouns(tokens[start:])[-1:])


def first_nouns(tokens: Sequence[Token]) -> list[Token]:
    """Return the first noun of some tokens with those right behind it."""
    return [*takewhile(_is_noun, dropwhile(lambda token: not _is_noun(token), tokens))]


def _is_noun(token: Token) -> bool:
    return token.tag in NOUNS


def _may_be_subject(before: Token | None) -> bool:
    return before is not None and (before.pos == "AUX" or before.tag in _NOMINAL | {"RB", "WDT", "CC", "IN"})


def _is_noun_phrase(words: Sequence[Token]) -> bool:
    """Return whether the words are one noun phrase, possibly with an "of" phrase."""
    lower = lower_words(words)
    at = lower.index("of") if "of" in lower else len(words)
    return lower.count("of") <= 1 and all(
        part and part[-1].tag in _NOMINAL and all(word.tag in _NOMINAL or _is_modifier(word) for word in part)
        for part in (words[:at], words[at + 1 :])[: 1 + lower.count("of")]
    )


def _is_modifier(word: Token) -> bool:
    return word.tag in _MODIFIERS or word.tag in {"NN", "NNP"} or word.text.lower() in _NUMBERS


def _is_at_noun(span: TokenSpan) -> bool:
    """Return whether the words modify a following noun, or are predicates after a copula."""
    last, before, words = span.tokens[span.end - 1], span.before(), span.content
    if last.tag in NOUNS and span.end - 1 not in span.at:
        return True  # the noun is the same, in another number
    names = any(word.tag in NOUNS for word in words)
    behind = list(span.tokens[span.end :])
    acting = len(behind) > 1 and behind[0].text.endswith("ing") and behind[0].text.lower() not in _PURPOSE
    if names and acting and behind[1].tag in NOUNS:
        return False  # "a man | riding horses": "riding" is a verb even if tagged as a noun
    described = last.lemma in _COLOURS or last.tag not in NOUNS
    for token in behind:
        if token.tag in NOUNS:
            return True
        if token.text.lower() not in _PURPOSE and token.tag not in (
            _MODIFIERS | _JOINS_MODIFIERS if described else {"JJ", "HYPH"}
        ):
            break
    if names or before is None:
        return False
    acts = any(word.tag in _VERBS for word in words)
    return before.text.lower() in _COPULA or before.tag in {"RB", "CC", ","} or (before.tag in NOUNS and not acts)


def _are_numbers(words: Sequence[Token]) -> bool:
    return all(word.tag == "CD" or word.text.lower() in _NUMBERS | {"of"} for word in words)


def _are_articles(words: Sequence[Token]) -> bool:
    return all(word.text.lower() in ARTICLES for word in words)


def _is_relation(words: Sequence[Token]) -> bool:
    related = [word for word in words if word.tag in _PREPOSITIONAL | _VERBS or word.text.lower() in _RELATED]
    rest = [word for word in words if word not in related]
    places = all(word.text.lower() in _PLACE_NOUNS for word in words)
    return places or (
        bool(related) and all(word.text.lower() in _PLACE_NOUNS or word.tag in {"RB", "JJ", "JJR"} for word in rest)
    )
