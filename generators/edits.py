"""Character-level edits: a caption changes where it is asked to change and stays as written everywhere else.

A *change* says which stretch of the source gets which new words, written as they would stand in the middle of a
sentence. `rewrite` puts the changes in and mends what the new words upset around them:

- *a* or *an* before a changed word, when the sound asks for the other one (the article then belongs to the edit);
- the capital at the start of the sentence, and capitals throughout in a caption that is written in them.

Spacing, punctuation and the case of all other words are those of the source, so nothing but the edit itself tells
the two texts apart. Number is the caller's business (`inflection.inflect`), since it needs the tag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.datasets.records import Edit
from pairwright.generators.language.inflection import article

_ARTICLE_BEFORE = re.compile(r"(?:^|(?<=[\s\"'(]))(an?)(\s+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """New words for ``source[start:end]``; both are code points. An insertion has ``start == end``."""

    start: int
    end: int
    after: str


def rewrite(source: str, changes: Sequence[Change]) -> tuple[str, tuple[Edit, ...]]:
    """Return ``source`` with the changes made, and what changed.

    Args:
        source: any text.
        changes: stretches that do not overlap, in any order. One that changes nothing is left out.

    Returns:
        The new text and its edits in order of position: ``source[e.before_span] == e.before``,
        ``text[e.after_span] == e.after``, and the stretches between them are equal on both sides.

    Raises:
        ValueError: when a stretch is outside the text or two overlap (a defect of the caller).
    """
    parts: list[str] = []
    edits: list[Edit] = []
    done, length = 0, 0
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        if not done <= change.start <= change.end <= len(source):
            raise ValueError(f"change at {change.start}:{change.end} overlaps another or leaves the text")
        start, after = _mended(source, change, done)
        before = source[start : change.end]
        if before == after:
            continue
        kept = source[done:start]
        at = length + len(kept)
        parts += [kept, after]
        edits.append(Edit(before, after, (start, change.end), (at, at + len(after))))
        done, length = change.end, at + len(after)
    parts.append(source[done:])
    return "".join(parts), tuple(edits)


def _mended(source: str, change: Change, done: int) -> tuple[int, str]:
    """Return where the edit starts and what it says once article and capitals are right."""
    before = source[change.start : change.end]
    after = _cased(change.after, before, source)
    found = _ARTICLE_BEFORE.search(source, max(done, change.start - 8), change.start)
    if found is None or not after or not after[0].isalnum():
        return change.start, after
    written, gap = found[1], found[2]
    wanted = article(after)
    if wanted == written.lower():
        return change.start, after
    if before and article(before) != written.lower():
        # The source was wrong about its own article; an edit that mends it would stand out by its grammar.
        return change.start, after
    return found.start(1), _like(wanted, written) + gap + after


def _like(word: str, written: str) -> str:
    if written.isupper() and len(written) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if written[:1].isupper() else word


def _cased(after: str, before: str, source: str) -> str:
    if not before or not after:
        return after
    if source.isupper() and len(source) > 1:
        return after.upper()
    return after[:1].upper() + after[1:] if before[:1].isupper() else after


def plain(source: str, start: int, end: int, *, proper: bool = False) -> str:
    """Return ``source[start:end]`` as it would stand in the middle of a sentence.

    The first letter is lowered when the stretch opens the sentence, unless its first word is a proper name or is
    written with more capitals than one ("TV").
    """
    text = source[start:end]
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    opens = not any(char.isalnum() for char in source[:start])
    if proper or not opens or first[1:] != first[1:].lower():
        return text
    return text[:1].lower() + text[1:]
