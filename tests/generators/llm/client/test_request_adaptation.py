"""Parts of requests that a model refuses: adapted to once, said once, and remembered."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from pairwright.generators.llm.cache.contents import PruneOptions, prune_cache
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.chat_completions import build_payload, parse_error
from pairwright.generators.llm.client.messages import Message, Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_adaptation import (
    SCHEMA,
    SYSTEM,
    TOOLS,
    AdaptedModel,
    RefusedParts,
    adapt_request,
)
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.response_formats import NegotiatedFormatModel
from pairwright.generators.llm.output.json_schema import build_schema


class Edit(BaseModel):
    """A shape."""

    caption: str


MESSAGES = (Message("system", "Be brief."), Message("user", "a dog"))
REQUEST = Request(MESSAGES, "m", {"temperature": 0, "max_tokens": 9, "seed": 7, "stop": ["x"], "top_p": 1})
OPENAI = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
}
OTHERS = {
    "seed": {"error": {"message": "property 'seed' is unsupported", "type": "invalid_request_error"}},
    "stop": {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: stop"},
    "top_p": [
        {"error": {"code": 400, "message": 'Unknown name "topP": Cannot find field.', "status": "INVALID_ARGUMENT"}}
    ],
}
ROLE = "Unsupported value: 'messages[0].role' does not support 'system' with this model."


class Provider:
    """Refuses given request parts with a provider's message; records request bodies."""

    def __init__(self, *refuses: str) -> None:
        self.refuses, self.bodies = refuses, list[dict[str, Any]]()

    async def ask(self, request: Request) -> Reply:
        """Refuse or answer."""
        body = build_payload(request)
        self.bodies.append(body)
        await asyncio.sleep(0)
        for name in self.refuses:
            if name in body or (name == "system" and body["messages"][0]["role"] == "system"):
                raise refusal(name)
        return Reply('{"caption":"a cat"}', "stop", "", Usage(1, 1), "m")


def refusal(name: str) -> RequestError:
    """What a provider says of a part that it refuses."""
    if name in OTHERS:
        return parse_error(400, {}, orjson.dumps(OTHERS[name]))
    error = {"message": OPENAI.get(name, f"{name} is not supported"), "param": name, "code": "unsupported_parameter"}
    if name == "system":
        error |= {"message": ROLE, "param": "messages[0].role"}
    return parse_error(400, {}, orjson.dumps({"error": error}))


def ask_all(model: Model, *requests: Request) -> list[Reply]:
    async def main() -> list[Reply]:
        return await asyncio.gather(*(model.ask(request) for request in requests))

    return asyncio.run(main())


def test_a_refused_parameter_is_removed_or_renamed_and_the_request_sent_again() -> None:
    said: list[str] = []
    provider = Provider("temperature", "max_tokens", "seed", "stop", "top_p", "system")
    [reply] = ask_all(AdaptedModel(provider, RefusedParts(said.append)), REQUEST)
    assert reply.text
    assert provider.bodies[-1] == {
        "model": "m",
        "stream": False,
        "max_completion_tokens": 9,
        "messages": [{"role": "user", "content": "Be brief.\n\na dog"}],
    }
    assert len(provider.bodies) == 7
    assert len(said) == 6


def test_a_refusal_is_learnt_once_for_all_requests_and_reported_in_one_line() -> None:
    said: list[str] = []
    provider = Provider("temperature")
    model = AdaptedModel(provider, RefusedParts(said.append))
    ask_all(model, *[REQUEST] * 5)
    ask_all(model, REQUEST, REQUEST)
    assert [("temperature" in body) for body in provider.bodies[-2:]] == [False, False]
    assert [line.partition(" (")[0] for line in said] == ["m refuses temperature: it is omitted from now on"]


def test_a_server_that_refuses_both_names_of_the_token_limit_gets_neither() -> None:
    provider = Provider("max_tokens", "max_completion_tokens")
    ask_all(AdaptedModel(provider, RefusedParts(lambda _: None)), REQUEST)
    assert not {"max_tokens", "max_completion_tokens"} & provider.bodies[-1].keys()


@pytest.mark.parametrize("name", ["system", "temperature"])
def test_a_refusal_at_the_end_of_a_long_message_is_found(name: str) -> None:
    """Proxies put their own words before the provider's; llama.cpp puts the source of its template before the error."""
    said = f"{'While executing CallExpression in source: ' * 50}{OPENAI.get(name, ROLE)}"

    class Far(Provider):
        async def ask(self, request: Request) -> Reply:
            try:
                return await super().ask(request)
            except RequestError as failure:
                raise RequestError(failure.code, said, status=400).copy() from None

    model = Far(name)
    lines: list[str] = []
    reply = asyncio.run(AdaptedModel(model, RefusedParts(lines.append)).ask(REQUEST))
    assert (reply.text, len(model.bodies), len(lines)) == ('{"caption":"a cat"}', 2, 1)
    assert len(lines[0]) < 500


def test_one_models_refusals_are_not_anothers() -> None:
    refusals = RefusedParts(lambda _: None)
    refusals.add("m", "temperature")
    assert refusals.of("other") == frozenset()


def test_a_later_run_begins_with_what_was_refused_and_finds_its_answers_by_the_same_keys(tmp_path: Path) -> None:
    path, server = tmp_path / "cache.sqlite", "http://host:80"
    counts = []
    for request in (REQUEST, REQUEST, Request(MESSAGES, "m", {"temperature": 1})):
        provider = Provider("temperature", "system")
        said: list[str] = []
        with Cache.open(path) as cache:
            refusals = RefusedParts(said.append)
            refusals.persist(cache.refused(server), partial(cache.refuse, server))
            [reply] = ask_all(CachedModel(AdaptedModel(provider, refusals), cache, server), request)
        assert reply.key == request.key(server)
        counts.append((len(provider.bodies), reply.cached, len(said)))
    assert counts == [(3, False, 2), (0, True, 0), (1, False, 0)]


def test_refusals_of_one_server_do_not_apply_to_another(tmp_path: Path) -> None:
    with Cache.open(tmp_path / "cache.sqlite") as cache:
        assert cache.refused("a") == []
        cache.refuse("a", "m", "seed")
        cache.refuse("a", "m", "seed")
        assert (cache.refused("a"), cache.refused("b")) == ([("m", "seed")], [])


def test_pruning_a_model_forgets_what_it_refuses_and_pruning_by_age_does_not(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with Cache.open(path) as cache:
        for model in ("m", "other"):
            cache.refuse("a", model, "seed")
    for pruning, left in (
        (PruneOptions(older_than=0), ["m", "other"]),
        (PruneOptions("m", older_than=0), ["m", "other"]),
        (PruneOptions("m"), ["other"]),
    ):
        prune_cache(path, pruning)
        with Cache.open(path) as cache:
            assert [model for model, _ in cache.refused("a")] == left


def test_a_refused_form_of_a_schema_is_remembered_like_a_parameter(tmp_path: Path) -> None:
    request = Request(MESSAGES, "m", {}, build_schema(Edit))
    for sent in (["response_format", "tools", ""], [""]):
        provider = Provider("response_format", "tools")
        with Cache.open(tmp_path / "cache.sqlite") as cache:
            refusals = RefusedParts(lambda _: None)
            refusals.persist(cache.refused("a"), partial(cache.refuse, "a"))
            ask_all(NegotiatedFormatModel(AdaptedModel(provider, refusals), refusals), request)
        assert [next((n for n in ("response_format", "tools") if n in body), "") for body in provider.bodies] == sent
        assert refusals.of("m") == {SCHEMA, TOOLS}


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 5000. This model supports at most 4096 completion tokens",
        "logit_bias is not supported",
    ],
)
def test_an_error_without_a_refused_part_ends_the_row(message: str) -> None:
    class Refusing:
        async def ask(self, request: Request) -> Reply:
            del request
            raise parse_error(400, {}, orjson.dumps({"error": {"message": message}}))

    with pytest.raises(RequestError):
        ask_all(AdaptedModel(Refusing(), RefusedParts()), REQUEST)


def test_without_a_system_role_its_text_precedes_the_next_user_message() -> None:
    chat = (*MESSAGES, Message("assistant", "a cat"), Message("user", "again"))
    request = adapt_request(Request(chat, "m"), frozenset({SYSTEM}))
    assert [(each.role, each.text) for each in request.messages] == [
        ("user", "Be brief.\n\na dog"),
        ("assistant", "a cat"),
        ("user", "again"),
    ]
    only = adapt_request(Request((Message("system", "Say a word."),), "m"), frozenset({SYSTEM}))
    assert [(each.role, each.text) for each in only.messages] == [("user", "Say a word.")]


class Groq:
    """Checks the model's output against the schema, and fails at a share of the requests."""

    def __init__(self, fails: int) -> None:
        self.fails, self.forms = fails, list[str]()

    async def ask(self, request: Request) -> Reply:
        """Fail while there are failures left, in the first form."""
        form = "json_schema" if request.schema else "tool" if "tools" in request.parameters else "json"
        self.forms.append(form)
        if form == "json_schema" and self.fails:
            self.fails -= 1
            body = {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}
            raise parse_error(400, {}, orjson.dumps(body))
        return Reply('{"caption":"a cat"}', "stop", "", Usage(1, 1), "m")


def test_an_output_that_the_server_rejects_is_requested_in_the_next_format() -> None:
    request, server = Request(MESSAGES, "m", {}, build_schema(Edit)), Groq(1)
    model = NegotiatedFormatModel(server)
    for _ in range(3):
        ask_all(model, request)
    assert server.forms == ["json_schema", "tool", "json_schema", "json_schema"]


def test_a_schema_with_mostly_invalid_outputs_starts_in_the_next_format() -> None:
    request, server = Request(MESSAGES, "m", {}, build_schema(Edit)), Groq(100)
    model = NegotiatedFormatModel(server)
    for _ in range(5):
        ask_all(model, request)
    assert server.forms == ["json_schema", "tool"] * 3 + ["tool"] * 2
