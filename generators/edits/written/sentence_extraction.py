"""Extraction of the edited sentence from a model's answer, without labels, quotes, remarks and markup.

Models label their answer ("New sentence:"), repeat the source before it, quote it, append remarks, and mark the words
that they changed ("a **cat**", "a CAT"). None of that is part of the caption, and a remainder of it would make a
negative detectable. Characters and marks that the source has itself are kept.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from html import unescape
from typing import Final

from pairwright.generators.captions.realisation import Style, caption_style
from pairwright.generators.language.vocabulary import normalize_text
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.llm.output.boilerplate import starts_trailing_remark
from pairwright.generators.llm.output.json_parsing import strip_control_tokens, strip_thinking
from pairwright.generators.llm.output.plain_text import TextShape, extract_text

_PLAIN: Final = re.compile(r"[A-Za-z](?:-?[a-z0-9, ])*(?<=[a-z0-9])\.?")  # no markup, and nothing around the sentence
_LAYERS: Final = 4  # labels and remarks around one sentence
_SIGNS: Final = frozenset({"Cf", "So"})  # Unicode categories: invisible characters; emoji and ticks
# As our prompts begin.
_NEXT_CAPTION: Final = re.compile(r"\n[ \t>*#_]*(?:caption|sentence)[*_]*[ \t]*:", re.IGNORECASE)
_ASIDE: Final = re.compile(
    r"\s(?:[(\[](?P<bracketed>[^()\[\]]{1,300})[)\]]|(?:-{2,}|[—–|])\s*(?P<dashed>[^()\[\]—–|]{1,300}))[ .]*\Z"
)
_NOTE: Final = re.compile(
    r"(?:was|were|changed|replaced|swapped|exchanged|added|modified|edited|replace|swap|add|originally|formerly|instead|"
    r"rather than|not)\b|.*(?:->|=>|→)",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\A[*_]{0,2}\w[\w'-]*(?: [\w'-]+){0,4}[*_]{0,2}:[*_]{0,2}\s+(?=\S)")
_POINTING: Final = re.compile(r"\A(?:[>#]+|[-=]+>|[→⇒])\s+")
_BEFORE_AND_AFTER: Final = re.compile(r"\s*(?:[-=]+>|[→⇒]|\n)\s*")
_ONE_LINE: Final = TextShape("line")

# Markup: a character of it, its pattern and the replacement; applied only if the source lacks the character.
_MARKS: Final = (
    ("*", re.compile(r"(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\1"), r"\2"),
    ("_", re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_\n]+)(?<=\S)\1(?!\w)"), r"\2"),
    ("`", re.compile(r"(`+)([^`\n]+)\1"), r"\2"),
    ("~~", re.compile(r"~~[^~\n]+~~\s?"), ""),
    ("[", re.compile(r"\[([^\[\]]+)\]"), r"\1"),
    ("(", re.compile(r"\(([^()]+)\)"), r"\1"),
    ("<", re.compile(r"</?[a-z][a-z_-]{0,20}\s*/?>", re.IGNORECASE), ""),
    ('"', re.compile(r'(?<!\d)"'), ""),
    ("'", re.compile(r"(?<![\w'])'([^'\n]+)'(?![\w'])"), r"\1"),
)
_CAPITALIZED: Final = re.compile(r"\b[A-Z]{2,}\b")
_SHORT_FORMS = words_with("abbreviation")
_NO_TEXT = words_with("no_text")


@lru_cache(maxsize=1_000)  # the captions of an image are compared with each of its texts
def comparison_key(text: str) -> str:
    """Return a text without capitals, spacing and final mark: equal keys count as the same text."""
    return normalize_text(text).rstrip(" .!?,;:…")


def extract_sentence(text: str, source: str, is_word: Callable[[str], bool]) -> str:
    """Return the sentence in a model's answer, without markup that its source lacks; empty if the answer is "none"."""
    if not _PLAIN.fullmatch(text):
        text = _match_characters(strip_control_tokens(strip_thinking(text)[0])[0].strip(), source)
        if not _is_marked(source):
            text = _strip_wrapping(_strip_repeated_source(text, source), source)
        text = _strip_emphasis_capitals(_strip_markup(text, source), source, is_word)
    plain = text.lower().strip(" .!")
    return "" if plain in _NO_TEXT and plain != source.lower().strip(" .!") else text


@lru_cache(maxsize=64)  # a caption has several texts in a row
def _is_marked(source: str) -> bool:
    """Return whether the source itself has labels or quotes like those that models write."""
    return bool(extract_text(source, _ONE_LINE).tolerated)


def _match_characters(text: str, source: str) -> str:
    """Return a text with the source's kinds of letters, quotes and hyphens, and no symbols that it lacks."""
    if "&" in text and "&" not in source:
        text = unescape(text)
    composed = "NFC" if unicodedata.is_normalized("NFC", source) else "NFD"
    text = unicodedata.normalize(composed, text)  # type: ignore[arg-type]
    if not text.isascii():
        for plain, others in (("'", "‘’ʼ"), ('"', "“”„‟"), ("-", "‐‑")):
            if not any(mark in source for mark in others):
                text = re.sub(f"[{others}]", plain, text)
        text = "".join(c for c in text if unicodedata.category(c) not in _SIGNS or c in source).strip()
    if "’" in source and "'" not in source:
        text = re.sub(r"(?<=\w)'(?=\w)", "’", text)
    return text


def _strip_repeated_source(text: str, source: str) -> str:
    """Return the part behind the source if the text repeats it: "a cat" of "a dog -> a cat"."""
    before, *behind = _BEFORE_AND_AFTER.split(text)
    repeats = len(behind) == 1 and comparison_key(_strip_wrapping(before, source)) == comparison_key(source)
    return behind[0] if repeats else text


def _strip_wrapping(text: str, source: str) -> str:
    """Return a text without the quotes, labels, preambles and remarks around it, and without a next caption."""
    for _ in range(_LAYERS):
        found = _strip_quotes_and_labels(_POINTING.sub("", text))
        inner = _without_aside(_without_label(found, source), source)
        if inner == found:
            return found
        text = inner
    return text


def _strip_quotes_and_labels(text: str) -> str:
    for tried in (text, _NEXT_CAPTION.split(text, maxsplit=1)[0]):
        read = extract_text(tried, _ONE_LINE)
        if read.value is not None:
            return read.value
    return text


def _without_label(text: str, source: str) -> str:
    """Return a text without its label if it has more colons than the source: "a cat" of "Hard negative caption: a cat"."""
    label = _LABEL.match(text) if text.count(":") > source.count(":") else None
    return text[label.end() :] if label else text


def _without_aside(text: str, source: str) -> str:
    """Return a text without a trailing remark, in brackets or behind a dash, unless it is what the edit adds."""
    aside = _ASIDE.search(text)
    if aside is None:
        return text
    before, remark = text[: aside.start()].rstrip(), aside["bracketed"] or aside["dashed"]
    if starts_trailing_remark(remark):
        return before
    own = aside[0].strip()[0] in source or comparison_key(before) == comparison_key(source)
    ended = aside["bracketed"] is not None and before.endswith((".", "!", "?"))
    return before if (ended or _NOTE.match(remark)) and not own else text


def _strip_markup(text: str, source: str) -> str:
    for mark, around, kept in _MARKS:
        if mark in text and mark not in source:
            text = around.sub(kept, text)
    return text.strip()


def _strip_emphasis_capitals(text: str, source: str, is_word: Callable[[str], bool]) -> str:
    """Return a text with words in capitals lowered, unless they replace words in capitals of the source."""
    own = set(_CAPITALIZED.findall(source))
    shouted = set(_CAPITALIZED.findall(text)) - own
    if not shouted or caption_style(source) is not Style.SENTENCE or caption_style(text) is not Style.SENTENCE:
        return text
    if own - set(_CAPITALIZED.findall(text)):
        return text  # "a sign that says STOP"
    plain = {word for word in shouted - _SHORT_FORMS if is_word(word.lower())}
    return _CAPITALIZED.sub(lambda found: found[0].lower() if found[0] in plain else found[0], text)
