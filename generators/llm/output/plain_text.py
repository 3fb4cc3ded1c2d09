"""Parser of answers that are plain text.

Code fences, preambles ("Sure! Here is the new caption:"), labels, numbers and bullets, enclosing quotes and trailing
remarks are removed. Of one line, additional lines are an error.
"""

import re
from dataclasses import dataclass
from typing import Literal

import orjson

from pairwright.generators.llm.output.boilerplate import (
    starts_new_question,
    starts_trailing_remark,
    strip_label,
    strip_list_marker,
    strip_preamble,
    strip_quotes,
)
from pairwright.generators.llm.output.errors import OutputError, ParsedAnswer
from pairwright.generators.llm.output.json_parsing import find_json_values, iter_strings

TextKind = Literal["line", "text"]

_FENCE = re.compile(r"(?:[^\n]{0,200}:)?\s*```[\w+-]*[ \t]*\n?(?P<inside>[^`]*+)```\s*\Z")
_TAGS = re.compile(
    r"<(?P<tag>answer|final_answer|output|result|response|final)>(?P<inside>[^<]*+)</(?P=tag)>\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class TextShape:
    """The shape of a plain text (one *line*, or any *text*); its value is a string."""

    kind: TextKind = "line"


def extract_text(text: str, shape: TextShape, *, cut: bool = False) -> ParsedAnswer[str]:
    """Return the requested text.

    Args:
        text: the answer, without thinking blocks and control characters.
        shape: the requested shape.
        cut: whether the server reports that the answer is cut off.
    """
    tolerated: list[str] = []
    text = text.strip()
    for step, word in ((_strip_fence, "fence"), (_unwrapped, "wrapped")):
        inner = step(text).strip()
        if inner != text:
            text = inner
            tolerated.append(word)
    text = _strip_decorations(text, tolerated)
    text, ended = _up_to_next_question(text, tolerated)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if cut and not ended and not (shape.kind == "line" and len(lines) > 1):
        return ParsedAnswer(None, OutputError("truncated"), tuple(tolerated))
    if not lines:
        return ParsedAnswer(None, OutputError("empty_answer"), tuple(tolerated))
    return _one_line(lines, tolerated) if shape.kind == "line" else ParsedAnswer(text, None, tuple(tolerated))


def _one_line(lines: list[str], tolerated: list[str]) -> ParsedAnswer[str]:
    if len(lines) > 1:
        return ParsedAnswer(None, OutputError("run_on", "You wrote more than one line."), tuple(tolerated))
    text = lines[0]
    if text.startswith(("1.", "1)", "(1)", "- ", "* ", "• ")):
        text = strip_list_marker(text)
        tolerated.append("number")
    text = _strip_decorations(text, tolerated)
    return ParsedAnswer(text, None, tuple(dict.fromkeys(tolerated)))


def _strip_fence(text: str) -> str:
    found = _FENCE.match(text) if text.endswith("```") else None
    return found["inside"] if found else text


def _unwrapped(text: str) -> str:
    """Return the only string of a JSON object, the text of a JSON string, or the content of an ``<answer>`` tag."""
    if len(text) > 2 and text[0] == text[-1] == '"' and "\\" in text:
        try:
            return str(orjson.loads(text))
        except orjson.JSONDecodeError:
            return text
    if tagged := _TAGS.match(text):
        return tagged["inside"]
    if not text.startswith("{") or not text.endswith("}"):
        return text
    found = find_json_values(text).values
    if len(found) == 1 and found[0].start == 0 and found[0].end == len(text):
        texts = list(iter_strings(found[0].value))
        if len(texts) == 1 and isinstance(found[0].value, dict) and len(found[0].value) == 1:
            return texts[0]
    return text


def _strip_decorations(text: str, tolerated: list[str]) -> str:
    for _ in range(3):  # they may be nested
        before = text
        text = strip_preamble(text).strip()
        text = strip_label(text).strip()
        if text != before:
            tolerated.append("label")
        unquoted = strip_quotes(text)
        if unquoted != text:
            tolerated.append("quotes")
        text = unquoted
        if text == before:
            break
    return text


def _up_to_next_question(text: str, tolerated: list[str]) -> tuple[str, bool]:
    """Return the text before an invented question or a remark on the answer, and whether there was one."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines[1:], 1):
        if starts_new_question(line) or starts_trailing_remark(line):
            tolerated.append("run_on" if starts_new_question(line) else "prose")
            return "".join(lines[:at]).strip(), True
    return text, False
