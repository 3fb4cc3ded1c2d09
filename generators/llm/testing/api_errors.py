"""Errors of OpenAI's API, and of other providers verbatim, for the test server."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

TABLE = Path(__file__).with_name("provider_faults.jsonl")  # kind, status, body as it was sent, meaning


class APIError(Exception):
    """Request refused with a status and ``{"error": {...}}``."""

    def __init__(  # noqa: PLR0913 - keywords, parts of one body
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: Any = None,
    ) -> None:
        """Create an error; ``content`` replaces OpenAI's body."""
        super().__init__(message)
        self._content = content
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers: Mapping[str, str] = headers or {}

    def body(self) -> Any:
        """Return the JSON body."""
        if self._content is not None:
            return self._content
        kind = "server_error" if self.status >= 500 else "requests" if self.status == 429 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """Error of a provider: HTTP status, JSON body, and meaning."""

    status: int
    body: Any
    means: str


def _read_provider_faults() -> dict[str, ProviderFault]:
    rows = map(orjson.loads, TABLE.read_bytes().splitlines())
    return {row["kind"]: ProviderFault(row["status"], row["body"], row["means"]) for row in rows}


PROVIDER_FAULTS: Mapping[str, ProviderFault] = _read_provider_faults()
