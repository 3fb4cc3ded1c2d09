"""Finding JSON in what a model wrote, and reading it where it is nearly JSON.

Read are: code fences and prose around a value, comments, commas too many, single and curly quotes, names without
quotes, Python's and JavaScript's words for true, false and null, line breaks within a string, and quotes within a
string that nobody escaped, where they can only be meant so (``"a "red" dog"``). Nothing is guessed and nothing made
up: a value that breaks off is told, not completed; of several values all are given. Nothing is evaluated.

Work is bounded: one pass by a scanner of tokens, no recursion, `MAX_DEPTH` levels, `MAX_STEPS` tokens, `MAX_LENGTH`
letters. Libraries of this kind (json-repair 0.64 was measured) complete what breaks off, take the last of several
values, make values out of prose, and overflow the stack on a thousand brackets.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel

MAX_DEPTH = 64  # levels
MAX_STEPS = 200_000  # tokens
MAX_LENGTH = 1_000_000  # letters; the rest is not read
MAX_VALUES = 50
MAX_CONTROL_TOKENS = 10

_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)
# The harmony format (gpt-oss): analysis and answer in channels. Where a server removes the marks, their names are left.
_CHANNEL = re.compile(r"<\|channel\|>[^{}\n]{1,100}?<\|message\|>")
_FINAL = re.compile(
    r"<\|channel\|>\s*(?:final\b|commentary to=)[^{}\n]{0,100}?<\|message\|>|\A\s*analysis(?=[\sA-Z]).*?assistant\s?final(?![a-z])",
    re.DOTALL,
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_THOUGHT_END = re.compile(r"</(think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2060\ufeff]+")  # blanks without width included
_LAST_TOKEN = re.compile(r"(<\|[\w ]{1,40}\|>|</s>|<end_of_turn>|<eos>)\s{0,5}\Z")

_OPENING = re.compile(r"[{\[]")
_BLANK = re.compile(r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
# Inside of a string, quotes around a word or more are the string's own when blank or bracket stand before the first,
# and no comma-and-quote can make them its end.
_TOKEN = re.compile(
    r"""
    (?P<mark>[{}\[\]:,])
    | "(?P<double>(?:[^"\\]++|\\.|(?<=[\s(])"(?=\w)[^"\\\n]{1,200}+"(?=[\s.,;:!?)"]))*+)"
    | '(?P<single>(?:[^'\\]++|\\.|'(?!\s{0,20}(?:[,:}\]]|\Z)))*+)'
    | [“”„](?P<curly>(?:[^“”„\\]++|\\.)*+)[“”]
    | (?P<number>-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))
    | (?P<word>[+-]?[^\W\d][\w$-]*+)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(
    r'\s*+"(?P<name>\w{1,40})"\s*+:\s*+"(?P<text>[^"\\\n]{0,1000})"\s*+,'
)  # the comma says that it is whole
_BROKEN = re.compile(r"[\"'“”„/]|-?[\w.]*+(?:(?<=[eE])[+-])?\Z")  # a token that would go on, were there more text
_WORDS = {
    "true": b"true",
    "false": b"false",
    "null": b"null",
    "none": b"null",
    "undefined": b"null",
    # No JSON can say these; a field that may be null has none, another one refuses it.
    "nan": b"null",
    "infinity": b"null",
    "inf": b"null",
}
_ODD = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|[\"\x00-\x1f]", re.DOTALL)
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"'}


@dataclass(frozen=True, slots=True)
class FoundJSON:
    """A JSON object or list in a text.

    Attributes:
        value: as Python has it.
        start, end: where it stands.
        clean: whether it was JSON as it stood.
    """

    value: Any
    start: int
    end: int
    clean: bool


@dataclass(frozen=True, slots=True)
class FoundValues:
    """All JSON objects and lists of a text, outermost ones, in their order.

    Attributes:
        values: at most `MAX_VALUES`.
        broken_off: where one begins that the text does not end; -1: nowhere.
    """

    values: tuple[FoundJSON, ...]
    broken_off: int = -1


def strip_thinking(text: str) -> tuple[str, bool]:
    """Return what stands behind a thinking block at the start, and whether there was one.

    A block is in tags (``<think>``), or in the analysis channel of the harmony format. A block that does not end leaves
    nothing. Chat templates may open the block themselves, so that only its end shows.
    """
    final = _FINAL.search(text[:MAX_LENGTH])
    if final is not None:
        answer = text[final.end() :]
        end = _CHANNEL_END.search(answer)
        return answer[: end.start()] if end else answer, True
    if _CHANNEL.search(text[:MAX_LENGTH]):
        return "", True
    opened = _THOUGHT.match(text)
    end = _THOUGHT_END.search(text, opened.end() if opened else 0)
    if end is not None:
        return text[end.end() :], True
    return ("", True) if opened else (text, False)


def strip_control_tokens(text: str) -> tuple[str, bool]:
    """Return the text without byte order marks, control characters and the marks by which a chat's turns end."""
    kept = _CONTROLS.sub("", text[:MAX_LENGTH]).replace("\r\n", "\n")
    end = len(kept)
    for _ in range(MAX_CONTROL_TOKENS):
        mark = _LAST_TOKEN.search(kept, max(0, end - 50), end)
        if mark is None:
            break
        end = mark.start()
    kept = kept[:end]
    return kept, kept != text


def find_json_values(text: str) -> FoundValues:
    """Find the objects and lists in a text. Never raises; bounded in time.

    Where prose opens a bracket, the search goes on behind it. Where an object begins well and then is no JSON, it ends:
    what stands inside of a broken object is not what was meant by it.
    """
    found: list[FoundJSON] = []
    scan = _Scan(text[:MAX_LENGTH])
    at = 0
    while len(found) < MAX_VALUES and (opening := _OPENING.search(scan.text, at)):
        start = opening.start()
        end = scan.value(start)
        if end == _MORE:
            return FoundValues(tuple(found), start)
        if end == _STOP or (end == _NONE and scan.members):
            break
        if end > 0 and (read := _loaded(scan, text[start:end])) is not None:
            found.append(FoundJSON(read[0], start, end, read[1]))
        at = end if end > 0 else start + 1
    return FoundValues(tuple(found))


@dataclass(frozen=True, slots=True)
class JSONFragment:
    """A JSON object in a text, or the beginning of one.

    Attributes:
        value: as Python has it; None where it is broken.
        begun: of a broken one, what it says up to the break, as far as these are names with plain texts.
        ends: whether the text goes on behind it; a broken one that does not, breaks off with the text.
    """

    value: dict[str, Any] | None
    begun: Mapping[str, str]
    ends: bool = True


def find_json_fragments(text: str) -> tuple[JSONFragment, ...]:
    """Find the objects of a text, and within one that is broken, those that are whole; at most `MAX_VALUES`.

    Never raises; bounded in time.
    """
    found: list[JSONFragment] = []
    scan = _Scan(text[:MAX_LENGTH])
    at = 0
    while len(found) < MAX_VALUES and (start := scan.text.find("{", at)) >= 0:
        end = scan.value(start)
        if end == _STOP:
            break
        read = _loaded(scan, text[start:end]) if end > 0 else None
        if read is not None:
            found.append(JSONFragment(read[0], {}))
        elif (begun := dict(_find_incomplete_object(scan.text, start + 1))) or end == _MORE:
            found.append(JSONFragment(None, begun, end != _MORE))
        at = end if read is not None else start + 1
    return tuple(found)


def _find_incomplete_object(text: str, at: int) -> Iterator[tuple[str, str]]:
    while member := _MEMBER.match(text, at):
        yield member["name"], member["text"]
        at = member.end()


def _loaded(scan: "_Scan", text: str) -> tuple[Any, bool] | None:
    try:
        return orjson.loads(text), True
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(b"".join(scan.written)), False
    except orjson.JSONDecodeError:  # half characters (lone surrogates), numbers out of range
        return None


_NONE, _MORE, _STOP = 0, -1, -2  # in place of an end: no value; the text breaks off; too much work


class _Scan:
    """Reads values token by token, and writes them as JSON."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.written: list[bytes] = []
        self.members = 0  # begun, in the last value
        self._steps = MAX_STEPS

    def value(self, start: int) -> int:
        """Return the end of the value at ``start``; `_NONE`, `_MORE` or `_STOP` where there is none."""
        self.written, self.members = [], 0
        stack: list[str] = []  # the closing bracket of each level
        state = "v"
        at = start
        while self._steps > 0:
            begun, at = at, self._blank_end(at)
            token = _TOKEN.match(self.text, at)
            if token is None:
                return _MORE if at >= len(self.text) or _BROKEN.match(self.text, at) else _NONE
            at = token.end()
            self._steps -= 1 + (at - begun) // 64
            state = self._next(state, token, stack)
            if not state:
                return _MORE if token["word"] and at == len(self.text) else _NONE
            if not stack:
                return at
        return _STOP

    def _next(self, state: str, token: re.Match[str], stack: list[str]) -> str:
        """Write a token; return what may come next, nothing where the token may not stand.

        States: v(alue), ``:`` and ``,`` (or the end of the level); e: value or end, K: key or end.
        """
        mark = token["mark"]
        if mark is None:
            written = _scalar(token, is_key=state == "K")
            if state not in ("v", "e", "K") or written is None:
                return ""
            self.written.append(written)
            return ":" if state == "K" else ","
        if mark in "{[":
            if state not in ("v", "e") or len(stack) >= MAX_DEPTH:
                return ""
            stack.append("}" if mark == "{" else "]")
            state = "K" if mark == "{" else "e"
        elif mark in "}]":
            if mark != stack[-1] or state not in ("e", "K", ","):
                return ""
            stack.pop()
            if self.written[-1] == b",":
                self.written.pop()
            state = ","
        elif state != mark:
            return ""
        else:
            self.members += mark == ":"
            state = "v" if mark == ":" else "K" if stack[-1] == "}" else "e"
        self.written.append(mark.encode())
        return state

    def _blank_end(self, at: int) -> int:
        blank = _BLANK.match(self.text, at)
        return blank.end() if blank else at


def _scalar(token: re.Match[str], *, is_key: bool) -> bytes | None:
    """Return a token's JSON; None for a word that means nothing."""
    kind = token.lastgroup
    if kind in ("double", "single", "curly"):
        return _string(token[kind])
    if kind == "number":
        return _string(token[0]) if is_key else token[0].encode()
    if is_key:
        return _string(token[0])
    return _WORDS.get(token[0].lstrip("+-").lower())


def _string(body: str) -> bytes:
    return b'"' + _ODD.sub(_escaped, body).encode("utf-8", "replace") + b'"'


def _escaped(odd: re.Match[str]) -> str:
    text = odd[0]
    if text[0] != "\\":
        return _NAMED.get(text) or f"\\u{ord(text):04x}"
    second = text[1:2]
    if second in '"\\/bfnrt' or (second == "u" and len(text) > 2):
        return text
    if second == "x" and len(text) > 2:
        return f"\\u00{text[2:]}"
    if second == "\n":
        return ""
    return second if second == "'" else f"\\\\{_NAMED.get(second, second)}"


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value or a pydantic model, the names of members left out."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, BaseModel):
            waiting += reversed(each.__dict__.values())
        elif isinstance(each, dict):
            waiting += reversed(each.values())
        elif isinstance(each, list | tuple):
            waiting += reversed(each)
