"""``pairwright generate`` with faulty servers: no lost row, a correct bill, a clear end."""

import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.generators.llm.testing.schema_examples import example_json

ROWS = 4
VERBS = {
    "negatives": ("negatives", "captions.csv", "--method", "llm"),
    "positives": ("positives", "captions.csv", "--method", "llm"),
    "conversations": ("conversations", "captions.csv", "--method", "llm", "--types", "detail"),
    "rationales": ("rationales", "rows.jsonl", "--task", "nli"),
}
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"


@dataclass
class Sent:
    """What is sent for a request: a status and a body, or half of it and a reset."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    reset: bool = False


def completion(message: dict[str, Any], finish: str = "stop") -> Sent:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return Sent(json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode())


def refusing(status: int, body: object, **headers: str) -> Sent:
    return Sent(json.dumps(body).encode(), status, {name.replace("_", "-"): value for name, value in headers.items()})


Behaviour = Callable[[str, int], Sent]  # of the answer that would be right, and how often the request came before

CALL = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"q": "dog"}'}}
ENDS: dict[str, tuple[Behaviour, str, str]] = {
    "refusal": (lambda *_: completion({"content": "I'm sorry, but I can't help with that."}), "refused", "the model"),
    "refusal apart": (lambda *_: completion({"content": None, "refusal": "No."}), "refused", "the model refused"),
    "empty": (lambda *_: completion({"content": ""}), "empty_answer", "the answer is empty. Check the prompt"),
    "length": (lambda right, _: completion({"content": right[:9]}, "length"), "truncated", "--parameter max_tokens=N"),
    "thought": (
        lambda *_: completion({"content": None, "reasoning_content": "Well, the dog"}, "length"),
        "reasoning_only",
        "the model stopped within its reasoning, without an answer. Raise the token limit with --parameter max_tokens=N,",
    ),
    "another tool": (lambda *_: completion({"content": None, "tool_calls": [CALL]}, "tool_calls"), "", ""),
    "400 as vLLM": (
        lambda *_: refusing(400, {"object": "error", "message": "maximum context length is 9 tokens", "code": 400}),
        "context_too_long",
        "(400: maximum context length is 9 tokens). Shorten the row or the prompt, lower max_tokens,",
    ),
    "422 as FastAPI": (
        lambda *_: refusing(422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]}),
        "unsupported",
        "(422: body.seed: extra fields not permitted). Remove that parameter or the schema.",
    ),
}
PASSES: dict[str, Behaviour] = {
    "429": lambda right, before: completion({"content": right}) if before else refusing(429, {}, retry_after="0.01"),
    "500": lambda right, before: completion({"content": right}) if before else refusing(500, {"message": "oops"}),
    "a page": lambda right, before: completion({"content": right}) if before else Sent(PAGE, 502),
    "reset": lambda right, before: Sent(completion({"content": right}).body, reset=not before),
    "right": lambda right, _: completion({"content": right}),
}


class Awkward(ThreadingHTTPServer):
    """Behaves as set up, and counts the complete answers sent."""

    daemon_threads, request_queue_size = True, 64

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour, self.answered, self.came = behaviour, 0, Counter[bytes]()
        self.lock = threading.Lock()

    def handle_error(self, *_: object) -> None:
        """Say nothing of connections that we reset."""


class _Handler(BaseHTTPRequestHandler):
    server: Awkward
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a chat request."""
        data = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            before = self.server.came[data]
            self.server.came[data] += 1
        wanted = json.loads(data).get("response_format")
        right = (
            example_json(wanted["json_schema"]["schema"], 1) if wanted else "It says so. So the answer is entailment."
        )
        sent = self.server.behaviour(right, before)
        self.send_response(sent.status)
        for name, value in {"content-length": str(len(sent.body)), **sent.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if sent.reset:
            self.wfile.write(sent.body[: len(sent.body) // 2])
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        with self.server.lock:
            self.server.answered += sent.status == 200
        self.wfile.write(sent.body)


@contextmanager
def awkward(behaviour: Behaviour) -> Iterator[Awkward]:
    """Serve on a free port."""
    with Awkward(behaviour) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions and rows of a task, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\n" + "".join(f"Dog {n} and a cat on a bed.\n" for n in range(ROWS)))
    rows = [{"premise": f"Dog {n} eats.", "hypothesis": "A dog eats.", "label": "entailment"} for n in range(ROWS)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def generated(verb: str, server: Awkward, ends: int = 0) -> tuple[str, dict[str, Any]]:
    """Return the output of a run, and the JSON of a second run from the cache; both exit alike."""
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    command = ("generate", *VERBS[verb], "--model", "m", "--base-url", url, "--price", "1/2", "--out", "out.jsonl")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == ends, done.output
    said = " ".join(done.output.split())
    paid = int(re.search(r" m: ([\d,]+) answers billed", said)[1])  # type: ignore[index]
    assert paid == server.answered
    again = CliRunner().invoke(app, [*command, "--json"])
    assert again.exit_code == ends
    return said, json.loads(again.stdout)


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("what", ENDS)
def test_what_a_server_says_in_place_of_an_answer_ends_in_rows_with_its_reason(what: str, verb: str) -> None:
    behaviour, reason, printed = ENDS[what]
    with awkward(behaviour) as server:
        said, again = generated(verb, server, ends=3)
    rejected = lines_of("out.rejected.jsonl" if verb == "rationales" else "out.jsonl")
    failed = lines_of("out.failed.jsonl")
    assert len(failed) == len({row["row"] for row in failed}) == ROWS
    assert {row["status"] for row in rejected} == {"rejected"}
    assert all(row["reason"] for row in rejected)
    assert {row["reason"] for row in rejected} <= ({reason, "no_edit"} if reason else {row["reason"] for row in failed})
    assert f"{ROWS} of {ROWS} rows failed: {ROWS} {failed[0]['reason']}" in said
    assert printed in said
    assert re.search(r"No (text|rationale) was kept of 4 (captions|rows)", said)
    assert again["llm"]["requests"] == 0
    assert again["llm"]["in_all"]["answers"] == server.answered


@pytest.mark.parametrize("what", PASSES)
def test_what_passes_by_itself_leaves_no_trace_but_time(what: str) -> None:
    with awkward(PASSES[what]) as server:
        said, again = generated("rationales", server)
    assert lines_of("out.failed.jsonl") == []
    assert len(lines_of("out.jsonl")) + len(lines_of("out.rejected.jsonl")) >= ROWS
    assert server.answered == again["llm"]["in_all"]["answers"] == ROWS
    assert "failed" not in said
