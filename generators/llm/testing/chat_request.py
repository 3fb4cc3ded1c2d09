"""Chat requests as rules and answers see them: validated, with key and attempt.

A request's *key* is a digest of its JSON value: the order of members and white space do not matter. Counts, random
choices and replay use it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from pairwright.generators.llm.testing.api_errors import APIError

Wanted = Literal["text", "json", "schema", "tool"]

IMAGE_TOKENS = 85  # OpenAI's count for an image in low detail


def body_key(body: Mapping[str, Any]) -> int:
    """Return the 64-bit key of a request body."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.blake2b(canonical, digest_size=8).digest(), "big")


def content_text(content: object) -> str:
    """Return the text of a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text", "") for part in content if isinstance(part, dict))
        return "\n".join(text for text in parts if isinstance(text, str) and text)
    return ""


def estimate_text_tokens(text: str) -> int:
    """Return the estimated tokens of a text: one per four characters."""
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Chat request. ``attempt``: how often the same body came before."""

    body: Mapping[str, Any]
    key: int
    attempt: int
    model: str
    user: str
    wants: Wanted

    @property
    def system(self) -> str:
        """System (or developer) text, possibly empty."""
        texts = (content_text(m.get("content")) for m in self.messages() if m.get("role") in {"system", "developer"})
        return "\n".join(texts)

    @property
    def prompt_tokens(self) -> int:
        """Estimated prompt tokens: a quarter of the characters, and a fixed number per image."""
        return sum(_message_tokens(message) for message in self.messages())

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON schema of ``response_format`` or of the tool's parameters; else empty."""
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
        """Return the function to call: the one in ``tool_choice``, else the first."""
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
    """Validate the body of a chat request; ``deployment`` is the model name in Azure's path.

    Raises:
        APIError: 400, naming the invalid member.
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
    if body.get("stream"):
        raise APIError(400, "this test server does not stream; send `stream: false`", param="stream")
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
