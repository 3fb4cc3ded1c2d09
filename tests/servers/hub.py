"""A Hugging Face Hub on loopback, in a thread, with what a dataset needs: creation, listing, uploads of large files, commits.

The state is in the `Hub` that the server has. ``fail_after`` large files the storage answers 403, as after a lost connection.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_loopback"  # noqa: S105 - of the server in this file
_LARGE = (".tar", ".parquet")


@dataclass
class Hub:
    """What the server has.

    Attributes:
        files: of the dataset's last commit, by path.
        objects: uploaded large files, by SHA-256.
        created: bodies of the requests that created a dataset.
        commits: messages.
        uploads: hashes in the order in which files were sent.
        fail_after: number of uploads after which they are refused; negative: never.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    fail_after: int = -1


@contextmanager
def hub_server() -> Iterator[tuple[str, Hub]]:
    """Provide the address of a server, and its state."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hub
    finally:
        server.shutdown()
        server.server_close()


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer who the user is, and what files there are."""
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid credentials"}, 401)
        elif "/whoami" in self.path:
            self._answer({"name": "owner", "type": "user"})
        else:
            self._answer([self._entry(path, data) for path, data in sorted(self.hub.files.items())])

    def do_PUT(self) -> None:
        """Take a large file."""
        data = self._body()
        if self.hub.fail_after == len(self.hub.uploads):
            self._answer({"error": "Connection lost"}, 403)
            return
        self.hub.uploads.append(_sha(data))
        self.hub.objects[_sha(data)] = data
        self._answer({})

    def do_POST(self) -> None:
        """Create the dataset, say how files are uploaded, commit."""
        body = self._body()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid credentials"}, 401)
        elif self.path == "/api/repos/create":
            self.hub.created.append(json.loads(body))
            self._answer({"url": f"{self._address}/datasets/owner/birds"})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["path"].endswith(_LARGE) else "regular",
                    "shouldIgnore": False,
                }
                for each in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif self.path.endswith("/objects/batch"):
            objects = json.loads(body)["objects"]
            self._answer({"transfer": "basic", "objects": [self._upload(each) for each in objects]})
        else:
            self._commit(body)

    @property
    def _address(self) -> str:
        return f"http://{self.headers['Host']}"

    def _upload(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if wanted["oid"] in self.hub.objects:
            return wanted
        return wanted | {"actions": {"upload": {"href": f"{self._address}/storage/{wanted['oid']}"}}}

    def _commit(self, body: bytes) -> None:
        for each in map(json.loads, body.splitlines()):
            value = each["value"]
            if each["key"] == "header":
                self.hub.commits.append(value["summary"])
            elif each["key"] == "deletedFile":
                del self.hub.files[value["path"]]
            elif each["key"] == "lfsFile":
                self.hub.files[value["path"]] = self.hub.objects[value["oid"]]
            else:
                self.hub.files[value["path"]] = base64.b64decode(value["content"])
        oid = hashlib.sha1(body, usedforsecurity=False).hexdigest()
        self._answer({"commitUrl": f"{self._address}/datasets/owner/birds/commit/{oid}", "commitOid": oid})

    def _entry(self, path: str, data: bytes) -> dict[str, Any]:
        entry = {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
        if path.endswith(_LARGE):
            entry["lfs"] = {"oid": _sha(data), "size": len(data), "pointerSize": 100}
        return entry

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
