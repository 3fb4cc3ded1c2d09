"""Detection of answers that are given as alternatives: "(c) or (d)", "entailment and neutral", "5 apples or 6".

A text is reduced to its *mentions* of answers, in order. Two mentions are alternatives if only a list separator is
between them: a comma, a slash, "and" or "or", with articles and hedges ("or possibly the"). If a mention is followed by
more words of the answer (a letter before a paraphrased choice, a number before a unit), a few words may precede the
conjunction: "(d) front yard or (e) garage".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_HEDGES = r"(?:(?:an?|the|option|choice|answer|also|even|just|maybe|perhaps|possibly|either|both)\s+)*"
_QUOTES = r"\s\"'“”‘’`*_"
_CONJUNCTION = r"(?:[,;]?\s*\b(?:and/or|and|or)\b|/|&)"
_LISTED = re.compile(rf"[{_QUOTES}).]*(?:[,;]|{_CONJUNCTION})\s*{_HEDGES}[{_QUOTES}(]*", re.IGNORECASE)
_CONJOINED = re.compile(rf".*{_CONJUNCTION}\s*{_HEDGES}[{_QUOTES}(]*", re.IGNORECASE | re.DOTALL)
_LOOSE = re.compile(  # before any mention
    rf"[{_QUOTES}).:]*(?:[\w'’-]+\s+){{0,3}}?[\w'’-]*[{_QUOTES}]*{_CONJUNCTION}\s*{_HEDGES}[{_QUOTES}(]*", re.IGNORECASE
)
_OR = re.compile(rf"[^.;!?]{{0,100}}?\bor\s+{_HEDGES}[{_QUOTES}(]*", re.IGNORECASE)  # before a letter or a number
_DENIED = re.compile(r"\b(?:not|never|neither|cannot|rather|instead)\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of an answer in a text.

    Attributes:
        start, end: its span, in code points.
        answer: the answer.
        whole: whether the span is the complete answer, not a letter or number followed by more words.
    """

    start: int
    end: int
    answer: str
    whole: bool = True


def listed_answers(text: str, mentions: Sequence[Mention]) -> list[str]:
    """Return the distinct answers of the list that begins with the first mention; one answer if there is no list.

    Args:
        text: the text.
        mentions: non-overlapping mentions in the text, in order.
    """
    if not mentions or _DENIED.search(text[: mentions[0].start]):
        return []
    listed = [mentions[0]]
    conjoined = False
    for before, after in pairwise(mentions):
        gap = text[before.end : after.start]
        if not _joins_list_items(gap, before, after):
            break
        conjoined = conjoined or _CONJOINED.fullmatch(gap) is not None
        listed.append(after)
    if not conjoined and re.search(r"\w", text[listed[-1].end :]):
        listed = listed[:1]  # "(b), (c) is too warm": a comma makes a list only at the end of the text
    return list(dict.fromkeys(mention.answer for mention in listed))


def _joins_list_items(gap: str, before: Mention, after: Mention) -> bool:
    """Return whether the words between two mentions make them items of one list."""
    if _LISTED.fullmatch(gap):
        return True
    if before.whole and before.answer != after.answer:
        return False
    # "(d) yard": a letter and its own choice are one item.
    same = before.answer == after.answer and not gap.strip(" \"'“”‘’`*_).:")
    pattern = _LOOSE if after.whole else _OR
    return same or (any(each.fullmatch(gap) for each in {_LOOSE, pattern}) and _DENIED.search(gap) is None)


def find_choice_mentions(text: str, choices: Sequence[str]) -> list[Mention]:
    """Return the mentions of choices in a text, by their texts or letters."""
    letters = {chr(ord("A") + at): choice for at, choice in enumerate(choices[:26])}
    by_text = {" ".join(choice.casefold().split()): choice for choice in choices}
    texts = "|".join(
        re.escape(text).replace(r"\ ", r"\s+") for text in sorted(by_text, key=len, reverse=True) if text.strip()
    )
    pattern = re.compile(
        rf"(?<!\w)(?P<text>{texts or '(?!)'})(?!\w)|\((?P<round>[A-Za-z])\)"
        r"|(?<![\w'’])(?:(?P<marked>[A-Za-z])[).:](?!\w)|(?P<bare>[A-Z])(?![\w'’]))",
        re.IGNORECASE,
    )
    return list(_choices_in(pattern, text, letters, by_text))


def _choices_in(
    pattern: re.Pattern[str], text: str, letters: dict[str, str], by_text: dict[str, str]
) -> Iterator[Mention]:
    for found in pattern.finditer(text):
        if found["text"]:
            yield Mention(found.start(), found.end(), by_text[" ".join(found["text"].casefold().split())])
            continue
        bare = found["bare"]
        if bare and (bare.islower() or (bare == "A" and not _stands_alone(text, found.end()))):
            continue  # "a" is mostly an article
        letter = (found["round"] or found["marked"] or bare).upper()
        if letter in letters:
            yield Mention(found.start(), found.end(), letters[letter], whole=False)


def _stands_alone(text: str, end: int) -> bool:
    return re.match(rf"\s*(?:\Z|[,;.!]|{_CONJUNCTION})", text[end:]) is not None


def find_word_mentions(text: str, words: Mapping[str, str]) -> list[Mention]:
    """Return the mentions of the values of a set in a text.

    Args:
        text: case-folded text.
        words: case-folded word -> its value.
    """
    names = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)
    pattern = re.compile(rf"(?<![\w-])(?:{names or '(?!)'})(?![\w-])")
    return [Mention(found.start(), found.end(), words[found[0]]) for found in pattern.finditer(text)]
