"""Lines of batch files: formatting requests, parsing responses. Pure.

An input line is ``{"custom_id", "method", "url", "body"}``; the custom_id is the request's cache key. An output line is
``{"id", "custom_id", "response": {"status_code", "request_id", "body"} | null, "error": {"code", "message"} | null}``, in
the output file if it has a response, else in the error file, in any order.
The API: https://platform.openai.com/docs/api-reference/batch/request-input.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pairwright.generators.llm.client.chat_completions import build_payload, parse_error, parse_reply, status_in
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.request_key import encode_json

ANSWERED = ""  # code of a line with a response
UNPROCESSED_CODES = {"batch_expired", "batch_cancelled"}

_OK, _HIGHEST = 200, 599
_KEY = re.compile(r"[0-9a-f]{32}")


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """Request, the futures that wait for it, and the number of failed attempts."""

    key: str
    request: Request
    waiters: list[asyncio.Future[Reply]] = field(default_factory=list)
    tries: int = 0


@dataclass(frozen=True, slots=True)
class LineResult:
    """Result of a line.

    Attributes:
        key: its custom_id.
        code: `ANSWERED`, or of `REQUEST_ERROR_CODES`.
        data: response body, or error detail in UTF-8.
    """

    key: str
    code: str
    data: bytes

    def failure(self) -> RequestError:
        """Return the error of a line without a response."""
        return RequestError(self.code, self.data.decode("utf-8", "replace"))


@dataclass(slots=True)
class BatchInput:
    """Written input: keys in line order, rows that cannot be sent, and number of rows not written."""

    keys: list[str] = field(default_factory=list)
    unfit: dict[str, RequestError] = field(default_factory=dict)
    left: int = 0


def write_batch_input(
    path: Path, rows: Sequence[QueuedRequest], url: str, *, most_lines: int, most_bytes: int
) -> BatchInput:
    """Write as many of the first rows as fit; images are encoded here.

    Args:
        path: overwritten.
        rows: requests of one model.
        url: of each line, such as ``/v1/chat/completions``.
        most_lines: maximum lines.
        most_bytes: maximum file size; a larger single line is unfit.
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
                detail = f"{len(line)} bytes, more than the {most_bytes} of a batch"
                written.unfit[row.key] = RequestError("request_too_large", detail)
                continue
            if len(written.keys) == most_lines or size + len(line) > most_bytes:
                written.left = len(rows) - at
                break
            file.write(line)
            size += len(line)
            written.keys.append(row.key)
    return written


def format_line(key: str, url: str, request: Request) -> bytes:
    """Return the line of a request, with its line break.

    Raises:
        RequestError: ``bad_image`` or ``bad_request``: it cannot be sent.
    """
    return encode_json({"custom_id": key, "method": "POST", "url": url, "body": build_payload(request)}) + b"\n"


def read_line(line: bytes, *, hide: Callable[[str], str] = str) -> LineResult | None:
    """Parse a line of an output or error file; None if it cannot belong to a request of ours.

    A line that was not processed before the batch ended is a ``timeout``, which is retried.
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
    """Return the body of a response; raise its error if it has another status than 200."""
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
    return parse_error(status_in(error), {}, orjson.dumps({"error": error}), hide=hide)


def split_lines(chunk: bytes, rest: bytes, *, most: int) -> tuple[list[bytes], bytes]:
    """Return the whole lines of a chunk, and the start of the next; longer lines are cut to ``most`` bytes."""
    *lines, rest = (rest + chunk).split(b"\n")
    return [line[:most] for line in lines if line.strip()], rest[:most]


def read_lines(lines: Iterable[bytes], *, hide: Callable[[str], str] = str) -> tuple[list[LineResult], int]:
    """Parse lines; return the valid ones and the number of invalid ones."""
    outcomes = [read_line(line, hide=hide) for line in lines]
    whole = [outcome for outcome in outcomes if outcome is not None]
    return whole, len(outcomes) - len(whole)
