"""The sentence in what a model wrote, as plain as its source: what stands around it goes, and what marks it up.

Models name what they give ("New sentence:"), say the source again before it, quote it, go on behind it, and point at
the words that they changed ("a **cat**", "a CAT"). None of that is part of the caption, and a trace of it would tell a
negative from its source. What the source has itself is not taken off.
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

_PLAIN: Final = re.compile(r"[A-Za-z](?:-?[a-z0-9, ])*(?<=[a-z0-9])\.?")  # marks nothing, and nothing stands around it
_LAYERS: Final = 4  # labels and remarks around one sentence
_SIGNS: Final = frozenset({"Cf", "So"})  # what is not seen; pictures and ticks
_NEXT_CAPTION: Final = re.compile(
    r"\n[ \t>*#_]*(?:caption|sentence)[*_]*[ \t]*:", re.IGNORECASE
)  # as our prompts begin
_ASIDE: Final = re.compile(
    r"\s(?:[(\[](?P<said>[^()\[\]]{1,300})[)\]]|(?:-{2,}|[—–|])\s*(?P<dashed>[^()\[\]—–|]{1,300}))[ .]*\Z"
)
_NOTE: Final = re.compile(
    r"(?:was|were|changed|replaced|swapped|exchanged|added|modified|edited|replace|swap|add|originally|formerly|instead|"
    r"rather than|not)\b|.*(?:->|=>|→)",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\A[*_]{0,2}\w[\w'-]*(?: [\w'-]+){0,4}[*_]{0,2}:[*_]{0,2}\s+(?=\S)")
_POINTING: Final = re.compile(r"\A(?:[>#]+|[-=]+>|[→⇒])\s+")
_BEFORE_AND_AFTER: Final = re.compile(r"\s*(?:[-=]+>|[→⇒]|\n)\s*")
_TYPES: Final = tuple(
    f"{form}{joint}{target}"
    for form in ("replace", "swap", "add")
    for target in ("object", "attribute", "relation")
    for joint in ("-", " ", "_")
)
_ONE_LINE: Final = TextShape(
    "line",
    labels=(
        *("Hard negative", "Hard positive", "Rewritten", "Edited", "Swapped", "Modified", "Changed", "New", "After"),
        *("Original", "Source", "Before"),
        *_TYPES,
    ),
)

# Marks around words, and what is left of them; each goes only where the source has none of its sort.
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
_SHOUTED: Final = re.compile(r"\b[A-Z]{2,}\b")
_SHORT_FORMS = words_with("abbreviation")
_NO_TEXT = words_with("no_text")


@lru_cache(maxsize=1_000)  # the captions of an image are compared with each of its texts
def sameness(text: str) -> str:
    """Return what two texts share when they differ in capitals, spacing and the final mark only."""
    return normalize_text(text).rstrip(" .!?,;:…")


def unwrapped(text: str, source: str, is_word: Callable[[str], bool]) -> str:
    """Return the sentence in what was written, marked up and spelled as its source; empty where that says "none".

    Args:
        text: as the model wrote it.
        source: the caption.
        is_word: whether a word in small letters is one.
    """
    if not _PLAIN.fullmatch(text):
        text = _without_marks(text, source, is_word)
    said = text.lower().strip(" .!")
    return "" if said in _NO_TEXT and said != source.lower().strip(" .!") else text


def _without_marks(text: str, source: str, is_word: Callable[[str], bool]) -> str:
    text = _spelled_as(strip_control_tokens(strip_thinking(text)[0])[0].strip(), source)
    if not _is_marked(source):
        text = _sentence(_behind_source(text, source), source)
    return _unshouted(_unmarked(text, source), source, is_word)


@lru_cache(maxsize=64)  # a caption has several texts in a row
def _is_marked(source: str) -> bool:
    """Whether the source itself has what models write around a sentence."""
    return bool(extract_text(source, _ONE_LINE).tolerated)


def _spelled_as(text: str, source: str) -> str:
    """Return a text with letters, quotes and hyphens of the sort that the source has, and no signs that it has not."""
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


def _behind_source(text: str, source: str) -> str:
    """Return what is given as the new one where the source itself comes first: "a dog -> a cat"."""
    parts = _BEFORE_AND_AFTER.split(text)
    return parts[1] if len(parts) == 2 and sameness(_sentence(parts[0], source)) == sameness(source) else text


def _sentence(text: str, source: str) -> str:
    """Return a text without quotes, label, opening or afterword around it, and no next caption."""
    for _ in range(_LAYERS):
        found = _uncovered(_POINTING.sub("", text))
        inner = _without_aside(_without_label(found, source), source)
        if inner == found:
            return found
        text = inner
    return text


def _uncovered(text: str) -> str:
    for tried in (text, _NEXT_CAPTION.split(text, maxsplit=1)[0]):
        read = extract_text(tried, _ONE_LINE)
        if read.value is not None:
            return read.value
    return text


def _without_label(text: str, source: str) -> str:
    """Return a text without the few words up to a colon, where the source has no colon: "Hard negative caption: a cat"."""
    label = None if ":" in source else _LABEL.match(text)
    return text[label.end() :] if label else text


def _without_aside(text: str, source: str) -> str:
    """Return a text without a remark on it at its end, in brackets or behind a dash; what it adds to its source is none."""
    aside = _ASIDE.search(text)
    if aside is None:
        return text
    before, said = text[: aside.start()].rstrip(), aside["said"] or aside["dashed"]
    if starts_trailing_remark(said):
        return before
    own = aside[0].strip()[0] in source or sameness(before) == sameness(source)
    ended = aside["said"] is not None and before.endswith((".", "!", "?"))
    return before if (ended or _NOTE.match(said)) and not own else text


def _unmarked(text: str, source: str) -> str:
    for mark, around, kept in _MARKS:
        if mark in text and mark not in source:
            text = around.sub(kept, text)
    return text.strip()


def _unshouted(text: str, source: str, is_word: Callable[[str], bool]) -> str:
    """Return a text without the capitals of single words, where the source has no such words that it replaces."""
    own = set(_SHOUTED.findall(source))
    shouted = set(_SHOUTED.findall(text)) - own
    if not shouted or caption_style(source) is not Style.SENTENCE or caption_style(text) is not Style.SENTENCE:
        return text
    if own - set(_SHOUTED.findall(text)):
        return text  # "a sign that says STOP"
    plain = {word for word in shouted - _SHORT_FORMS if is_word(word.lower())}
    return _SHOUTED.sub(lambda found: found[0].lower() if found[0] in plain else found[0], text)
