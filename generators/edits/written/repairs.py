"""Reversal of repairs beside the edit, so that a text differs from its source in the edit only.

Models silently correct spelling ("lap top", "siting") and minor words: articles, auxiliaries, punctuation. Such repairs
would identify the edited caption, so they are undone.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Final

from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.written.alignment import Difference, agree, differences
from pairwright.generators.edits.written.targets import NOUNS
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.function_words import words_with

_MINOR = words_with("repaired")
_LONG: Final = 5  # minimum letters of a known word to be compared by similarity
_SIMILAR: Final = 0.85  # similarity of two spellings of a long word
_MISSPELT: Final = 0.7  # the same for an unknown word
_BEFORE_NOUNS: Final = frozenset({"CD", "JJ", "PRP$"})


def is_minor(token: Token) -> bool:
    """Return whether a word alone is no edit: an article, auxiliary or punctuation mark."""
    return token.text.lower() in _MINOR or token.tag == "POS" or token.pos in {"PUNCT", "AUX"}


def restore_spelling(
    source: Sequence[Token], text: Sequence[Token], is_known: Callable[[Token], bool]
) -> Sequence[Token]:
    """Return the text with respelled words of the source as the source spells them."""
    gone, new = _unmatched_words(source, text)
    if not gone or not new:
        return text
    found = differences(source, text)
    old = [token for each in found for token in each.old.words]
    misspelt = [token for token in old if _form(token) in gone]
    made = list(text)
    for at in sorted((at for each in found for at in each.new.at), reverse=True):
        token, following = text[at], made[at + 1 : at + 2]
        parts = next((two for two in pairwise(old) if _joined(*two) == token.text.lower()), None)
        whole = next((each for each in old if following and _joined(token, *following) == each.text.lower()), None)
        if parts is not None:
            made[at : at + 1] = _split(token, *parts)
        elif whole is not None:
            made[at : at + 2] = [replace(whole, start=token.start, end=following[0].end)]
        elif _form(token) in new and (meant := _find_respelled(token, misspelt, is_known)):
            made[at] = replace(token, text=meant.text, lemma=meant.lemma)
    return made


def _find_respelled(token: Token, old: Sequence[Token], is_known: Callable[[Token], bool]) -> Token | None:
    """Return the word of the source that a word respells, or None."""
    for each in old:
        similarity = _similarity(each.text.lower(), token.text.lower())
        alike = similarity > _SIMILAR and len(each.text) >= _LONG if is_known(each) else similarity > _MISSPELT
        if alike and each.text.isalpha() and not agree(each, token):
            return each
    return None


@lru_cache(maxsize=50_000)
def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio() if one[0] == other[0] else 0.0


def restore_minor_words(source: Sequence[Token], text: Sequence[Token], *, add: bool) -> Sequence[Token]:
    """Return an addition or a swap with the minor words of its source: deleted ones are restored.

    Inserted ones are removed from a swap; of an addition they may be a part.
    """
    gone, new = _unmatched_words(source, text)
    new = Counter[str]() if add else new
    if not new and not any(is_minor(token) for token in source if _form(token) in gone):
        return text
    words, removed = {token.text.lower() for token in source}, set[int]()
    inserted: dict[int, list[Token]] = {}
    for each in differences(source, text):
        if add and all(map(is_minor, each.new.words)):
            continue
        for at in each.new.at:
            if new[_form(text[at])] and _may_move(text[at]) and _may_insert(text[at], text, at + 1, words):
                new[_form(text[at])] -= 1
                removed.add(at)
        for at in each.old.at:
            token, place = source[at], _place(each, at, add=add)
            movable = gone[_form(token)] and _may_move(token) and token.text.isalpha()
            if movable and (add or _may_insert(token, text, place, words)):
                gone[_form(token)] -= 1
                inserted.setdefault(place, []).append(token)
                removed |= {place - 1} if token.tag == "DT" and place and text[place - 1].tag == "DT" else set()
    made: list[Token] = []
    for at in range(len(text) + 1):
        made += [_insert_before(token, text, at) for token in inserted.get(at, ())]
        made += [text[at]] if at < len(text) and at not in removed else []
    return made


def _place(difference: Difference, at: int, *, add: bool) -> int:
    """Return the position in the text at which a deleted word is restored."""
    counterpart, old, new = dict(difference.agreed), difference.old, difference.new
    end = new.end if add or at > old.start else new.start
    return next((counterpart[then] for then in range(at + 1, old.end) if then in counterpart), end)


def _may_move(token: Token) -> bool:
    return is_minor(token) and token.tag != "IN"


def _may_insert(token: Token, text: Sequence[Token], at: int, words: Collection[str]) -> bool:
    """Return whether a minor word may be inserted or removed; articles only before a noun form of the source."""
    if token.text.lower() not in ARTICLES:
        return True
    noun = next((each for each in text[at:] if each.tag in NOUNS), None)
    return noun is not None and noun.text.lower() in words and not (at and text[at - 1].tag in _BEFORE_NOUNS)


def _unmatched_words(source: Sequence[Token], text: Sequence[Token]) -> tuple[Counter[str], Counter[str]]:
    one, other = Counter(map(_form, source)), Counter(map(_form, text))
    return one - other, other - one


def _form(token: Token) -> str:
    word = token.text.lower()
    return "a" if word in ARTICLES else word


def _joined(one: Token, other: Token) -> str:
    return f"{one.text}{other.text}".lower()


def _split(token: Token, one: Token, other: Token) -> list[Token]:
    middle = token.start + len(one.text)  # a gap before the second part, within the word
    return [replace(one, start=token.start, end=middle - 1), replace(other, start=middle, end=token.end)]


def _insert_before(token: Token, text: Sequence[Token], at: int) -> Token:
    """Return a token of the source placed before ``text[at]``, after a space."""
    start = text[at - 1].end + 1 if at else 0
    return replace(token, text=token.text if token.start else token.text.lower(), start=start, end=start - 1)
