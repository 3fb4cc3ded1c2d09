"""``/batches`` of the test server: create, retrieve, list, cancel.

Polling drives a batch: `ServerScript.batch_polls` retrievals and `ServerScript.batch_delay_s` seconds take it from
*validating* to *completed*; its lines are processed meanwhile, in a random order, since OpenAI guarantees none. Lines with
status 200 go to the output file, all others to the error file. The input is validated as at OpenAI: each line JSON with
custom_id, method, url and body, unique custom_ids, one endpoint, one model, limits on lines and on tokens queued in all
running batches.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.chat import ChatService
from pairwright.generators.llm.testing.chat_request import body_key, estimate_text_tokens
from pairwright.generators.llm.testing.files import FileStore, paginate
from pairwright.generators.llm.testing.http_messages import HTTPReply, HTTPRequest, json_reply

ENDPOINTS = ("/v1/chat/completions", "/chat/completions")
_UNKNOWN_ID = "0" * 32  # custom_id of no request
DAY = 24 * 60 * 60
_ENDED = {"completed", "failed", "expired", "cancelled"}
_NOT_DONE = {
    "batch_expired": "the batch expired before this line was processed",
    "batch_cancelled": "the batch was cancelled before this line was processed",
}


@dataclass(frozen=True, slots=True)
class BatchInputLine:
    """Line of the input."""

    custom_id: str
    body: dict[str, Any]

    @property
    def tokens(self) -> int:
        """Estimated prompt tokens."""
        return estimate_text_tokens(orjson.dumps(self.body.get("messages")).decode())


@dataclass(slots=True)
class ServerBatch:
    """Batch and its progress. ``at``: seconds since 1970 of each status."""

    id: str
    number: int
    input_file_id: str
    endpoint: str
    window: str
    metadata: dict[str, Any] | None
    lines: list[BatchInputLine]
    errors: list[dict[str, Any]]
    began: float = field(default_factory=time.monotonic)
    status: str = "validating"
    at: dict[str, int] = field(default_factory=dict)
    polls: int = 0
    done: int = 0
    output: list[bytes] = field(default_factory=list)
    failed: list[bytes] = field(default_factory=list)
    output_file_id: str | None = None
    error_file_id: str | None = None

    def become(self, status: str) -> None:
        """Change the status and record the time."""
        self.status = status
        self.at[status] = int(time.time())

    def summary(self) -> dict[str, Any]:
        """Return the batch object of the API."""
        stamps = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        created = self.at["validating"]
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": {"object": "list", "data": self.errors} if self.status == "failed" else None,
            "input_file_id": self.input_file_id,
            "completion_window": self.window,
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": created,
            "expires_at": created + DAY,
            **{f"{status}_at": self.at.get(status) for status in stamps},
            "request_counts": {"total": len(self.lines), "completed": len(self.output), "failed": len(self.failed)},
            "metadata": self.metadata,
        }


class BatchStore:
    """All batches of a server."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._batches: dict[str, ServerBatch] = {}

    def handle(self, request: HTTPRequest, rest: list[str], chat: ChatService) -> HTTPReply:
        """Return the reply to a request; ``rest``: path segments after ``/batches``.

        Raises:
            APIError: 400, 404 or 405.
        """
        match (request.method, rest):
            case ("POST", []):
                return json_reply(self._create(request.body, chat).summary())
            case ("GET", []):
                return json_reply(paginate([b.summary() for b in self._batches.values()][::-1], request.parameters()))
            case ("GET", [identity]):
                batch = self._get(identity)
                batch.polls += 1
                self._advance(batch, chat)
                return json_reply(batch.summary())
            case ("POST", [identity, "cancel"]):
                return json_reply(self._cancel(self._get(identity)).summary())
        raise APIError(405, "batches support POST and GET only")

    def _get(self, identity: str) -> ServerBatch:
        found = self._batches.get(identity)
        if found is None:
            raise APIError(404, f"there is no batch {identity!r}", param="id")
        return found

    def _create(self, data: bytes, chat: ChatService) -> ServerBatch:
        try:
            given = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise APIError(400, "the body is not JSON") from None
        if not isinstance(given, dict) or given.get("endpoint") not in ENDPOINTS:
            raise APIError(400, f"endpoint must be one of {', '.join(ENDPOINTS)}", param="endpoint")
        if given.get("completion_window") != "24h":
            raise APIError(400, "completion_window must be 24h", param="completion_window")
        file = self._files.get(str(given.get("input_file_id")))
        if file.purpose != "batch":
            raise APIError(400, f"{file.id} was not uploaded with the purpose batch", param="input_file_id")
        lines, errors = _read_lines(file.data, given["endpoint"], chat.script.batch_lines_max)
        number = len(self._batches) + 1
        errors += self._refused(lines, number, chat)
        errors = self._too_many_tokens(lines, chat.script.batch_tokens_max) or errors
        if chat.plan.is_injected("batch_failed", body_key(given), number):
            chat.stats.faults["batch_failed"] += 1
            errors = [_input_error("server_error", "the input could not be checked (injected)", None)]
        identity = f"batch_{number:06d}"
        batch = ServerBatch(identity, number, file.id, given["endpoint"], "24h", given.get("metadata"), lines, errors)
        batch.become("validating")
        self._batches[identity] = batch
        return batch

    def _too_many_tokens(self, lines: list[BatchInputLine], most: int) -> list[dict[str, Any]]:
        under_way = [batch for batch in self._batches.values() if batch.status not in _ENDED and not batch.errors]
        queued = sum(line.tokens for batch in under_way for line in batch.lines) if most else 0
        if not most or queued + sum(line.tokens for line in lines) <= most:
            return []
        return [
            _input_error(
                "token_limit_exceeded", f"Enqueued token limit reached. Limit: {most:,} enqueued tokens.", None
            )
        ]

    @staticmethod
    def _refused(lines: list[BatchInputLine], number: int, chat: ChatService) -> list[dict[str, Any]]:
        refused = [
            at
            for at, line in enumerate(lines, start=1)
            if chat.plan.is_injected("batch_line_refused", body_key(line.body), number)
        ]
        if refused:
            chat.stats.faults["batch_line_refused"] += len(refused)
        return [_input_error("invalid_request", "the line is not valid (injected)", at) for at in refused]

    def _advance(self, batch: ServerBatch, chat: ChatService) -> None:
        if batch.status in _ENDED:
            return
        if batch.errors:
            batch.become("failed")
        elif batch.status == "cancelling":
            for line in self._left(batch, chat, len(batch.lines)):
                batch.failed.append(_not_done(batch, line, "batch_cancelled"))
            self._close(batch, "cancelled")
        else:
            self._work(batch, chat)

    def _work(self, batch: ServerBatch, chat: ChatService) -> None:
        if batch.status == "validating":
            batch.become("in_progress")
        script = chat.script
        share = min(1.0, batch.polls / script.batch_polls) if script.batch_polls else 1.0
        if script.batch_delay_s:
            share = min(share, (time.monotonic() - batch.began) / script.batch_delay_s)
        for line in self._left(batch, chat, int(share * len(batch.lines))):
            self._process(batch, line, chat)
        if share >= 1:
            batch.become("finalizing")
            self._close(batch, "expired" if any(b'"batch_expired"' in row for row in batch.failed) else "completed")

    def _left(self, batch: ServerBatch, chat: ChatService, until: int) -> Iterator[BatchInputLine]:
        order = list(range(len(batch.lines)))
        make_rng(chat.script.seed, "batch order", batch.number).shuffle(order)
        for at in order[batch.done : until]:
            batch.done += 1
            yield batch.lines[at]

    def _process(self, batch: ServerBatch, line: BatchInputLine, chat: ChatService) -> None:
        if chat.plan.is_injected("batch_expired", body_key(line.body), batch.number):
            chat.stats.faults["batch_expired"] += 1
            batch.failed.append(_not_done(batch, line, "batch_expired"))
            return
        status, body = chat.line(orjson.dumps(line.body))
        response = {
            "status_code": status,
            "request_id": f"req_{batch.number}_{batch.done}",
            "body": orjson.Fragment(body),
        }
        self._put(batch.output if status == 200 else batch.failed, batch, line, response, chat)

    @staticmethod
    def _put(
        file: list[bytes], batch: ServerBatch, line: BatchInputLine, response: dict[str, Any], chat: ChatService
    ) -> None:
        row, key = _row(batch, line, response, None), body_key(line.body)
        if chat.plan.is_injected("batch_line_lost", key, batch.number):
            chat.stats.faults["batch_line_lost"] += 1
        elif chat.plan.is_injected("batch_line_garbled", key, batch.number):
            chat.stats.faults["batch_line_garbled"] += 1
            unknown = _row(batch, replace(line, custom_id=_UNKNOWN_ID), response, None)
            file.append(row[: len(row) // 2] + b"\n" + unknown + b"[]\n")
        else:
            file.append(row)

    def _close(self, batch: ServerBatch, status: str) -> None:
        if batch.output:
            name = f"{batch.id}_output.jsonl"
            batch.output_file_id = self._files.add(name, "batch_output", b"".join(batch.output)).id
        if batch.failed:
            name = f"{batch.id}_error.jsonl"
            batch.error_file_id = self._files.add(name, "batch_output", b"".join(batch.failed)).id
        batch.become(status)

    @staticmethod
    def _cancel(batch: ServerBatch) -> ServerBatch:
        if batch.status in _ENDED:
            raise APIError(400, f"the batch is {batch.status} and cannot be cancelled")
        batch.become("cancelling")
        return batch


def _read_lines(data: bytes, endpoint: str, most: int) -> tuple[list[BatchInputLine], list[dict[str, Any]]]:
    """Return the lines of an input file, and its errors."""
    lines: list[BatchInputLine] = []
    errors: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, text in enumerate(data.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            row = orjson.loads(text)
        except orjson.JSONDecodeError:
            errors.append(_input_error("invalid_json_line", "the line is not JSON", number))
            continue
        flaw = _line_error(row, endpoint, seen)
        if not flaw and lines and row["body"].get("model") != lines[0].body.get("model"):
            flaw = "model_mismatch", "all lines of a batch must have one model"
        if flaw:
            errors.append(_input_error(*flaw, number))
        else:
            seen.add(row["custom_id"])
            lines.append(BatchInputLine(row["custom_id"], row["body"]))
    if not lines and not errors:
        errors.append(_input_error("empty_file", "the input has no lines", None))
    if len(lines) > most:
        errors.append(_input_error("too_many_tasks", f"the input has {len(lines)} lines, more than {most}", None))
    return lines, errors


def _line_error(row: Any, endpoint: str, seen: set[str]) -> tuple[str, str] | None:
    if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
        return "missing_required_parameter", "the line has no custom_id"
    if row["custom_id"] in seen:
        return "duplicate_custom_id", f"the custom_id {row['custom_id']!r} is a duplicate"
    if row.get("method") != "POST" or row.get("url") != endpoint:
        return "mismatched_endpoint", f"the line must have the method POST and the url {endpoint}"
    return None if isinstance(row.get("body"), dict) else ("missing_required_parameter", "the line has no body")


def _input_error(code: str, message: str, line: int | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": None, "line": line}


def _not_done(batch: ServerBatch, line: BatchInputLine, code: str) -> bytes:
    return _row(batch, line, None, {"code": code, "message": _NOT_DONE[code]})


def _row(
    batch: ServerBatch, line: BatchInputLine, response: dict[str, Any] | None, error: dict[str, str] | None
) -> bytes:
    identity = f"batch_req_{batch.number}_{batch.done}"
    row = {"id": identity, "custom_id": line.custom_id, "response": response, "error": error}
    return orjson.dumps(row) + b"\n"
