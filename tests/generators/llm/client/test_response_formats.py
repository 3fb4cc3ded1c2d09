"""How a schema reaches servers that take it in one form or another."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.chat_completions import parse_error
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_adaptation import RefusedParts
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.response_formats import (
    MAX_MISSES,
    RESPONSE_FORMATS,
    NegotiatedFormatModel,
    ResponseFormat,
    apply_response_format,
)
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_app


class Edit(BaseModel):
    """A shape."""

    caption: str


class Other(BaseModel):
    """Another one."""

    score: int


TEXT = '{"caption":"a cat"}'
MESSAGES = (Message("system", "Be brief."), Message("user", "a dog"))
REQUEST = Request(MESSAGES, "m", {"temperature": 0}, build_schema(Edit))


def form_of(request: Request) -> ResponseFormat:
    return "json_schema" if request.schema else "tool" if "tools" in request.parameters else "json"


class Server:
    """Refuses forms with a failure of their own; notes the form of each request."""

    def __init__(self, refuses: Mapping[str, RequestError], *, only: type[BaseModel] | None = None) -> None:
        self.refuses, self.only = refuses, only
        self.forms: list[ResponseFormat] = []

    async def ask(self, request: Request) -> Reply:
        """Refuse or answer."""
        form = form_of(request)
        self.forms.append(form)
        await asyncio.sleep(0)
        if form in self.refuses and (self.only is None or request.schema == build_schema(self.only)):
            raise self.refuses[form].copy()
        return Reply(TEXT, "stop", "", Usage(1, 1), "m")


def refused(message: str, status: int = 400, **error: Any) -> RequestError:
    return parse_error(status, {}, orjson.dumps({"error": {"message": message, **error}}))


async def ask_all(requests: list[Request], *without: str) -> tuple[list[Reply], ServerApp, list[str]]:
    wants: list[str] = []

    def answer(request: ChatRequest) -> ServerAnswer:
        wants.append(request.wants)
        return ServerAnswer(TEXT)

    app = ServerApp(ServerScript.model_validate({"without": without}), answer=answer)
    async with serve_app(app) as server, open_model(LLMSettings(base_url=server.url, model="m")) as model:
        formed = NegotiatedFormatModel(model)
        replies = [await formed.ask(requests[0])]
        replies += await asyncio.gather(*(formed.ask(request) for request in requests[1:]))
    return replies, app, wants


def numbered(count: int) -> list[Request]:
    return [Request((Message("user", f"row {n}"),), "m", {"temperature": 0}, build_schema(Edit)) for n in range(count)]


@pytest.mark.parametrize(
    ("without", "form", "refusals"),
    [((), "schema", 0), (("json_schema",), "tool", 1), (("json_schema", "tools"), "text", 2)],
)
def test_a_real_server_gets_the_first_form_that_it_takes_and_is_not_asked_for_another_again(
    without: tuple[str, ...], form: str, refusals: int
) -> None:
    replies, app, wants = asyncio.run(ask_all(numbered(20), *without))
    assert [reply.text for reply in replies] == [TEXT] * 20
    assert wants == [form] * 20
    assert app.stats()["statuses"].get("400", 0) == refusals


def test_requests_in_flight_at_the_first_refusal_are_adapted_too() -> None:
    server = Server({"json_schema": refused("response_format is not supported")})
    formed = NegotiatedFormatModel(server)

    async def ask() -> list[Reply]:
        first = await asyncio.gather(*(formed.ask(request) for request in numbered(50)))
        return first + await asyncio.gather(*(formed.ask(request) for request in numbered(50)))

    assert len(asyncio.run(ask())) == 100
    assert [server.forms.count(form) for form in RESPONSE_FORMATS] == [50, 100, 0]


@pytest.mark.parametrize(
    "failure",
    [
        refused("This response_format type is unavailable now", code="invalid_request_error"),
        refused("Failed to deserialize: response_format: unknown variant `json_schema`, expected `text`", 422),
        refused("json_schema is not supported by this server", code="unsupported_parameter"),
        refused("Unsupported parameter", code="unsupported_parameter", param="response_format"),
        refused("failed to parse grammar", 500),
        refused("not supported"),
    ],
)
def test_refusals_of_known_servers_are_understood(failure: RequestError) -> None:
    server = Server({"json_schema": failure})
    assert asyncio.run(NegotiatedFormatModel(server).ask(REQUEST)).text == TEXT
    assert server.forms == ["json_schema", "tool"]


@pytest.mark.parametrize(
    "failure",
    [
        refused("Unsupported value: 'temperature' does not support 0 with this model", code="unsupported_value"),
        refused("messages are invalid"),
        refused("maximum context length is 8192 tokens"),
        refused("no such key", 401),
        refused("slow down", 429),
        RequestError("timeout"),
    ],
)
def test_other_errors_are_not_taken_for_a_refused_format(failure: RequestError) -> None:
    server = Server(dict.fromkeys(RESPONSE_FORMATS, failure))
    with pytest.raises(RequestError) as raised:
        asyncio.run(NegotiatedFormatModel(server).ask(REQUEST))
    assert raised.value.code == failure.code
    assert server.forms == ["json_schema"]


def test_when_every_format_is_refused_the_first_error_is_raised_and_nothing_remembered() -> None:
    server = Server({form: refused(f"{form} is not supported: no tool, no schema") for form in RESPONSE_FORMATS})
    formed = NegotiatedFormatModel(server)
    for _ in range(2):
        with pytest.raises(RequestError, match="json_schema is not supported"):
            asyncio.run(formed.ask(REQUEST))
    assert server.forms == [*RESPONSE_FORMATS, *RESPONSE_FORMATS]


def test_a_schema_that_the_server_calls_invalid_changes_the_form_for_itself_only() -> None:
    server = Server({"json_schema": refused("Invalid schema for response_format 'Edit'")}, only=Edit)
    formed = NegotiatedFormatModel(server)
    other = Request(MESSAGES, "m", {}, build_schema(Other))

    async def ask() -> None:
        for request in (REQUEST, REQUEST, other):
            await formed.ask(request)

    asyncio.run(ask())
    assert server.forms == ["json_schema", "tool", "tool", "json_schema"]


def test_a_format_whose_answers_are_lost_in_whitespace_is_left_after_some_of_them() -> None:
    """They are billed, so each is returned; the next requests are sent otherwise."""

    class Grammar(Server):
        async def ask(self, request: Request) -> Reply:
            reply = await super().ask(request)
            lost = self.forms[-1] != "json"
            return replace(reply, text='{"caption": "a' + " \n" * 500, finish_reason="length") if lost else reply

    server, lines = Grammar({}), list[str]()
    formed = NegotiatedFormatModel(server, RefusedParts(lines.append))

    async def ask() -> list[Reply]:
        return [await formed.ask(REQUEST) for _ in range(2 * MAX_MISSES + 2)]

    replies = asyncio.run(ask())
    assert server.forms == ["json_schema"] * MAX_MISSES + ["tool"] * MAX_MISSES + ["json"] * 2
    assert [reply.runs_away for reply in replies] == [True] * 2 * MAX_MISSES + [False] * 2
    assert len(lines) == 2
    assert lines[1] == "m: JSON by tool ends in whitespace up to the token limit; json is used from now on"


def test_what_is_remembered_of_one_model_does_not_hold_for_another() -> None:
    server = Server({"json_schema": refused("json_schema is not supported")})
    formed = NegotiatedFormatModel(server)

    async def ask() -> None:
        for model in ("m", "m", "n"):
            await formed.ask(Request(MESSAGES, model, {}, build_schema(Edit)))

    asyncio.run(ask())
    assert server.forms == ["json_schema", "tool", "tool", "json_schema", "tool"]


def test_a_request_without_a_schema_passes_as_it_is() -> None:
    plain = Request(MESSAGES, "m")
    assert all(apply_response_format(plain, form) is plain for form in RESPONSE_FORMATS)
    server = Server({"json": refused("schema not supported")})
    with pytest.raises(RequestError):
        asyncio.run(NegotiatedFormatModel(server).ask(plain))
    assert server.forms == ["json"]


def test_as_a_tool_the_schema_is_the_parameters_of_the_one_function_that_must_be_called() -> None:
    request = apply_response_format(REQUEST, "tool")
    [tool] = request.parameters["tools"]
    assert tool["function"] == {"name": "Edit", "parameters": build_schema(Edit).schema, "strict": True}
    assert request.parameters["tool_choice"]["function"] == {"name": "Edit"}
    assert request.parameters["temperature"] == 0
    assert request.schema is None
    assert request.messages == REQUEST.messages
    with pytest.raises(UsageError, match="with tools"):
        apply_response_format(Request(MESSAGES, "m", {"tools": []}, build_schema(Edit)), "tool")


def test_as_an_instruction_the_schema_follows_the_first_message() -> None:
    request = apply_response_format(REQUEST, "json")
    assert request.schema is None
    assert request.messages[0].text.startswith("Be brief.\n\nAnswer with one JSON object")
    assert orjson.loads(request.messages[0].text.splitlines()[-1]) == build_schema(Edit).schema
    assert request.messages[1:] == REQUEST.messages[1:]


def test_forms_are_keys_of_their_own_when_forced_and_one_key_when_found_out(tmp_path: Path) -> None:
    keys = {form: apply_response_format(REQUEST, form).key("e") for form in RESPONSE_FORMATS}
    assert len(set(keys.values())) == 3
    server = Server({"json_schema": refused("json_schema is not supported")})
    with Cache.open(tmp_path / "cache.sqlite") as cache:
        assert (
            asyncio.run(CachedModel(NegotiatedFormatModel(server), cache, "e").ask(REQUEST)).key == keys["json_schema"]
        )
        for form in RESPONSE_FORMATS[1:]:
            model = CachedModel(server, cache, "e")
            assert asyncio.run(model.ask(apply_response_format(REQUEST, form))).key == keys[form]
    assert server.forms == ["json_schema", "tool", "tool", "json"]
