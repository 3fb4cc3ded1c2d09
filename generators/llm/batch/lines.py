"""The lines of a batch: what is written for a request, and how a line that comes back is read. Pure.

A line in: ``{"custom_id", "method", "url", "body"}``; the custom_id is the request's cache key. A line out is
``{"id", "custom_id", "response": {"status_code", "request_id", "body"} | null, "error": {"code", "message"} | null}``, in the
output file where it was answered, else in the error file, in no order.
The API: https://platform.openai.com/docs/api-reference/batch/request-input.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from pairwright.generators.llm.client.chat_completions import build_payload, encode_payload, parse_error, parse_reply
from pairwright.generators.llm.client.messages import Request
from pairwright.generators.llm.client.request_errors import RequestError

ANSWERED = ""  # the word of a line that holds an answer
UNPROCESSED_CODES = {"batch_expired", "batch_cancelled"}  # codes of lines that were never worked on

_OK, _HIGHEST = 200, 599
_KEY = re.compile(r"[0-9a-f]{32}")


class KeyedRequest(Protocol):
    """Something that is asked, under its key."""

    @property
    def key(self) -> str:
        """Return the cache key, 32 hex digits."""
        ...

    @property
    def request(self) -> Request:
        """Return the request."""
        ...


@dataclass(frozen=True, slots=True)
class LineResult:
    """What became of a line.

    Attributes:
        key: its custom_id.
        word: `ANSWERED`, or of `failures.WORDS`.
        data: the body of the answer, or the failure's detail in UTF-8.
    """

    key: str
    code: str
    data: bytes

    def failure(self) -> RequestError:
        """Return the failure that a word other than `ANSWERED` stands for."""
        return RequestError(self.code, self.data.decode("utf-8", "replace"))


@dataclass(slots=True)
class BatchInput:
    """What of some rows was written: keys in the order of lines, rows that cannot be sent, and rows left over."""

    keys: list[str] = field(default_factory=list)
    unfit: dict[str, RequestError] = field(default_factory=dict)
    left: int = 0


def write_batch_input(
    path: Path, rows: Sequence[KeyedRequest], url: str, *, most_lines: int, most_bytes: int
) -> BatchInput:
    """Write a batch's input from the first rows, as many as fit; images are encoded here.

    Args:
        path: replaced.
        rows: what is asked, all of one model.
        url: of each line, such as ``/v1/chat/completions``.
        most_lines: of the file.
        most_bytes: of the file; a single line that is larger is unfit.
    """
    written, size = BatchInput(), 0
    with path.open("wb") as file:
        for at, row in enumerate(rows):
            try:
                line = format_line(row.key, url, row.request)
            except RequestError as failure:
                written.unfit[row.key] = failure
                continue
            if len(line) > most_bytes:
                said = f"{len(line)} bytes, of {most_bytes} that a batch may have"
                written.unfit[row.key] = RequestError("request_too_large", said)
                continue
            if len(written.keys) == most_lines or size + len(line) > most_bytes:
                written.left = len(rows) - at
                break
            file.write(line)
            size += len(line)
            written.keys.append(row.key)
    return written


def format_line(key: str, url: str, request: Request) -> bytes:
    """Return the line of a request, its end included.

    Raises:
        Failure: ``bad_image`` or ``bad_request``: it cannot be sent.
    """
    return encode_payload({"custom_id": key, "method": "POST", "url": url, "body": build_payload(request)}) + b"\n"


def read_line(line: bytes, *, hide: Callable[[str], str] = str) -> LineResult | None:
    """Read a line of an output or error file; None where it is none that one of our requests can have.

    A line that was not worked on, since the batch ended before, is a ``timeout``: it may be asked again.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(row, dict) or not isinstance(key := row.get("custom_id"), str) or not _KEY.fullmatch(key):
        return None
    response = row.get("response")
    if not isinstance(response, dict):
        return _failed(key, _of_error(row.get("error"), hide))
    try:
        return LineResult(key, ANSWERED, _answer(response, hide))
    except RequestError as failure:
        return _failed(key, failure)


def _answer(response: Mapping[str, Any], hide: Callable[[str], str]) -> bytes:
    """Return the body of an answer; raises what the response is instead of one."""
    status, data = response.get("status_code"), orjson.dumps(response.get("body"))
    if not isinstance(status, int) or isinstance(status, bool) or status > _HIGHEST:
        raise RequestError("wrong_shape", "a line without a status")
    if status != _OK:
        raise parse_error(status, {}, data, hide=hide)
    parse_reply(data, hide=hide)
    return data


def _failed(key: str, failure: RequestError) -> LineResult:
    return LineResult(key, failure.code, failure.detail.encode("utf-8", "replace"))


def _of_error(error: object, hide: Callable[[str], str]) -> RequestError:
    if not isinstance(error, Mapping):
        return RequestError("wrong_shape", "a line with neither a response nor an error")
    if str(error.get("code")) in UNPROCESSED_CODES:
        return RequestError("timeout", f"{error['code']}: the batch ended before this line was done")
    return parse_error(_status_of(error), {}, orjson.dumps({"error": error}), hide=hide)


def _status_of(error: Mapping[str, Any]) -> int:
    """Return the status that an error would have come with: its own number, else the server's fault."""
    code = str(error.get("code") or "")
    return int(code) if re.fullmatch(r"[45]\d\d", code) else 500


def split_lines(chunk: bytes, rest: bytes, *, most: int) -> tuple[list[bytes], bytes]:
    """Return the whole lines of what came, and the beginning of the next; one longer than ``most`` is cut off."""
    *lines, rest = (rest + chunk).split(b"\n")
    return [line[:most] for line in lines if line.strip()], rest[:most]


def read_lines(lines: Iterable[bytes], *, hide: Callable[[str], str] = str) -> tuple[list[LineResult], int]:
    """Read lines; return what can be read, and how many cannot."""
    outcomes = [read_line(line, hide=hide) for line in lines]
    whole = [outcome for outcome in outcomes if outcome is not None]
    return whole, len(outcomes) - len(whole)
