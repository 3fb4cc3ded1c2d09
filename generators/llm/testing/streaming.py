"""A chat completion as server-sent events, as ``stream: true`` asks for it."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

CHUNK_CHARS = 16  # letters a delta

DONE = b"data: [DONE]\n\n"


def completion_events(completion: Mapping[str, Any], *, usage: bool) -> tuple[bytes, ...]:
    """Return the events, the closing ``[DONE]`` included; ``usage`` adds an event with the counts before it."""
    shared = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    events = [
        _event({**shared, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": reason}]})
        for choice in completion["choices"]
        for delta, reason in _deltas(choice)
    ]
    if usage:
        events.append(_event({**shared, "choices": [], "usage": completion["usage"]}))
    return (*events, DONE)


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _deltas(choice: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    message = choice["message"]
    calls = message.get("tool_calls") or ()
    if not calls:
        yield {"role": "assistant", "content": ""}, None
    for name in ("content", "refusal"):
        for piece in _pieces(message.get(name) or ""):
            yield {name: piece}, None
    for at, call in enumerate(calls):
        opening = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield {"role": "assistant", "content": None, "tool_calls": [opening]}, None
        for piece in _pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}, None
    yield {}, choice["finish_reason"]


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS))
