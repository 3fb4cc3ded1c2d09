"""``/chat/completions``: from the bytes of a request to an outcome, for the wire as for the lines of a batch.

The order: the body is read and counted, the limits are asked, then the faults, then the rules; the answer is made,
perhaps spoiled, recorded and written down as JSON or as events.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.server.answers import Answer, Answerer, completion, made_answer
from pairwright.generators.llm.server.chat_request import ChatRequest, key_of, read_chat
from pairwright.generators.llm.server.faults import NOT_JSON, FaultPlan, known, problem_of, spoil, wrong_body
from pairwright.generators.llm.server.limits import Limits
from pairwright.generators.llm.server.problems import Problem
from pairwright.generators.llm.server.replay import Recorder, Replay
from pairwright.generators.llm.server.script import Script
from pairwright.generators.llm.server.stats import Body, Stats
from pairwright.generators.llm.server.streaming import DONE, events_of
from pairwright.generators.llm.server.wire import Manner, Reply

MANNERS: Mapping[str, Manner] = {"reset": "reset", "half": "half", "drip": "drip", "timeout": "never"}
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Account:
    """Whom a reply is credited to once it has left whole: nobody, where ``body`` is None. Tokens: asked, said."""

    body: Body | None = None
    tokens: tuple[int, int] = (0, 0)


NOBODY = Account()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where answers come from, and go to: a callable before the rules, a recording instead of them, a record."""

    answer: Answerer | None = None
    replay: Replay | None = None
    recorder: Recorder | None = None


@dataclass(slots=True)
class Chat:
    """Answers chat requests as a script says."""

    script: Script
    stats: Stats
    sources: Sources
    plan: FaultPlan = field(init=False)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        self.plan = FaultPlan(self.script.faults, self.script.seed)
        self.limits = Limits(self.script, time.monotonic())

    def reply(self, data: bytes, deployment: str) -> Reply:
        """Return the reply to a request that came over the wire.

        Raises:
            Problem: the request is refused at once: it is malformed, or a limit is reached.
        """
        request, body = self._read(data, deployment)
        tokens = request.prompt_tokens + _max_tokens(request) if self.limits.count_tokens else 0
        self.limits.admit(self.stats.in_flight, tokens, time.monotonic())
        try:
            return self._answer(request, body)
        except Problem as problem:
            headers = {**self.limits.headers(), **problem.headers}
            return Reply(problem.status, orjson.dumps(problem.body()), headers, delay=self._delay(request), tag=NOBODY)

    def line(self, data: bytes) -> tuple[int, bytes]:
        """Return status and body for a line of a batch; a fault that only a wire can have becomes a 500."""
        self.stats.endpoints["batch_line"] += 1
        try:
            request, body = self._read(data, "")
            if request.body.get("stream"):
                return 400, orjson.dumps(Problem(400, "a line of a batch cannot be streamed", param="stream").body())
            reply = self._answer(request, body)
        except Problem as problem:
            return problem.status, orjson.dumps(problem.body())
        if reply.manner != "whole" or (reply.status == 200 and reply.tag.body is None):
            return 500, orjson.dumps(problem_of("500", 0).body())
        if reply.tag.body is not None:
            self.stats.answered(reply.tag.body, reply.tag.tokens)
        return reply.status, reply.body

    def _read(self, data: bytes, deployment: str) -> tuple[ChatRequest, Body]:
        try:
            given = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise Problem(400, "the body is not JSON") from None
        if deployment and isinstance(given, dict):
            given.setdefault("model", deployment)
        key = key_of(given)
        body = self.stats.body(key)
        return read_chat(given, key, body.passed, deployment), body

    def _answer(self, request: ChatRequest, body: Body) -> Reply:
        self._check(request)
        body.passed += 1
        fault = self.plan.choose("chat", request.key, request.attempt)
        self._refuse(fault)
        status, content, own_fault = self._content(request)
        if own_fault:
            fault = own_fault
            self._refuse(fault)
        if fault:
            self.stats.faults[fault] += 1
            if status == 200 and known(fault)[0] == "model":
                spoil(fault, content)
        if self.sources.recorder and (not fault or known(fault)[0] == "model"):
            self.sources.recorder.add(request.body, status, content)
        return self._written(request, body, status, content, fault)

    def _check(self, request: ChatRequest) -> None:
        script = self.script
        if script.models and request.model not in script.models:
            raise Problem(404, f"there is no model {request.model!r}", code="model_not_found", param="model")
        used = {"schema": "json_schema", "json": "json_object", "tool": "tools"}.get(request.wants)
        for feature in ("stream" if request.body.get("stream") else None, used):
            if feature in script.without:
                raise Problem(400, f"{feature} is not supported by this server", code="unsupported_parameter")
        for name in script.without:
            if name in request.body and name not in {"stream", "tools"}:
                raise _unsupported(name)
        if "system" in script.without and request.system:
            role = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
            raise Problem(400, role, code="unsupported_value", param="messages[0].role")

    def _refuse(self, fault: str) -> None:
        if fault and known(fault)[0] == "status":
            self.stats.faults[fault] += 1
            raise problem_of(fault, self.script.retry_after_s)

    def _content(self, request: ChatRequest) -> tuple[int, dict[str, Any], str]:
        """Return status, body, and the fault that a rule or the callable asks for."""
        if self.sources.replay:
            played = self.sources.replay.find(request.body, request.attempt)
            if played is None:
                raise Problem(404, f"no answer to {request.key:016x} is recorded", code="replay_unmatched")
            return played.status, orjson.loads(orjson.dumps(played.response)), ""
        answers = [self._said(request, choice) for choice in range(request.body.get("n") or 1)]
        return 200, completion(request, answers, int(time.time())), answers[0].fault

    def _said(self, request: ChatRequest, choice: int) -> Answer:
        if self.sources.answer and (said := self.sources.answer(request)):
            return said
        rule = next((rule for rule in self.script.rules if rule.holds(request)), None)
        if rule is None:
            return made_answer(request, choice)
        return rule.answer(made_answer(request, choice) if rule.says_nothing else Answer())

    def _written(self, request: ChatRequest, body: Body, status: int, content: dict[str, Any], fault: str) -> Reply:
        streamed = status == 200 and bool(request.body.get("stream"))
        usable = status == 200 and fault not in {"malformed", "wrong_type"}
        parts: tuple[bytes, ...] = ()
        data = b""
        if fault == "malformed":
            data = NOT_JSON
        elif fault == "wrong_type":
            data = wrong_body(content)
        elif streamed:
            parts = events_of(content, usage=bool((request.body.get("stream_options") or {}).get("include_usage")))
        else:
            data = orjson.dumps(content)
        if streamed and data:
            parts = (b"data: " + data + b"\n\n", DONE)
        return Reply(
            status,
            data,
            self.limits.headers(),
            EVENTS if streamed else "application/json",
            parts,
            MANNERS.get(fault, "whole"),
            self._delay(request),
            self.script.hang_s if fault == "timeout" else self.script.drip_s,
            Account(body, _tokens(content)) if usable else NOBODY,
        )

    def _delay(self, request: ChatRequest) -> float:
        script = self.script
        if not script.jitter_ms:
            return script.latency_ms / 1000
        chance = make_rng(script.seed, "jitter", request.key, request.attempt).random()
        return (script.latency_ms + script.jitter_ms * chance) / 1000


def _unsupported(name: str) -> Problem:
    """Return OpenAI's error about a parameter that a model does not take."""
    instead = {"max_tokens": " Use 'max_completion_tokens' instead."}.get(name, "")
    message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
    return Problem(400, message, code="unsupported_parameter", param=name)


def _max_tokens(request: ChatRequest) -> int:
    most = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
    return most if isinstance(most, int) else 0


def _tokens(content: Mapping[str, Any]) -> tuple[int, int]:
    usage = content.get("usage")
    if not isinstance(usage, dict):
        return 0, 0
    return int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
