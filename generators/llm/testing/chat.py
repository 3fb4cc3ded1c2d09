"""``/chat/completions`` of the test server, for HTTP requests and lines of batches.

Order: the body is parsed and counted, then limits, faults and rules apply; the answer is made, possibly corrupted,
recorded, and written as JSON.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.testing.answers import (
    Answerer,
    ServerAnswer,
    build_completion,
    generate_answer,
)
from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.chat_request import ChatRequest, body_key, parse_chat_request
from pairwright.generators.llm.testing.faults import (
    NOT_JSON,
    FaultPlan,
    corrupt_completion,
    describe_fault,
    fault_error,
    malformed_body,
)
from pairwright.generators.llm.testing.http_messages import Delivery, HTTPReply
from pairwright.generators.llm.testing.rate_limits import ServerLimits
from pairwright.generators.llm.testing.replay import Recorder, Replay
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.stats import BodyCounts, ServerStats

DELIVERY_FAULTS: Mapping[str, Delivery] = {"reset": "reset", "half": "half", "drip": "drip", "timeout": "never"}


@dataclass(frozen=True, slots=True)
class ReplyCredit:
    """Body and (prompt, completion) tokens to count once a reply is delivered whole; none if ``body`` is None."""

    body: BodyCounts | None = None
    tokens: tuple[int, int] = (0, 0)


NO_CREDIT = ReplyCredit()


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """Sources of answers: a callable before the rules, a recording instead of them; and a recorder."""

    answer: Answerer | None = None
    replay: Replay | None = None
    recorder: Recorder | None = None


@dataclass(slots=True)
class ChatService:
    """Answers chat requests according to a script."""

    script: ServerScript
    stats: ServerStats
    sources: AnswerSources
    plan: FaultPlan = field(init=False)
    limits: ServerLimits = field(init=False)

    def __post_init__(self) -> None:
        self.plan = FaultPlan(self.script.faults, self.script.seed)
        self.limits = ServerLimits(self.script, time.monotonic())

    def reply(self, data: bytes, deployment: str) -> HTTPReply:
        """Return the reply to an HTTP request.

        Raises:
            APIError: refused at once: malformed, or over a limit.
        """
        request, body = self._read(data, deployment)
        tokens = request.prompt_tokens + _max_tokens(request) if self.limits.count_tokens else 0
        self.limits.admit(self.stats.in_flight, tokens, time.monotonic())
        try:
            return self._answer(request, body)
        except APIError as problem:
            headers = {**self.limits.headers(), **problem.headers}
            return HTTPReply(
                problem.status, orjson.dumps(problem.body()), headers, delay=self._delay(request), tag=NO_CREDIT
            )

    def line(self, data: bytes) -> tuple[int, bytes]:
        """Return status and body for a line of a batch; faults of delivery become a 500."""
        self.stats.endpoints["batch_line"] += 1
        try:
            request, body = self._read(data, "")
            reply = self._answer(request, body)
        except APIError as problem:
            return problem.status, orjson.dumps(problem.body())
        if reply.manner != "whole" or (reply.status == 200 and reply.tag.body is None):
            return 500, orjson.dumps(fault_error("500", 0).body())
        if reply.tag.body is not None:
            self.stats.answered(reply.tag.body, reply.tag.tokens)
        return reply.status, reply.body

    def _read(self, data: bytes, deployment: str) -> tuple[ChatRequest, BodyCounts]:
        try:
            given = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise APIError(400, "the body is not JSON") from None
        if deployment and isinstance(given, dict):
            given.setdefault("model", deployment)
        key = body_key(given)
        body = self.stats.body(key)
        return parse_chat_request(given, key, body.passed, deployment), body

    def _answer(self, request: ChatRequest, body: BodyCounts) -> HTTPReply:
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
            if status == 200 and describe_fault(fault)[0] == "model":
                corrupt_completion(fault, content)
        if self.sources.recorder and (not fault or describe_fault(fault)[0] == "model"):
            self.sources.recorder.add(request.body, status, content)
        return self._written(request, body, status, content, fault)

    def _check(self, request: ChatRequest) -> None:
        script = self.script
        if script.models and request.model not in script.models:
            raise APIError(404, f"unknown model {request.model!r}", code="model_not_found", param="model")
        used = {"schema": "json_schema", "json": "json_object", "tool": "tools"}.get(request.wants)
        if used in script.without:
            raise APIError(400, f"{used} is not supported by this server", code="unsupported_parameter")
        for name in script.without:
            if name in request.body and name != "tools":
                raise _unsupported(name)
        if "system" in script.without and request.system:
            role = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
            raise APIError(400, role, code="unsupported_value", param="messages[0].role")

    def _refuse(self, fault: str) -> None:
        if fault and describe_fault(fault)[0] == "status":
            self.stats.faults[fault] += 1
            raise fault_error(fault, self.script.retry_after_s)

    def _content(self, request: ChatRequest) -> tuple[int, dict[str, Any], str]:
        """Return status, body, and the fault that a rule or the callable asks for."""
        if self.sources.replay:
            played = self.sources.replay.find(request.body, request.attempt)
            if played is None:
                raise APIError(404, f"no answer to {request.key:016x} is recorded", code="replay_unmatched")
            return played.status, orjson.loads(orjson.dumps(played.response)), ""
        answers = [self._choice(request, choice) for choice in range(request.body.get("n") or 1)]
        return 200, build_completion(request, answers, int(time.time())), answers[0].fault

    def _choice(self, request: ChatRequest, choice: int) -> ServerAnswer:
        if self.sources.answer and (answer := self.sources.answer(request)):
            return answer
        rule = next((rule for rule in self.script.rules if rule.holds(request)), None)
        if rule is None:
            return generate_answer(request, choice)
        return rule.answer(generate_answer(request, choice) if rule.has_no_answer else ServerAnswer())

    def _written(
        self, request: ChatRequest, body: BodyCounts, status: int, content: dict[str, Any], fault: str
    ) -> HTTPReply:
        usable = status == 200 and fault not in {"malformed", "wrong_type"}
        if fault == "malformed":
            data = NOT_JSON
        else:
            data = malformed_body(content) if fault == "wrong_type" else orjson.dumps(content)
        return HTTPReply(
            status,
            data,
            self.limits.headers(),
            "application/json",
            DELIVERY_FAULTS.get(fault, "whole"),
            self._delay(request),
            self.script.hang_s if fault == "timeout" else self.script.drip_s,
            ReplyCredit(body, _tokens(content)) if usable else NO_CREDIT,
        )

    def _delay(self, request: ChatRequest) -> float:
        script = self.script
        if not script.jitter_ms:
            return script.latency_ms / 1000
        jitter = make_rng(script.seed, "jitter", request.key, request.attempt).random()
        return (script.latency_ms + script.jitter_ms * jitter) / 1000


def _unsupported(name: str) -> APIError:
    """Return OpenAI's error for a parameter that a model does not support."""
    instead = {"max_tokens": " Use 'max_completion_tokens' instead."}.get(name, "")
    message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
    return APIError(400, message, code="unsupported_parameter", param=name)


def _max_tokens(request: ChatRequest) -> int:
    most = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
    return most if isinstance(most, int) else 0


def _tokens(content: Mapping[str, Any]) -> tuple[int, int]:
    usage = content.get("usage")
    if not isinstance(usage, dict):
        return 0, 0
    return int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
