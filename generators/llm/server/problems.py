"""Errors in the shape in which OpenAI's API sends them: a status, and ``{"error": {...}}``."""

from collections.abc import Mapping
from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
}


class Problem(Exception):  # noqa: N818 - not a fault of ours: it becomes an answer
    """Raised where a request is refused; it becomes the answer."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers: Mapping[str, str] = headers or {}

    def body(self) -> dict[str, Any]:
        """Return the JSON that the client gets."""
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
