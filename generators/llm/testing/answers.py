"""Chat completions of the test server.

The text comes from a callable, a rule, or the request itself. Made from the request it is always the same: an example of
the schema, else the end of the user's text. It is cheap and unlike a model's text, so that no test depends on it by
accident.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pairwright.generators.llm.testing.chat_request import ChatRequest, estimate_text_tokens
from pairwright.generators.llm.testing.schema_examples import example_json

MAX_ECHO_CHARS = 200


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """Answer of the model. Empty finish reason and usage are derived from the text.

    ``text`` becomes the arguments of the tool call if the request asks for one. A ``fault`` (of `faults.KINDS`) is injected
    instead of, or in addition to, the text. ``logprobs`` are those of the first token, by token.
    """

    text: str = ""
    refusal: str = ""
    finish_reason: str = ""
    usage: tuple[int, int] | None = None
    fault: str = ""
    logprobs: Mapping[str, float] | None = None


Answerer = Callable[[ChatRequest], ServerAnswer | None]


def generate_answer(request: ChatRequest, choice: int = 0) -> ServerAnswer:
    """Return the answer made from the request: an example of its schema, else an echo.

    Raises:
        APIError: 400: no example of the schema can be made.
    """
    if request.wants in {"schema", "tool"}:
        return ServerAnswer(example_json(request.schema, request.key + choice))
    echo = f"You said: {request.user[-MAX_ECHO_CHARS:]}" + (f" ({choice + 1})" if choice else "")
    return ServerAnswer(orjson.dumps({"answer": echo}).decode() if request.wants == "json" else echo)


def build_completion(request: ChatRequest, answers: list[ServerAnswer], created: int) -> dict[str, Any]:
    """Return the chat completion with one choice per answer."""
    identity = f"chatcmpl-{request.key:016x}{request.attempt:02x}"
    usage = next((answer.usage for answer in answers if answer.usage), None)
    prompt, completion = usage or (
        request.prompt_tokens,
        sum(estimate_text_tokens(a.text or a.refusal) for a in answers),
    )
    return {
        "id": identity,
        "object": "chat.completion",
        "created": created,
        "model": request.model,
        "choices": [_choice(request, answer, at) for at, answer in enumerate(answers)],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def _choice(request: ChatRequest, answer: ServerAnswer, at: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal or None}
    reason = "stop"
    if answer.refusal:
        message["content"] = answer.text or None
    elif request.wants == "tool":
        function = {"name": request.tool()["name"], "arguments": answer.text}
        message["content"] = None
        message["tool_calls"] = [{"id": f"call_{request.key:016x}_{at}", "type": "function", "function": function}]
        # As at OpenAI: "stop" if the request demands the tool by name.
        reason = "stop" if isinstance(request.body.get("tool_choice"), Mapping) else "tool_calls"
    return {
        "index": at,
        "finish_reason": answer.finish_reason or reason,
        "logprobs": _logprobs(answer),
        "message": message,
    }


def _logprobs(answer: ServerAnswer) -> dict[str, Any] | None:
    if answer.logprobs is None:
        return None
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in answer.logprobs.items()]
    return {"content": [{"token": answer.text, "logprob": 0.0, "bytes": None, "top_logprobs": top}], "refusal": None}
