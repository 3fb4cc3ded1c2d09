"""Endpoints of the test server: routing, authentication, counting.

Paths, after ``/v1``, ``/openai/v1``, ``/openai`` or ``/openai/deployments/NAME`` (the last two are Azure's older form,
which requires ``api-version``) or nothing::

    POST /chat/completions          GET /models, /models/ID
    /files ...                      /batches ...

Control endpoints, which are not counted::

    GET  /_stats, /_stats?each=1    counts; with those of every body
    POST /_reset                    reset counts, attempts, limits, files and batches; the script stays
    GET  /_script                   the script
    POST /_script                   a JSON object of settings to change
"""

import hmac
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import ConfigError
from pairwright.generators.llm.testing.answers import Answerer
from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.batches import BatchStore
from pairwright.generators.llm.testing.chat import DELIVERY_FAULTS, NO_CREDIT, AnswerSources, ChatService, ReplyCredit
from pairwright.generators.llm.testing.chat_request import body_key
from pairwright.generators.llm.testing.faults import NOT_JSON, describe_fault, fault_error
from pairwright.generators.llm.testing.files import FileStore
from pairwright.generators.llm.testing.http_messages import HTTPReply, HTTPRequest, json_reply
from pairwright.generators.llm.testing.rate_limits import LimitReachedError
from pairwright.generators.llm.testing.replay import Recorder, Replay
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.stats import ServerStats

DEFAULT_MODEL = "test-model"  # listed unless the script names models

_PATH = re.compile(
    r"(?P<azure>/openai(?!/v1/)(?:/deployments/(?P<deployment>[^/]+))?|/openai/v1|/v1)?"
    r"/(?P<endpoint>chat/completions|models|files|batches)(?P<rest>(?:/[^/]+)*)/?"
)
_log = logging.getLogger(__name__)


class ServerApp:
    """Test server without its socket. No method waits: delays are part of the reply."""

    def __init__(
        self,
        script: ServerScript | None = None,
        *,
        answer: Answerer | None = None,
        replay: Path | None = None,
        record: Path | None = None,
        api_key: str = "",
    ) -> None:
        """Create a server.

        Args:
            script: its behaviour; by default it answers everything without delay.
            answer: called before the script's rules; if it returns None, they apply. Must not block.
            replay: recording to answer from instead of rules.
            record: recording to append answers to.
            api_key: required key; empty: any or none.

        Raises:
            InputError: the recording to replay is missing or invalid.
            StorageError: the recording to write cannot be opened.
        """
        self._key = api_key.encode()
        sources = AnswerSources(answer, Replay(replay) if replay else None, Recorder(record) if record else None)
        self._chat = ChatService(script or ServerScript(), ServerStats(), sources)
        self._clear()

    def _clear(self) -> None:
        self._files = FileStore()
        self._batches = BatchStore(self._files)
        self._tries: Counter[int] = Counter()

    @property
    def script(self) -> ServerScript:
        """Current script."""
        return self._chat.script

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings of the script while running; limits are reset.

        Raises:
            ConfigError: unknown key or invalid value; nothing is changed.
        """
        script = self.script.changed(changes, where="script")
        self._chat = ChatService(script, self._chat.stats, self._chat.sources)

    def reset(self) -> None:
        """Reset counts, attempts, limits, files and batches."""
        self._chat = ChatService(self.script, self._chat.stats.fresh(), self._chat.sources)
        self._clear()

    def stats(self, *, each: bool = False) -> dict[str, Any]:
        """Return the counts; ``each`` adds those of every body."""
        return self._chat.stats.report(each=each)

    def close(self) -> None:
        """Close the recording."""
        if self._chat.sources.recorder:
            self._chat.sources.recorder.close()

    def connected(self) -> None:
        """Count a connection of a client."""
        self._chat.stats.connections += 1

    def ended(self, reply: HTTPReply, *, whole: bool) -> None:
        """Count a reply that was delivered, or (not ``whole``) broke off or lost its client."""
        account = reply.tag
        if not isinstance(account, ReplyCredit):
            return
        stats = self._chat.stats
        stats.ended(reply.status, whole=whole, meant=reply.manner in {"reset", "half", "never"})
        if whole and account.body is not None:
            stats.answered(account.body, account.tokens)

    def handle(self, request: HTTPRequest) -> HTTPReply:
        """Return the reply to a request."""
        if request.path.startswith("/_"):
            return self._guarded(request, self._control)
        self._chat.stats.enter()
        reply = self._guarded(request, self._counted)
        return reply if reply.tag is not None else replace(reply, tag=NO_CREDIT)

    def _guarded(self, request: HTTPRequest, handle: Callable[[HTTPRequest], HTTPReply]) -> HTTPReply:
        try:
            self._authorize(request.headers)
            return handle(request)
        except APIError as problem:
            if isinstance(problem, LimitReachedError):
                self._chat.stats.limited[problem.limit] += 1
            return HTTPReply(problem.status, orjson.dumps(problem.body()), problem.headers)
        except Exception as error:  # noqa: BLE001 - a bug in a callable is logged and answered with a 500
            _log.exception("the test server failed on %s %s", request.method, request.path)
            return json_reply(
                APIError(500, f"{type(error).__name__} in the test server", code="server_bug").body(), 500
            )

    def _authorize(self, headers: Mapping[str, str]) -> None:
        if not self._key:
            return
        given = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("api-key", "")
        if not hmac.compare_digest(given.encode("latin-1"), self._key):
            raise APIError(401, "the API key is missing or wrong", code="invalid_api_key")

    def _counted(self, request: HTTPRequest) -> HTTPReply:
        endpoints = self._chat.stats.endpoints
        if request.path == "/v1/chat/completions" and request.method == "POST":
            endpoints["chat"] += 1
            return self._chat.reply(request.body, "")
        found = _PATH.fullmatch(request.path)
        if found is None:
            endpoints["unknown"] += 1
            raise APIError(404, f"there is no {request.method} {request.path}", code="unknown_url")
        azure = found["azure"] or ""
        if azure.startswith("/openai") and azure != "/openai/v1" and "api-version" not in request.parameters():
            endpoints["unknown"] += 1
            raise APIError(404, "Azure's paths require the query api-version", code="404")
        name = found["endpoint"].partition("/")[0]
        endpoints[name] += 1
        if name == "chat":
            if request.method != "POST" or found["rest"]:
                raise APIError(405, "chat completions support POST only")
            return self._chat.reply(request.body, found["deployment"] or "")
        return self._reply_with_faults(name, request, found["rest"].split("/")[1:])

    def _reply_with_faults(self, name: str, request: HTTPRequest, rest: list[str]) -> HTTPReply:
        chat, line = self._chat, [request.method, request.path, request.query, request.body.hex()]
        key = body_key({"": line}) if self.script.faults else 0
        fault = chat.plan.choose(name, key, self._tries[key])
        self._tries[key] += 1
        if fault:
            chat.stats.faults[f"{name}/{fault}"] += 1
            if describe_fault(fault)[0] == "status":
                raise fault_error(fault, self.script.retry_after_s)
        # As at a provider, the request is processed even if its reply is lost.
        reply = self._rest(name, request, rest)
        if fault in {"malformed", "wrong_type"}:
            return replace(reply, body=NOT_JSON if fault == "malformed" else b'["none"]')
        spread = self.script.hang_s if fault == "timeout" else self.script.drip_s
        return replace(reply, manner=DELIVERY_FAULTS.get(fault, "whole"), spread=spread) if fault else reply

    def _rest(self, name: str, request: HTTPRequest, rest: list[str]) -> HTTPReply:
        if name == "files":
            return self._files.handle(request, rest)
        if name == "batches":
            return self._batches.handle(request, rest, self._chat)
        if request.method != "GET":
            raise APIError(405, "models support GET only")
        names = self.script.models or (DEFAULT_MODEL,)
        rows = [{"id": model, "object": "model", "created": 0, "owned_by": "pairwright"} for model in names]
        if not rest:
            return json_reply({"object": "list", "data": rows})
        wanted = "/".join(rest)
        row = next((row for row in rows if row["id"] == wanted), None)
        if row is None:
            raise APIError(404, f"there is no model {wanted!r}", code="model_not_found", param="model")
        return json_reply(row)

    def _control(self, request: HTTPRequest) -> HTTPReply:
        match (request.method, request.path):
            case ("GET", "/_stats"):
                return json_reply(self.stats(each=request.parameters().get("each", "0") != "0"))
            case ("POST", "/_reset"):
                self.reset()
            case ("POST", "/_script"):
                self._change_from_json(request.body)
            case ("GET", "/_script"):
                pass
            case _:
                raise APIError(404, f"there is no {request.method} {request.path}", code="unknown_url")
        return json_reply(self.script.model_dump(mode="json", by_alias=True))

    def _change_from_json(self, data: bytes) -> None:
        try:
            changes = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise APIError(400, "the script is not JSON") from None
        if not isinstance(changes, dict):
            raise APIError(400, "the script must be a JSON object")
        try:
            self.change(changes)
        except ConfigError as error:
            raise APIError(400, str(error)) from None
