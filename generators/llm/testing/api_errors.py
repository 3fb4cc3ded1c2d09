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


class APIError(Exception):
    """Raised where a request is refused; it becomes the answer."""

    def __init__(  # noqa: PLR0913 - keywords, which are parts of one body
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: Any = None,
    ) -> None:
        """Prepare an error; ``content`` is the whole body where it is not OpenAI's."""
        super().__init__(message)
        self._content = content
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers: Mapping[str, str] = headers or {}

    def body(self) -> Any:
        """Return the JSON that the client gets."""
        if self._content is not None:
            return self._content
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
