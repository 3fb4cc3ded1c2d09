"""Word-by-word differences between a caption and a text, with agreement set apart.

A *difference* is a span of the caption and the span of the text that replaces it, between equal words (`difflib`). Two
words *agree* if one is the other in another number (a dog, dogs; is, are), or one article or pronoun replaces another
because a noun changed. Capitals make no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import Final

from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.tables import read_rows

_UNINFLECTED: Final = frozenset({"ADP", "ADV", "CCONJ", "SCONJ"})  # "toward" and "towards" are no two numbers
_MINOR: Final = frozenset({"DT", "PRP$", "PDT", "HYPH", "POS", "CC", "WDT", ","})
_FORMS: Final = tuple(frozenset(row["forms"].split()) for row in read_rows("agreeing_forms"))
_OTHER_FORMS: Final = frozenset({"be", "is"}).union(*_FORMS)


@dataclass(frozen=True)
class TokenSpan:
    """Tokens ``start`` up to ``end`` of a text, of which those at positions ``at`` changed (deleted or inserted)."""

    tokens: Sequence[Token]
    start: int
    end: int
    at: tuple[int, ...]

    @classmethod
    def of(cls, tokens: Sequence[Token], span: tuple[int, int]) -> "TokenSpan":
        """Return a span of which all words changed."""
        return cls(tokens, *span, tuple(range(*span)))

    @cached_property
    def words(self) -> list[Token]:
        """The changed words."""
        return [self.tokens[at] for at in self.at]

    @cached_property
    def content(self) -> list[Token]:
        """The changed words without articles, conjunctions and punctuation."""
        return [word for word in self.words if word.tag not in _MINOR and word.pos != "PUNCT"]

    def following(self) -> Token | None:
        """Return the token behind the span."""
        return self.tokens[self.end] if self.end < len(self.tokens) else None

    def before(self) -> Token | None:
        """Return the token before the span."""
        return self.tokens[self.start - 1] if self.start else None


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a caption and a text.

    Attributes:
        agreed: (position in the caption, position in the text) of words that differ in agreement only.
    """

    old: TokenSpan
    new: TokenSpan
    agreed: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, old: TokenSpan, new: TokenSpan, agreed: Sequence[tuple[int, int]] = ()) -> "Difference":
        """Return the difference of two spans, of which all words changed that do not agree."""
        kept = {one for one, _ in agreed}, {other for _, other in agreed}
        old, new = (
            replace(each, at=tuple(at for at in range(each.start, each.end) if at not in own))
            for each, own in zip((old, new), kept, strict=True)
        )
        return cls(old, new, tuple(agreed))

    @property
    def is_agreement(self) -> bool:
        """Whether nothing but agreement differs."""
        return not self.old.at and not self.new.at


def agree(one: Token, other: Token) -> bool:
    """Return whether two different words differ in agreement only: in number, or as articles or pronouns."""
    if one.pos in _UNINFLECTED or other.pos in _UNINFLECTED:
        return False
    word, other_word = one.text.lower(), other.text.lower()
    if word[:1] != other_word[:1]:  # only "be" is inflected to another first letter
        return word in _OTHER_FORMS and other_word in _OTHER_FORMS and _agree(word, one.lemma, other_word, other.lemma)
    return _agree(word, one.lemma, other_word, other.lemma)


@lru_cache(maxsize=50_000)
def _agree(one: str, lemma: str, other: str, other_lemma: str) -> bool:
    if any(one in forms and other in forms for forms in _FORMS):
        return True
    if not (one.isalpha() and other.isalpha()) or one == other:
        return False
    return any(
        base in {one, other} and {one, other} & {inflect(base, "NNS"), inflect(base, "VBZ")} - {base}
        for base in {lemma, other_lemma}
    )


def lower_words(tokens: Iterable[Token]) -> list[str]:
    """Return the words of tokens in lower case."""
    return [token.text.lower() for token in tokens]


def differences(source: Sequence[Token], text: Sequence[Token]) -> list[Difference]:
    """Return where two texts differ, from left to right."""
    steps = SequenceMatcher(None, lower_words(source), lower_words(text), autojunk=False).get_opcodes()
    return [
        _difference(TokenSpan(source, start, end, ()), TokenSpan(text, new_start, new_end, ()))
        for kind, start, end, new_start, new_end in steps
        if kind != "equal"
    ]


def _difference(old: TokenSpan, new: TokenSpan) -> Difference:
    """Return the difference of two spans; words that agree are matched from left to right."""
    agreed, at = list[tuple[int, int]](), new.start
    for one in range(old.start, old.end):
        other = next((each for each in range(at, new.end) if agree(old.tokens[one], new.tokens[each])), None)
        if other is not None:
            agreed.append((one, other))
            at = other + 1
    return Difference.of(old, new, agreed)
