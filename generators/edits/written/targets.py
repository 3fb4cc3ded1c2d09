"""Targets of an edit: object, attribute or relation, as far as tags tell.

A stretch of words can be read in more ways than one ("a *baseball* bat" names a kind of bat and describes it), so the
answer is a set, and an edit counts as what was asked if that is in the set. Numbers are attributes. Participles before
a noun are attributes and elsewhere relations ("a parked car", "a car parked on a street").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import opposites, words_of_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.relations import load_relations

OBJECT, ATTRIBUTE, RELATION = "object", "attribute", "relation"
NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})

_COLOURS: Final = words_of_class("colour")
_PHRASES: Final = frozenset(word for pair in opposites() for word in pair if " " in word)  # "upside down"
_NAMING: Final = NOUNS | {"PRP"}
_VERBS: Final = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
_DESCRIBING: Final = frozenset({"JJ", "JJR", "JJS", "CD", "VBN", "VBG", "RB", "RBR", "RBS"})
_PLACING: Final = frozenset({"IN", "RP", "TO"})
_SMALL: Final = frozenset({"DT", "PRP$", "PDT", "HYPH", "POS", "CC", "WDT", ","})
_JOINING: Final = frozenset({"HYPH", "CC", ","})
_PLACE_NOUNS, _COUNTS, _COPULA = words_with("place_noun"), words_with("counts"), words_with("copula")
_PURPOSE = words_with("purpose")
_QUANTIFIES = ARTICLES | _COUNTS | words_with("of_several")
_RELATED: Final = frozenset({"next", "close"})


@dataclass(frozen=True, slots=True)
class RequestedEdit:
    """What was to be written: ``hard_negative`` or ``hard_positive``, and form and target of the edit."""

    kind: str
    form: str
    target: str

    @classmethod
    def of_type(cls, kind: str, name: str) -> "RequestedEdit":
        """Return an edit of a type such as "replace-object"."""
        form, _, target = name.partition("-")
        return cls(kind, form, target)


@dataclass(frozen=True)
class TokenSpan:
    """Words of a text: tokens ``start`` to ``end``, of which ``at`` count (those that are gone or new)."""

    tokens: Sequence[Token]
    start: int
    end: int
    at: tuple[int, ...]

    @classmethod
    def of(cls, tokens: Sequence[Token], span: tuple[int, int]) -> "TokenSpan":
        """Return a stretch of which all words count."""
        return cls(tokens, *span, tuple(range(*span)))

    @cached_property
    def words(self) -> list[Token]:
        """The words that count."""
        return [self.tokens[at] for at in self.at]

    @cached_property
    def counting(self) -> list[Token]:
        """The words that count, without articles and such."""
        return [word for word in self.words if word.tag not in _SMALL and word.pos != "PUNCT"]

    def following(self) -> Token | None:
        """Return the token behind the stretch."""
        return self.tokens[self.end] if self.end < len(self.tokens) else None

    def before(self) -> Token | None:
        """Return the token before the stretch."""
        return self.tokens[self.start - 1] if self.start else None


def targets_of_words(stretch: TokenSpan) -> frozenset[str]:
    """Return what some words may stand for, seen where they are."""
    words, found = stretch.counting, set[str]()
    if not words:
        return frozenset()
    if " ".join(word.text.lower() for word in words) in _PHRASES:
        return frozenset({ATTRIBUTE})
    if deed(stretch):
        return frozenset({RELATION})
    if _is_noun_phrase(words):
        found.add(OBJECT)
    coloured = all(word.text.lower() in _COLOURS for word in words)  # "a girl in blue"
    if coloured or _counts(words) or (all(map(_describes, words)) and _is_at_noun(stretch)):
        found.add(ATTRIBUTE)
    lower = [token.text.lower() for token in stretch.tokens[stretch.start : stretch.end + 1]]  # "adjacent | to"
    if _relates(words) or load_relations().match_preposition(lower, 0) >= stretch.end - stretch.start:
        found.add(RELATION)
    return frozenset(found)


def targets_of_addition(new: TokenSpan) -> frozenset[str]:
    """Return what an insertion may be of."""
    words, following, found = new.counting, new.following(), set[str]()
    named = any(word.tag in NOUNS for word in words)
    between = new.tokens[new.start : new.end]
    if named:
        found.add(OBJECT)
    if words and all(map(_describes, words)) and (_is_at_noun(new) or not named):
        found.add(ATTRIBUTE)
        alone = not {token.tag for token in between[1:]} & {"CC", ",", "IN", "DT"} and between[0].tag not in {
            "CC",
            ",",
            "IN",
        }
        if alone and following is not None and following.tag in NOUNS:
            found.discard(OBJECT)  # "a baseball | cap"
    elif words and not named and all(_describes(word) or word.tag in _PLACING for word in words):
        found.add(ATTRIBUTE)
    return frozenset(found)


def targets_of_swap(source: Sequence[Token], first: tuple[int, int], second: tuple[int, int]) -> frozenset[str]:
    """Return what two stretches that changed places may be: things, or what describes them."""
    stretches = [TokenSpan.of(source, span) for span in (first, second)]
    if all(_are_articles(each.words) or _counts(each.words) for each in stretches):
        return frozenset({ATTRIBUTE})
    # An article stands where the other thing's number and qualities go: "a dog near three black cats".
    found = [frozenset({ATTRIBUTE}) if _are_articles(each.words) else targets_of_words(each) for each in stretches]
    both = frozenset.intersection(*found)
    described = (each.before() for each in stretches)
    if OBJECT in both and any(
        word is not None and _describes(word) and word.tag not in {"RB", "VBG"} for word in described
    ):
        return both | {ATTRIBUTE}  # "a red car, a blue bus": exchanging the nouns exchanges what describes them
    return both


def deed(stretch: TokenSpan) -> list[Token]:
    """Return the verb, with its preposition, of a verb phrase with an object ("reading a book"); else nothing."""
    words = stretch.counting
    if len(words) < 2 or words[0].tag not in _VERBS or words[0].pos != "VERB" or not _is_doer(stretch.before()):
        return []
    verb = words[: 1 + (words[1].tag in _PLACING)]
    determined = any(stretch.tokens[at].tag in {"DT", "PRP$"} for at in range(stretch.start, stretch.end))
    return verb if determined and _is_noun_phrase(words[len(verb) :]) else []


def counts_instead(old: TokenSpan, new: TokenSpan) -> bool:
    """Whether a number replaces an article or the like, or the other way round: "two dogs" for "a dog"."""
    gone, fresh = old.words, [word for word in new.words if word.pos != "PUNCT"]
    if (
        not gone
        or not fresh
        or not all(word.text.lower() in _QUANTIFIES or word.tag == "CD" for word in (*gone, *fresh))
    ):
        return False
    return not (_are_articles(gone) and _are_articles(fresh))


def noun_after(tokens: Sequence[Token], start: int) -> str:
    """Return the lemma of the head of the noun phrase at or behind ``start``; empty if there is none."""
    head = ""
    for token in tokens[start:]:
        if token.tag in NOUNS:
            head = token.lemma
        elif head:
            break
    return head


def _is_doer(before: Token | None) -> bool:
    return before is not None and (
        before.tag in _NAMING or before.pos == "AUX" or before.tag in {"RB", "WDT", "CC", "IN"}
    )


def _is_noun_phrase(words: Sequence[Token]) -> bool:
    """Whether the words name one thing: a noun with what describes it, and perhaps "of" and another."""
    parts: list[list[Token]] = [[]]
    for word in words:
        if word.text.lower() == "of":
            parts.append([])
        else:
            parts[-1].append(word)
    return (
        bool(words)
        and len(parts) <= 2
        and all(
            part and part[-1].tag in _NAMING and all(word.tag in _NAMING or _describes(word) for word in part)
            for part in parts
        )
    )


def _describes(word: Token) -> bool:
    return word.tag in _DESCRIBING or word.tag in {"NN", "NNP"} or word.text.lower() in _COUNTS


def _is_at_noun(stretch: TokenSpan) -> bool:
    """Whether the words stand before a noun that they describe, or behind "is" and the like."""
    last, before, words = stretch.tokens[stretch.end - 1], stretch.before(), stretch.counting
    if last.tag in NOUNS and stretch.end - 1 not in stretch.at:
        return True  # the noun is the same, in another number
    names = any(word.tag in NOUNS for word in words)
    behind = list(stretch.tokens[stretch.end :])
    acting = len(behind) > 1 and behind[0].text.endswith("ing") and behind[0].text.lower() not in _PURPOSE
    if names and acting and behind[1].tag in NOUNS:
        return False  # "a man | riding horses" is no kind of horses, whatever a tagger takes "riding" for
    described = last.lemma in _COLOURS or last.tag not in NOUNS
    for token in behind:
        if token.tag in NOUNS:
            return True
        if token.text.lower() not in _PURPOSE and token.tag not in (
            _DESCRIBING | _JOINING if described else {"JJ", "HYPH"}
        ):
            break
    if names or before is None:
        return False
    acts = any(word.tag in _VERBS for word in words)
    return before.text.lower() in _COPULA or before.tag in {"RB", "CC", ","} or (before.tag in NOUNS and not acts)


def _counts(words: Sequence[Token]) -> bool:
    return all(word.tag == "CD" or word.text.lower() in _COUNTS or word.text.lower() == "of" for word in words)


def _are_articles(words: Sequence[Token]) -> bool:
    return all(word.text.lower() in ARTICLES for word in words)


def _relates(words: Sequence[Token]) -> bool:
    related = [word for word in words if word.tag in _PLACING | _VERBS or word.text.lower() in _RELATED]
    rest = [word for word in words if word not in related]
    places = all(word.text.lower() in _PLACE_NOUNS for word in words)
    return places or (
        bool(related) and all(word.text.lower() in _PLACE_NOUNS or word.tag in {"RB", "JJ", "JJR"} for word in rest)
    )
