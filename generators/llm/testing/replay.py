"""Recordings of answers: JSONL files with one answer per line, to record and replay.

    {"request": {"model": "m", "messages": [...]}, "status": 200, "response": {...}}
    {"key": "4f0c5e8d9a3b2c17", "status": 429, "response": {"error": {...}}}

``request`` is the body; ``key`` its digest of 16 hex digits (`chat_request.body_key`), if the request is not to be kept;
one of them is required. ``response`` is the body of the answer, ``status`` 200 by default. Several lines of one request
are replayed in order, the last one repeatedly. ``stream`` is not compared. The recorder writes
whole lines, without headers and hence without keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from pairwright.datasets.errors import InputError, StorageError
from pairwright.generators.llm.testing.chat_request import body_key

_FORM = "A line is {request or key, status, response}."


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """Recorded answer."""

    status: int
    response: Mapping[str, Any]


def replay_key(body: Mapping[str, Any]) -> int:
    """Return the key by which a request is looked up."""
    return body_key({name: value for name, value in body.items() if name != "stream"})


class Replay:
    """Answers of a recording."""

    def __init__(self, path: Path) -> None:
        """Read a recording.

        Raises:
            InputError: the file cannot be read, or a line is invalid.
        """
        self._answers: dict[int, list[RecordedReply]] = {}
        try:
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        key, played = _read(line, f"{path}:{number}")
                        self._answers.setdefault(key, []).append(played)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=str(path), fix="Use a recording.") from None

    def find(self, body: Mapping[str, Any], attempt: int) -> RecordedReply | None:
        """Return the answer to a body that came ``attempt`` times before; None if it was not recorded."""
        found = self._answers.get(replay_key(body))
        return found[min(attempt, len(found) - 1)] if found else None


def _read(line: bytes, where: str) -> tuple[int, RecordedReply]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON ({error})", where=where, fix=_FORM) from None
    status = row.get("status", 200) if isinstance(row, dict) else None
    if not isinstance(status, int) or not isinstance(row.get("response"), dict):
        raise InputError("no status and response", where=where, fix=_FORM)
    if isinstance(row.get("request"), dict):
        return replay_key(row["request"]), RecordedReply(status, row["response"])
    try:
        return int(row["key"], 16), RecordedReply(status, row["response"])
    except (KeyError, TypeError, ValueError):
        raise InputError("no request and no key", where=where, fix=_FORM) from None


class Recorder:
    """Appends answers to a recording, each in one write."""

    def __init__(self, path: Path) -> None:
        """Open a recording for appending.

        Raises:
            StorageError: the file cannot be opened.
        """
        try:
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror}). Name another file.") from None

    def add(self, request: Mapping[str, Any], status: int, response: Mapping[str, Any]) -> None:
        """Write one answer."""
        key = f"{replay_key(request):016x}"
        self._file.write(orjson.dumps({"key": key, "request": request, "status": status, "response": response}) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
