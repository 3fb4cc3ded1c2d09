"""How a schema reaches servers that take it in one form or another."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.cache import Cache, CachedModel
from pairwright.generators.llm.client import open_model
from pairwright.generators.llm.failures import Failure
from pairwright.generators.llm.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.schema_forms import FORMS, ForcedForm, Form, FormedModel, as_form
from pairwright.generators.llm.schemas import schema_of
from pairwright.generators.llm.server.answers import Answer
from pairwright.generators.llm.server.app import App
from pairwright.generators.llm.server.chat_request import ChatRequest
from pairwright.generators.llm.server.script import Script
from pairwright.generators.llm.server.serving import listening
from pairwright.generators.llm.settings import LLMSettings
from pairwright.generators.llm.wire import failure_of


class Edit(BaseModel):
    """A shape."""

    caption: str


class Other(BaseModel):
    """Another one."""

    score: int


TEXT = '{"caption":"a cat"}'
MESSAGES = (Message("system", "Be brief."), Message("user", "a dog"))
REQUEST = Request(MESSAGES, "m", {"temperature": 0}, schema_of(Edit))


def form_of(request: Request) -> Form:
    return "json_schema" if request.schema else "tool" if "tools" in request.parameters else "json"


class Server:
    """Refuses forms with a failure of their own; notes the form of each request."""

    def __init__(self, refuses: Mapping[str, Failure], *, only: type[BaseModel] | None = None) -> None:
        self.refuses, self.only = refuses, only
        self.forms: list[Form] = []

    async def ask(self, request: Request) -> Reply:
        """Refuse or answer."""
        form = form_of(request)
        self.forms.append(form)
        await asyncio.sleep(0)
        if form in self.refuses and (self.only is None or request.schema == schema_of(self.only)):
            raise self.refuses[form].again()
        return Reply(TEXT, "stop", "", Usage(1, 1), "m")


def refused(message: str, status: int = 400, **error: Any) -> Failure:
    return failure_of(status, {}, orjson.dumps({"error": {"message": message, **error}}))


async def ask_all(requests: list[Request], *without: str) -> tuple[list[Reply], App, list[str]]:
    wants: list[str] = []

    def answer(request: ChatRequest) -> Answer:
        wants.append(request.wants)
        return Answer(TEXT)

    app = App(Script.model_validate({"without": without}), answer=answer)
    async with listening(app) as server, open_model(LLMSettings(base_url=server.url, model="m")) as model:
        formed = FormedModel(model)
        replies = [await formed.ask(requests[0])]
        replies += await asyncio.gather(*(formed.ask(request) for request in requests[1:]))
    return replies, app, wants


def numbered(count: int) -> list[Request]:
    return [Request((Message("user", f"row {n}"),), "m", {"temperature": 0}, schema_of(Edit)) for n in range(count)]


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


def test_requests_under_way_at_the_first_refusal_find_their_own_way() -> None:
    server = Server({"json_schema": refused("response_format is not supported")})
    formed = FormedModel(server)

    async def ask() -> list[Reply]:
        first = await asyncio.gather(*(formed.ask(request) for request in numbered(50)))
        return first + await asyncio.gather(*(formed.ask(request) for request in numbered(50)))

    assert len(asyncio.run(ask())) == 100
    assert [server.forms.count(form) for form in FORMS] == [50, 100, 0]


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
def test_refusals_of_known_servers_are_understood(failure: Failure) -> None:
    server = Server({"json_schema": failure})
    assert asyncio.run(FormedModel(server).ask(REQUEST)).text == TEXT
    assert server.forms == ["json_schema", "tool"]


@pytest.mark.parametrize(
    "failure",
    [
        refused("Unsupported value: 'temperature' does not support 0 with this model", code="unsupported_value"),
        refused("messages are invalid"),
        refused("maximum context length is 8192 tokens"),
        refused("no such key", 401),
        refused("slow down", 429),
        Failure("timeout"),
    ],
)
def test_other_failures_are_not_taken_for_a_refusal_of_the_form(failure: Failure) -> None:
    server = Server(dict.fromkeys(FORMS, failure))
    with pytest.raises(Failure) as raised:
        asyncio.run(FormedModel(server).ask(REQUEST))
    assert raised.value.word == failure.word
    assert server.forms == ["json_schema"]


def test_when_every_form_is_refused_the_first_refusal_is_told_and_nothing_remembered() -> None:
    server = Server({form: refused(f"{form} is not supported: no tool, no schema") for form in FORMS})
    formed = FormedModel(server)
    for _ in range(2):
        with pytest.raises(Failure, match="json_schema is not supported"):
            asyncio.run(formed.ask(REQUEST))
    assert server.forms == [*FORMS, *FORMS]


def test_a_schema_that_the_server_calls_invalid_changes_the_form_for_itself_only() -> None:
    server = Server({"json_schema": refused("Invalid schema for response_format 'Edit'")}, only=Edit)
    formed = FormedModel(server)
    other = Request(MESSAGES, "m", {}, schema_of(Other))

    async def ask() -> None:
        for request in (REQUEST, REQUEST, other):
            await formed.ask(request)

    asyncio.run(ask())
    assert server.forms == ["json_schema", "tool", "tool", "json_schema"]


def test_what_is_remembered_of_one_model_does_not_hold_for_another() -> None:
    server = Server({"json_schema": refused("json_schema is not supported")})
    formed = FormedModel(server)

    async def ask() -> None:
        for model in ("m", "m", "n"):
            await formed.ask(Request(MESSAGES, model, {}, schema_of(Edit)))

    asyncio.run(ask())
    assert server.forms == ["json_schema", "tool", "tool", "json_schema", "tool"]


def test_a_request_without_a_schema_passes_as_it_is() -> None:
    plain = Request(MESSAGES, "m")
    assert all(as_form(plain, form) is plain for form in FORMS)
    server = Server({"json": refused("schema not supported")})
    with pytest.raises(Failure):
        asyncio.run(FormedModel(server).ask(plain))
    assert server.forms == ["json"]


def test_as_a_tool_the_schema_is_the_parameters_of_the_one_function_that_must_be_called() -> None:
    request = as_form(REQUEST, "tool")
    [tool] = request.parameters["tools"]
    assert tool["function"] == {"name": "Edit", "parameters": schema_of(Edit).schema, "strict": True}
    assert request.parameters["tool_choice"]["function"] == {"name": "Edit"}
    assert request.parameters["temperature"] == 0
    assert request.schema is None
    assert request.messages == REQUEST.messages
    with pytest.raises(UsageError, match="tools of its own"):
        as_form(Request(MESSAGES, "m", {"tools": []}, schema_of(Edit)), "tool")


def test_in_words_the_schema_stands_behind_the_first_message() -> None:
    request = as_form(REQUEST, "json")
    assert request.schema is None
    assert request.messages[0].text.startswith("Be brief.\n\nAnswer with one JSON object")
    assert orjson.loads(request.messages[0].text.splitlines()[-1]) == schema_of(Edit).schema
    assert request.messages[1:] == REQUEST.messages[1:]


def test_forms_are_keys_of_their_own_when_forced_and_one_key_when_found_out(tmp_path: Path) -> None:
    keys = {form: as_form(REQUEST, form).key("e") for form in FORMS}
    assert len(set(keys.values())) == 3
    server = Server({"json_schema": refused("json_schema is not supported")})
    with Cache.open(tmp_path / "cache.sqlite") as cache:
        assert asyncio.run(CachedModel(FormedModel(server), cache, "e").ask(REQUEST)).key == keys["json_schema"]
        for form in FORMS[1:]:
            model = ForcedForm(CachedModel(server, cache, "e"), form)
            assert asyncio.run(model.ask(REQUEST)).key == keys[form]
    assert server.forms == ["json_schema", "tool", "tool", "json"]
