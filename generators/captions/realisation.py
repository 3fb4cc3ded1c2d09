"""Realisation of edits: applies character-level changes to a caption and leaves the rest as written.

A *change* replaces a span of the source with new words, given as they are written in the middle of a sentence.
`rewrite` applies the changes and adapts their surroundings:

- *a* or *an* before a changed word, by its sound (the article then belongs to the edit);
- capitals: at the start of a sentence, THROUGHOUT or On Each Word, as the caption uses them; also for insertions and
  corrected articles.

A *joined word* has hyphens, apostrophes or slashes ("walk-in", "dog's", "and/or"), or is a placeholder ("<PERSON>",
"<b>") or an HTML entity ("&quot;"). `splits_any_span` detects changes that begin or end inside one; rules do not
make these.

Spacing, punctuation and the case of all other words stay those of the source. Callers inflect
words (`inflection.inflect`), which requires the tag.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from pairwright.datasets.records import Edit
from pairwright.generators.language.inflection import article
from pairwright.generators.lexicon.function_words import words_with

_ARTICLE_BEFORE = re.compile(r"(?:^|(?<=[\s\"'(“‘\[>*]))(an?)(\s+)$", re.IGNORECASE)
# Hyphens may have a space on one side ("a walk- in closet").
_JOINED = re.compile(r"</?\w[^<>\n]{0,40}>|&#?\w{1,31};|\b\w+(?:(?:-\s?|\s-|['’/&])\w+)+")
_ENDS_OF_ARTICLES = frozenset("aAnN")
_JOINTS = frozenset("-'’/&<")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_MAJORITY = 0.8  # share of the words in capitals
_MIN_WORDS = 2  # minimum words from which a style is inferred
_MINOR = words_with("minor")


class Style(Enum):
    """How a caption uses capitals: as sentences do, Each Word (minor ones or not), or THROUGHOUT."""

    SENTENCE = auto()
    TITLE = auto()
    ALL_WORDS = auto()
    CAPITALS = auto()


class Change(NamedTuple):
    """New words for ``source[start:end]``; both are code points. An insertion has ``start == end``."""

    start: int
    end: int
    after: str


def rewrite(source: str, changes: Sequence[Change]) -> tuple[str, tuple[Edit, ...]]:
    """Return ``source`` with the changes applied, and the resulting edits.

    Changes may be in any order, but not overlap; one without effect is skipped.

    Returns:
        The new text and its edits in order of position: ``source[e.before_span] == e.before``,
        ``text[e.after_span] == e.after``, and the text between them is equal on both sides.

    Raises:
        ValueError: a span is outside the text or two overlap (a defect of the caller).
    """
    adapted: list[Change] = []
    done = 0
    for change in sorted(changes):
        if not done <= change.start <= change.end <= len(source):
            raise ValueError(f"change at {change.start}:{change.end} overlaps another or leaves the text")
        start, after = _fix_article_and_case(source, change, done)
        if source[start : change.end] != after:
            adapted.append(Change(start, change.end, after))
            done = change.end
    return apply_changes(source, adapted)


def apply_changes(source: str, changes: Iterable[Change]) -> tuple[str, tuple[Edit, ...]]:
    """Apply changes, given in order of position, without adapting them; return the text and the edits."""
    parts: list[str] = []
    edits: list[Edit] = []
    done, length = 0, 0
    for start, end, after in changes:
        kept = source[done:start]
        at = length + len(kept)
        parts += [kept, after]
        edits.append(Edit(source[start:end], after, (start, end), (at, at + len(after))))
        done, length = end, at + len(after)
    parts.append(source[done:])
    return "".join(parts), tuple(edits)


def joined_word_spans(source: str) -> tuple[tuple[int, int], ...]:
    """Return the code points of words that are joined by hyphens, apostrophes or slashes, and of placeholders and entities."""
    if _JOINTS.isdisjoint(source):
        return ()
    return tuple(found.span() for found in _JOINED.finditer(source))


def splits_any_span(spans: Sequence[tuple[int, int]], changes: Sequence[Change]) -> bool:
    """Return whether a change begins or ends within one of the words of a text, given by their code points."""
    return bool(spans) and any(
        start < edge < end for start, end in spans for change in changes for edge in (change.start, change.end)
    )


@lru_cache(maxsize=4)  # one caption is edited many times in a row
def caption_style(source: str) -> Style:
    """Return how a caption uses capitals."""
    if source[1:].islower():
        return Style.SENTENCE  # most captions
    words = _LETTERS.findall(source)
    long = [word for word in words if len(word) > 1]
    if source.isupper() or (len(long) > _MIN_WORDS and sum(word.isupper() for word in long) >= _MAJORITY * len(long)):
        return Style.CAPITALS if len(source) > 1 else Style.SENTENCE
    after_first = words[1:]
    major = [word for word in after_first if word.lower() not in _MINOR]
    if len(major) < _MIN_WORDS or not all(word[0].isupper() for word in major):
        return Style.SENTENCE
    minor = [word for word in after_first if word.lower() in _MINOR]
    return Style.ALL_WORDS if minor and all(word[0].isupper() for word in minor) else Style.TITLE


def normalize_capitals(text: str, source: str) -> str:
    """Return ``text`` without Title Case or ALL CAPITALS where the source has sentence case.

    Words of the source keep the capitals that they have there.
    """
    if caption_style(text) is Style.SENTENCE or caption_style(source) is not Style.SENTENCE:
        return text
    inner = [word for word in _LETTERS.finditer(source) if not _starts_sentence(source, word.start())]
    own = {word[0].lower(): word[0] for word in reversed(inner)}  # the first word is capitalized by position
    opens = source[:1].isupper()

    def styled(word: re.Match[str]) -> str:
        plain = own.get(word[0].lower(), word[0].lower())
        return plain[:1].upper() + plain[1:] if opens and _starts_sentence(text, word.start()) else plain

    return _LETTERS.sub(styled, text)


def _fix_article_and_case(source: str, change: Change, done: int) -> tuple[int, str]:
    """Return the start and text of the edit with article and capitals adapted."""
    before = source[change.start : change.end]
    style = caption_style(source)
    after = _apply_style(change.after, style, opens=before[:1].isupper() and _starts_sentence(source, change.start))
    start = max(done, change.start - 8)
    # Fast path: most words have no "a" or "an" before them.
    found = (
        _ARTICLE_BEFORE.search(source, start, change.start)
        if source[start : change.start].rstrip()[-1:] in _ENDS_OF_ARTICLES
        else None
    )
    if found is None or not after or not after[0].isalnum():
        return change.start, after
    written, gap = found[1], found[2]
    wanted = article(after.lower() if style is Style.CAPITALS else after)
    if wanted == written.lower():
        return change.start, after
    if before and article(before) != written.lower():
        # The source has a wrong article; correcting it would make the edit detectable by its grammar.
        return change.start, after
    return found.start(1), _match_word_case(wanted, written, style) + gap + after


def _starts_sentence(source: str, start: int) -> bool:
    before = source[:start].rstrip(" \t\n\"'(“")
    return not before or before[-1] in ".!?"


def _match_word_case(word: str, written: str, style: Style) -> str:
    if style is Style.CAPITALS or (written.isupper() and len(written) > 1):
        return word.upper()
    return _capitalize(word) if written[:1].isupper() else word


def _capitalize(word: str) -> str:
    return word[:1].upper() + word[1:]


def _apply_style(after: str, style: Style, *, opens: bool) -> str:
    """Return new words in the style of the caption, capitalized if ``opens`` (they begin a capitalized sentence)."""
    if style is Style.CAPITALS:
        return after.upper()
    if style is not Style.SENTENCE:
        minor = _MINOR if style is Style.TITLE else frozenset()
        after = _LETTERS.sub(lambda word: word[0] if word[0] in minor else _capitalize(word[0]), after)
    return _capitalize(after) if opens else after


def lowercase_span(source: str, start: int, end: int, *, proper: bool = False) -> str:
    """Return ``source[start:end]`` as written in the middle of a sentence.

    The first letter is lowered at the start of a sentence, unless the first word is a proper name or has several
    capitals ("TV").
    """
    text = source[start:end]
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    opens = not any(char.isalnum() for char in source[:start])
    if proper or not opens or first[1:] != first[1:].lower():
        return text
    return text[:1].lower() + text[1:]
