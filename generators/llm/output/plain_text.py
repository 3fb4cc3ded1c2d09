"""Answers that are plain text: what is asked for, and how it is found in what the model said.

Taken off are code fences, openings ("Sure! Here is the new caption:"), labels, numbers and bullets, quotes around all
of it, and afterwords. What is left has to be what was asked for: more lines than one, or more sentences, are told.
"""

import re
from dataclasses import dataclass
from typing import Literal

import orjson

from pairwright.generators.llm.output.boilerplate import (
    starts_new_turn,
    starts_trailing_remark,
    strip_label,
    strip_list_marker,
    strip_preamble,
    strip_quotes,
)
from pairwright.generators.llm.output.errors import OutputError
from pairwright.generators.llm.output.json_parsing import find_json_values, iter_strings

TextKind = Literal["line", "sentence", "lines", "text"]

_FENCE = re.compile(r"(?:[^\n]{0,200}:)?\s*```[\w+-]*[ \t]*\n?(?P<inside>[^`]*+)```\s*\Z")
_NEXT = re.compile(r"[\w\])][.!?…]+[\"'”’)]*\s+[\"'“‘(]?[A-Z]")
_SHORT = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|st|mt|vs|jr|sr|prof|no|inc|ltd|co|etc|e\.g|i\.e|u\.s|a\.m|p\.m)|\b[A-Z])\.$", re.IGNORECASE
)
_TAGS = re.compile(
    r"<(?P<tag>answer|final_answer|output|result|response|final)>(?P<inside>[^<]*+)</(?P=tag)>\Z", re.IGNORECASE
)
_OTHERS = {"line": "one line", "sentence": "one sentence", "lines": "the lines asked for", "text": "the text asked for"}


@dataclass(frozen=True, slots=True)
class TextShape:
    """The shape of a plain text; its value is a string.

    Attributes:
        kind: one *line*; one *sentence*; *lines*, an item each (the value has one a line); or any *text*.
        until: the answer ends before this marker, where it is there; empty: no marker.
        labels: what the model may write before its answer, such as ``Hard negative``, beside the usual ones.
    """

    kind: TextKind = "line"
    until: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextResult:
    """What was read: a value, or what is wrong; and what was overlooked."""

    value: str | None
    trouble: OutputError | None = None
    forgiven: tuple[str, ...] = ()


def extract_text(text: str, shape: TextShape, *, cut: bool = False) -> TextResult:
    """Find the text that was asked for.

    Args:
        text: what the model said, without thinking blocks and control characters.
        shape: what was asked for.
        cut: whether the server says that the answer broke off.
    """
    forgiven: list[str] = []
    if shape.until and shape.until in text:
        text, cut = text[: text.index(shape.until)], False
    text = text.strip()
    for step, word in ((_strip_fence, "fence"), (_unwrapped, "wrapped")):
        inner = step(text).strip()
        if inner != text:
            text = inner
            forgiven.append(word)
    text = _strip_decorations(text, shape, forgiven)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines, ended = _up_to_next_turn(lines, forgiven)
    if cut and not ended and not (shape.kind == "line" and len(lines) > 1):
        return TextResult(None, OutputError("truncated"), tuple(forgiven))
    if not lines:
        return TextResult(None, OutputError("empty_answer"), tuple(forgiven))
    if shape.kind == "text":
        kept = "\n".join(text.splitlines()[: _last_line(text, lines)]) if ended else text
        return TextResult(kept.strip(), None, tuple(forgiven))
    if shape.kind == "lines":
        items = [_strip_decorations(strip_list_marker(line), shape, forgiven) for line in lines]
        return TextResult("\n".join(item for item in items if item), None, tuple(forgiven))
    return _one(lines, shape, forgiven)


def _one(lines: list[str], shape: TextShape, forgiven: list[str]) -> TextResult:
    if len(lines) > 1 and shape.kind == "line":
        return TextResult(None, _too_much(shape), tuple(forgiven))
    text = " ".join(lines)
    if text.startswith(("1.", "1)", "(1)", "- ", "* ", "• ")):
        text = strip_list_marker(text)
        forgiven.append("number")
    text = _strip_decorations(text, shape, forgiven)
    if shape.kind == "sentence" and _sentences(text) > 1:
        return TextResult(None, _too_much(shape), tuple(forgiven))
    return TextResult(text, None, tuple(dict.fromkeys(forgiven)))


def _too_much(shape: TextShape) -> OutputError:
    return OutputError("run_on", f"You wrote more than {_OTHERS[shape.kind]}.")


def _strip_fence(text: str) -> str:
    found = _FENCE.match(text) if text.endswith("```") else None
    return found["inside"] if found else text


def _unwrapped(text: str) -> str:
    """Return the only string of a JSON object, a JSON string's text, or what stands in an ``<answer>``."""
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


def _strip_decorations(text: str, shape: TextShape, forgiven: list[str]) -> str:
    for _ in range(3):  # one may stand in another
        before = text
        text = strip_preamble(text).strip()
        text = strip_label(text, shape.labels).strip()
        if text != before:
            forgiven.append("label")
        unquoted = strip_quotes(text)
        if unquoted != text:
            forgiven.append("quotes")
        text = unquoted
        if text == before:
            break
    return text


def _up_to_next_turn(lines: list[str], forgiven: list[str]) -> tuple[list[str], bool]:
    for at, line in enumerate(lines[1:], 1):
        if starts_new_turn(line) or starts_trailing_remark(line):
            forgiven.append("run_on" if starts_new_turn(line) else "prose")
            return lines[:at], True
    return lines, False


def _last_line(text: str, kept: list[str]) -> int:
    """Return how many of the text's lines hold the first ``len(kept)`` that are not blank."""
    seen = 0
    for number, line in enumerate(text.splitlines(), 1):
        seen += bool(line.strip())
        if seen == len(kept):
            return number
    return len(text)


def _sentences(text: str) -> int:
    return 1 + sum(
        _SHORT.search(text[max(0, found.start() - 6) : found.start() + 2]) is None for found in _NEXT.finditer(text)
    )
