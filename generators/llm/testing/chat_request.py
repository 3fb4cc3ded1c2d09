"""A chat request as rules and answers see it: checked, with its key and the count of its coming.

A request's *key* is a digest of its JSON by meaning: the order of members and blanks change nothing, everything
else does. Counting, chance and replay all go by it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

Wanted = Literal["text", "json", "schema", "tool"]

IMAGE_TOKENS = 85  # what OpenAI's documentation counts for an image in low detail


def body_key(body: Mapping[str, Any]) -> int:
    """Return the key of a request body, of 64 bits."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.blake2b(canonical, digest_size=8).digest(), "big")


def content_text(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text", "") for part in content if isinstance(part, dict))
        return "\n".join(text for text in parts if isinstance(text, str) and text)
    return ""


def estimate_text_tokens(text: str) -> int:
    """Return an estimate of a text's tokens: one for four letters."""
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat request. ``attempt`` counts how often the same body came before (0: the first time)."""

    body: Mapping[str, Any]
    key: int
    attempt: int
    model: str
    user: str
    wants: Wanted

    @property
    def system(self) -> str:
        """The system (or developer) text, empty where there is none."""
        texts = (content_text(m.get("content")) for m in self.messages() if m.get("role") in {"system", "developer"})
        return "\n".join(texts)

    @property
    def prompt_tokens(self) -> int:
        """An estimate: a quarter of the letters, and a fixed number for an image."""
        return sum(_message_tokens(message) for message in self.messages())

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema that is asked for, as ``response_format`` or as the tool's parameters; else empty."""
        if self.wants == "schema":
            found = self.body["response_format"].get("json_schema", {}).get("schema", {})
        elif self.wants == "tool":
            found = self.tool().get("parameters", {})
        else:
            found = {}
        return found if isinstance(found, Mapping) else {}

    def messages(self) -> Iterator[Mapping[str, Any]]:
        """Yield the messages."""
        yield from self.body["messages"]

    def tool(self) -> Mapping[str, Any]:
        """Return the function that is to be called: the one that ``tool_choice`` names, or the first."""
        functions = [tool["function"] for tool in self.body["tools"]]
        choice = self.body.get("tool_choice")
        named = choice["function"]["name"] if isinstance(choice, dict) else None
        found: Mapping[str, Any] = next((f for f in functions if f["name"] == named), functions[0])
        return found


def _message_tokens(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    images = (
        sum(isinstance(p, dict) and p.get("type") == "image_url" for p in content) if isinstance(content, list) else 0
    )
    return 4 + estimate_text_tokens(content_text(content)) + IMAGE_TOKENS * images


def parse_chat_request(body: Any, key: int, attempt: int, deployment: str = "") -> ChatRequest:
    """Check a chat request's body; ``deployment`` names the model where the path does (Azure).

    Raises:
        Problem: 400, saying which member is wrong.
    """
    if not isinstance(body, dict):
        raise APIError(400, "the body is not a JSON object")
    model = deployment or body.get("model")
    if not isinstance(model, str) or not model:
        raise APIError(400, "you must name a model", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise APIError(400, "messages must be a list of at least one object", param="messages")
    count = body.get("n", 1)
    if count is not None and (not isinstance(count, int) or not 1 <= count <= 128):
        raise APIError(400, "n must be a whole number from 1 to 128", param="n")
    if not isinstance(body.get("stream_options") or {}, dict):
        raise APIError(400, "stream_options must be an object", param="stream_options")
    user = next((m for m in reversed(messages) if m.get("role") == "user"), messages[-1])
    return ChatRequest(body, key, attempt, model, content_text(user.get("content")), _wanted(body))


def _wanted(body: Mapping[str, Any]) -> Wanted:
    tools = body.get("tools")
    if tools and body.get("tool_choice") != "none":
        if not isinstance(tools, list) or not all(_is_function(tool) for tool in tools):
            raise APIError(400, "tools must be a list of functions, each with a name", param="tools")
        choice = body.get("tool_choice")
        names = [tool["function"]["name"] for tool in tools]
        if isinstance(choice, dict) and not (_is_function(choice) and choice["function"]["name"] in names):
            raise APIError(400, "tool_choice must name one of the tools", param="tool_choice")
        return "tool"
    form = body.get("response_format")
    if form is None:
        return "text"
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_schema" and not _has_schema(form):
        raise APIError(400, "json_schema must hold a name and a schema", param="response_format.json_schema")
    kinds: dict[str, Wanted] = {"text": "text", "json_object": "json", "json_schema": "schema"}
    if not isinstance(kind, str) or kind not in kinds:
        raise APIError(400, f"response_format.type must be one of {', '.join(kinds)}", param="response_format")
    return kinds[kind]


def _is_function(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _has_schema(form: Mapping[str, Any]) -> bool:
    given = form.get("json_schema")
    return isinstance(given, dict) and isinstance(given.get("name"), str) and isinstance(given.get("schema"), dict)
