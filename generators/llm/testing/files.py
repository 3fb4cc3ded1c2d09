"""``/files`` of the test server: upload, list, retrieve, content, delete. Files are kept in memory."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.http_messages import HTTPReply, HTTPRequest, json_reply

BATCH_FILE_LIMIT = 200 * 1024 * 1024  # bytes, as at OpenAI


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """Stored file; ``created_at`` in seconds since 1970."""

    id: str
    filename: str
    purpose: str
    data: bytes
    created_at: int

    def summary(self) -> dict[str, Any]:
        """Return the file object of the API."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.data),
            "created_at": self.created_at,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
        }


class FileStore:
    """All files of a server."""

    def __init__(self) -> None:
        self._files: dict[str, UploadedFile] = {}
        self._made = 0

    def add(self, filename: str, purpose: str, data: bytes) -> UploadedFile:
        """Store a file and return it."""
        self._made += 1
        file = UploadedFile(f"file-{self._made:06d}", filename, purpose, data, int(time.time()))
        self._files[file.id] = file
        return file

    def get(self, identity: str) -> UploadedFile:
        """Return a file.

        Raises:
            APIError: 404: unknown id.
        """
        found = self._files.get(identity)
        if found is None:
            raise APIError(404, f"there is no file {identity!r}", param="id")
        return found

    def handle(self, request: HTTPRequest, rest: list[str]) -> HTTPReply:
        """Return the reply to a request; ``rest``: path segments after ``/files``.

        Raises:
            APIError: 400, 404, 405 or 413.
        """
        match (request.method, rest):
            case ("POST", []):
                return json_reply(self._upload(request).summary())
            case ("GET", []):
                purpose = request.parameters().get("purpose")
                rows = [f.summary() for f in self._files.values() if purpose in {None, f.purpose}]
                return json_reply(paginate(rows[::-1], request.parameters()))
            case ("GET", [identity]):
                return json_reply(self.get(identity).summary())
            case ("GET", [identity, "content"]):
                return HTTPReply(body=self.get(identity).data, content_type="application/octet-stream")
            case ("DELETE", [identity]):
                del self._files[self.get(identity).id]
                return json_reply({"id": identity, "object": "file", "deleted": True})
        raise APIError(405, "files support POST, GET and DELETE only")

    def _upload(self, request: HTTPRequest) -> UploadedFile:
        form = request.form
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            raise APIError(400, "the body must be multipart/form-data")
        missing = next((name for name in ("purpose", "file") if name not in form), None)
        if missing:
            raise APIError(400, f"the form has no field {missing!r}", param=missing)
        purpose, (filename, data) = form["purpose"][1].decode("utf-8", "replace"), form["file"]
        if purpose == "batch" and len(data) > BATCH_FILE_LIMIT:
            raise APIError(413, f"the input of a batch has at most {BATCH_FILE_LIMIT} bytes", param="file")
        return self.add(filename or "upload", purpose, data)


def paginate(rows: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of a list, newest first: ``limit`` rows (20) after the row with id ``after``.

    Raises:
        APIError: 400: invalid limit or after.
    """
    limit, after = query.get("limit", "20"), query.get("after", "")
    if not limit.isdecimal() or int(limit) < 1:
        raise APIError(400, "limit must be a whole number from 1", param="limit")
    start = next((at + 1 for at, row in enumerate(rows) if row["id"] == after), None) if after else 0
    if start is None:
        raise APIError(400, f"there is no {after!r} to begin after", param="after")
    page = rows[start : start + int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + len(page) < len(rows),
    }
