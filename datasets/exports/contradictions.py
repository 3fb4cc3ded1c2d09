"""Contradicted answers: a false answer that differs from a true one in a word or in its yes or no.

Both kinds follow from what is known of the image, and need no model:

- *yes or no*: "Yes, there is a star." becomes "No, there is no star.", and the other way round; also a bare "Yes.";
- *a replaced word*: the edit of a hard negative, whose new word is false of the image, in an answer that has the old word
  once, unless the question names the word (its answer would not fit it) or the answer denies something.

The new word is false of the image where the caption had the old one, and fits the grammar of that place. It is therefore
used only where the answer uses the old word in the same way (`_is_used_alike`): in "a glass vase", *glass* can become
*wooden*, in "The vase is made of glass." it cannot.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pairwright.datasets.records import Edit

_DENIAL = re.compile(r"\b(?:no|not|none|never|nothing|nobody|without|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_BARE = re.compile(r"(Yes|No)(\.?)")
_YES = re.compile(r"Yes, there (?:(is) an?|(are)) ([a-z]+)\.")
_NO = re.compile(r"No, there (is|are) no ([a-z]+)\.")
_OPPOSITE = {"Yes": "No", "No": "Yes"}
_WORD = re.compile(r"\w+")
_LAST_WORD, _FIRST_WORD = re.compile(r"(\w+)\s$"), re.compile(r"^\s(\w+)")
_BE: Final = frozenset({"is", "are"})
_REACH: Final = 3  # words behind an attribute, among which its noun is: "red fire hydrant"
_SHORTEST: Final = 3  # letters of a word that says what a bare answer is about


@dataclass(frozen=True)
class CaptionEdit:
    """The edit of a hard negative, with its caption.

    Attributes:
        edit: spans in ``caption``.
        caption: true text.
        target: ``object``, ``attribute`` or ``relation``.
    """

    edit: Edit
    caption: str
    target: str

    @cached_property
    def before(self) -> str:
        """Caption up to the edit."""
        return self.caption[: self.edit.before_span[0]]

    @cached_property
    def behind(self) -> str:
        """Caption from the end of the edit."""
        return self.caption[self.edit.before_span[1] :]


def contradict_answer(question: str, answer: str, edits: Iterable[CaptionEdit]) -> Iterator[str]:
    """Yield false answers to ``question``, given the true one and the edits of hard negatives of the image."""
    if opposite := _contradict_yes_or_no(answer):
        yield opposite
    elif not _DENIAL.search(answer):
        for edit in edits:
            if changed := _replace_word(question, answer, edit):
                yield changed


def _contradict_yes_or_no(answer: str) -> str:
    if found := _BARE.fullmatch(answer):
        return _OPPOSITE[found[1]] + found[2]
    if found := _YES.fullmatch(answer):
        return f"No, there {found[1] or found[2]} no {found[3]}."
    if found := _NO.fullmatch(answer):
        return f"Yes, there {found[1]} {_article(found[2]) if found[1] == 'is' else ''}{found[2]}."
    return ""


def _replace_word(question: str, answer: str, known: CaptionEdit) -> str:
    edit = known.edit
    if not edit.before or not edit.after:
        return ""
    word = re.compile(rf"(?<!\w){re.escape(edit.before)}(?!\w)")
    places = list(word.finditer(answer))
    named = rf"(?<!\w){re.escape(edit.before.removesuffix('s'))}"  # "hearts" names a heart
    if len(places) != 1 or re.search(named, question, re.IGNORECASE):
        return ""
    before, rest = answer[: places[0].start()], answer[places[0].end() :]
    if re.search(r"\ban? $", before, re.IGNORECASE) and _article(edit.before) != _article(edit.after):
        return ""
    return before + edit.after + rest if _is_used_alike(question, before, rest, known) else ""


def _is_used_alike(question: str, before: str, rest: str, known: CaptionEdit) -> bool:
    """Return whether an answer uses a word as the caption does.

    The words beside it are the same: for an attribute the next one (its noun), for an object the next or the previous one,
    for a relation both, or the next one behind *is* or *are*. An attribute may also be a predicate of its noun ("The
    hydrant is red."). A bare answer ("red") has to be to a question that names a word near the edit.

    Args:
        question: of the answer.
        before: answer up to the word.
        rest: answer behind the word.
        known: edit that replaces the word.
    """
    following_words = _WORD.findall(known.behind)[:_REACH]
    near = (*_WORD.findall(known.before)[-_REACH:], *following_words)
    in_question = not {word for word in near if len(word) > _SHORTEST}.isdisjoint(_WORD.findall(question))
    if not _WORD.search(before) and not _WORD.search(rest):
        return in_question
    previous, following = _first(_LAST_WORD, before), _first(_FIRST_WORD, rest)
    same_previous = previous == _first(_LAST_WORD, known.before)
    same_following = following != "" and following == _first(_FIRST_WORD, known.behind)
    is_predicate = previous in _BE
    if known.target == "relation":
        return same_following and (same_previous or is_predicate)
    if known.target == "attribute" and is_predicate and not _WORD.search(rest):
        return in_question or _WORD.findall(before)[-2:-1] == [word for word in following_words if word in before][-1:]
    return same_following or (known.target == "object" and same_previous and previous != "")


def _first(pattern: re.Pattern[str], text: str) -> str:
    """Return the word beside an edit in lower case; empty at an end of the text or at a mark."""
    found = pattern.search(text)
    return found[1].lower() if found else ""


def _article(word: str) -> str:
    return "an " if word[0] in "aeiou" else "a "
