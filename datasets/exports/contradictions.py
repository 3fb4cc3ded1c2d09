"""Contradicted answers: a false answer that differs from a true one in a word or in its yes or no.

Both kinds follow from what is known of the image, and need no model:

- *yes or no*: "Yes, there is a star." becomes "No, there is no star.", and the other way round; also a bare "Yes.";
- *a replaced word*: the edit of a hard negative, whose new word is false of the image, in an answer that has the old word
  once, unless the question names the word (its answer would not fit it) or the answer denies something.
"""

import re
from collections.abc import Iterable, Iterator

from pairwright.datasets.records import Edit

_DENIAL = re.compile(r"\b(?:no|not|none|never|nothing|nobody|without|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_BARE = re.compile(r"(Yes|No)(\.?)")
_YES = re.compile(r"Yes, there (?:(is) an?|(are)) ([a-z]+)\.")
_NO = re.compile(r"No, there (is|are) no ([a-z]+)\.")
_OPPOSITE = {"Yes": "No", "No": "Yes"}


def contradict_answer(question: str, answer: str, edits: Iterable[Edit]) -> Iterator[str]:
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


def _replace_word(question: str, answer: str, edit: Edit) -> str:
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
    return before + edit.after + rest


def _article(word: str) -> str:
    return "an " if word[0] in "aeiou" else "a "
