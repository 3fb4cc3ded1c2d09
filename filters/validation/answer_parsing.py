"""What a judge's free-form answer picks: the first text, the second, both, neither, or nothing that can be told.

Judges are asked for "(1)", "(2)", "both" or "neither", and mostly say so. Some repeat the text behind its number, some
explain first and choose at the end, some find neither right and then name the closer one: that one is their pick. What
cannot be told is `UNCLEAR`, never a guess.
"""

import re
from typing import Final

from pairwright.generators.language.vocabulary import normalize_text
from pairwright.generators.rationales.multiple_answers import Mention, listed_answers

FIRST, SECOND, BOTH, NEITHER, REFUSED, UNCLEAR = "first", "second", "both", "neither", "refused", "unclear"
PICKS: Final = (FIRST, SECOND, BOTH, NEITHER, REFUSED, UNCLEAR)

_NUMBERED: Final = {"1": FIRST, "2": SECOND}
_LABEL = r"\(\s*([12])\s*\)|\b(?:caption|option|description|text|number|choice|output|answer)s?\s*:?\s*#?([12])\b"
_LABELS: Final = re.compile(_LABEL, re.IGNORECASE)
# The answer itself: a number alone, in brackets, or after a word that announces it.
_OPENING: Final = re.compile(
    r"\W*(?:(?:the\s+)?(?:correct|right|best|better|accurate|true|final)?\s*"
    r"(?:output|answer|choice|option|caption|description)?\s*(?:is|:)?\W*)?"
    r"(?:\(\s*(?P<a>[12])\s*\)|(?P<b>[12]))(?=$|[\s.,:;)\"'*\n-])(?!\W*\s(?:and|or|nor)\b|\s*[&/])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?<![\w.])\(?\s*([12])\s*\)?(?![\w]|\.\d)")
_NEITHER: Final = re.compile(
    r"\bneither\b|\bnone\s+of\b|\bno\s+caption\b|\bboth\b[^.]*\b(?:false|wrong|incorrect|inaccurate)\b", re.IGNORECASE
)
_BOTH: Final = re.compile(r"\W*(?:output|answer)?\W*both\b", re.IGNORECASE)
_FORCED: Final = re.compile(
    r"\b(?:closest|closer|choos\w*|chose\w*|pick\w*|select\w*|better|best|more\s+accurate|most\s+accurate|correct\s+caption)\b",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(r"\b(?:sorry|cannot|can't|unable|won't|not\s+able)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")


def parse_pick(answer: str, first: str = "", second: str = "") -> str:
    """Return which text an answer picks, one of `PICKS`.

    Args:
        answer: what the judge said.
        first: text (1), for answers that quote a text without its number.
        second: text (2).
    """
    said = answer.strip()
    labels = _labels(said)
    if opening := _OPENING.match(said):
        one = _NUMBERED[opening["a"] or opening["b"]]
        pick = one if len(_listed(said)) < 2 else _forced_choice(said) or UNCLEAR
    elif _NEITHER.search(said):
        pick = _forced_choice(said) or NEITHER
    elif _BOTH.match(said):
        pick = BOTH
    elif labels:
        pick = labels[0] if len(set(labels)) == 1 else _forced_choice(said) or UNCLEAR
    else:
        pick = _quoted(said, first, second) or (REFUSED if _REFUSAL.search(said) else UNCLEAR)
    return pick


def _labels(text: str) -> list[str]:
    return [_NUMBERED[found[1] or found[2]] for found in _LABELS.finditer(text)]


def _listed(said: str) -> list[str]:
    """Return the texts of the list that an answer begins with: both for "(1), (2)"."""
    numbers = [Mention(found.start(), found.end(), found[1]) for found in _NUMBER.finditer(said)]
    return listed_answers(said, numbers)


def _forced_choice(said: str) -> str:
    """Return the text that is chosen in the end: the only one named in, or right behind, a sentence that chooses."""
    sentences = _SENTENCE.split(said)
    for at in reversed(range(len(sentences))):
        if _FORCED.search(sentences[at]) and not _NEITHER.search(sentences[at]):
            following = " ".join(sentences[at + 1 : at + 2])
            for text in (sentences[at], sentences[at] + " " + following):
                named = set(_labels(text))
                if len(named) == 1:
                    return named.pop()
    return ""


def _quoted(said: str, first: str, second: str) -> str:
    """Return the text that the answer repeats, when it repeats one of the two."""
    spoken = f" {normalize_text(said)} "
    held = [name for name, text in ((FIRST, first), (SECOND, second)) if text and f" {normalize_text(text)} " in spoken]
    return held[0] if len(held) == 1 else ""
