"""The test server, used by OpenAI's SDK and a bare HTTP client."""

import asyncio
import contextlib
import http.client
import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, AzureOpenAI, DefaultHttpxClient, OpenAI
from pydantic import BaseModel

from pairwright.datasets.errors import ConfigError, InputError, UsageError
from pairwright.generators.llm.client.rate_limits import TokenBucket
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest, body_key
from pairwright.generators.llm.testing.faults import KINDS, parse_fault
from pairwright.generators.llm.testing.http_messages import HTTPRequest
from pairwright.generators.llm.testing.script import AnswerRule, ServerScript, load_script, parse_script
from pairwright.generators.llm.testing.serving import Server, serve_app, serve_in_thread

Start = Callable[..., Server]
PATIENCE = 60.0  # seconds; nothing here should need it
SECRET = "sk-do-not-tell"  # noqa: S105 - it opens nothing


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers; they end with the test."""
    ends: list[Any] = []

    def begin(*, answer: Any = None, app: dict[str, Any] | None = None, **settings: Any) -> Server:
        context = serve_in_thread(ServerApp(parse_script(settings, where="test"), answer=answer, **(app or {})))
        ends.append(context)
        return context.__enter__()

    yield begin
    for context in ends:
        context.__exit__(None, None, None)


def client(server: Server, *, patience: float = PATIENCE, key: str = SECRET) -> OpenAI:
    plain = DefaultHttpxClient(verify=False)
    return OpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=patience, http_client=plain)


def ask(server: Server, text: str = "a dog on a couch", **more: Any) -> Any:
    with client(server) as sdk:
        return sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **more)


def post(server: Server, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers)
    response = connection.getresponse()
    found = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return found


def chat(text: str = "a dog", **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


class Edit(BaseModel):
    """What a generator might ask for."""

    caption: str
    kind: Literal["replace", "swap"]
    words: list[str]
    sure: float


# --- answers -------------------------------------------------------------------------------------------------


def test_an_unscripted_request_is_echoed_and_the_same_each_time(start: Start) -> None:
    server = start()
    first, second, other = ask(server), ask(server), ask(server, "a cat")
    assert first.choices[0].message.content == "You said: a dog on a couch"
    assert first.choices[0].finish_reason == "stop"
    assert first.choices == second.choices
    assert other.choices != first.choices
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens > 0


def test_a_schema_is_answered_with_an_instance_that_the_sdk_parses(start: Start) -> None:
    with client(start()) as sdk:
        parsed = sdk.chat.completions.parse(**chat(), response_format=Edit).choices[0].message.parsed
    assert isinstance(parsed, Edit)


def test_json_mode_is_answered_with_an_object(start: Start) -> None:
    content = ask(start(), response_format={"type": "json_object"}).choices[0].message.content
    assert isinstance(json.loads(content), dict)


@pytest.mark.parametrize(
    ("choice", "reason"),
    [("required", "tool_calls"), ({"type": "function", "function": {"name": "edit"}}, "stop")],
)
def test_a_tool_is_called_with_arguments_of_its_schema(start: Start, choice: Any, reason: str) -> None:
    tool = {"type": "function", "function": {"name": "edit", "parameters": Edit.model_json_schema()}}
    found = ask(start(), tools=[tool], tool_choice=choice).choices[0]
    assert found.finish_reason == reason
    assert found.message.tool_calls[0].function.name == "edit"
    Edit.model_validate_json(found.message.tool_calls[0].function.arguments)


def test_several_choices_differ(start: Start) -> None:
    assert len({choice.message.content for choice in ask(start(), n=3).choices}) == 3


def test_the_first_rule_that_holds_answers(start: Start) -> None:
    server = start(
        rules=[
            {"contains": "dog", "model": "other-*", "text": "wrong model"},
            {"contains": "dog", "text": "a cat", "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
            {"matches": r"^\d+ birds", "json": {"birds": True}, "finish_reason": "length"},
            {"contains": "secret", "refusal": "no"},
        ]
    )
    dog, birds, secret = ask(server), ask(server, "12 birds"), ask(server, "a secret")
    assert (dog.choices[0].message.content, dog.usage.total_tokens) == ("a cat", 9)
    assert (birds.choices[0].message.content, birds.choices[0].finish_reason) == ('{"birds":true}', "length")
    assert (secret.choices[0].message.content, secret.choices[0].message.refusal) == (None, "no")


def test_a_rule_may_hold_only_the_first_times_that_a_body_comes(start: Start) -> None:
    server = start(rules=[{"fault": 500, "times": 2}])
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            ask(server)
    assert ask(server).choices[0].message.content.startswith("You said")


def test_a_callable_answers_before_the_rules_and_may_leave_it_to_them(start: Start) -> None:
    def answer(request: ChatRequest) -> ServerAnswer | None:
        return ServerAnswer(f"{request.system}|{request.user}|{request.attempt}") if "dog" in request.user else None

    server = start(answer=answer, rules=[{"text": "by rule"}])
    messages: Any = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "dog"}]},
    ]
    with client(server) as sdk:
        said = [sdk.chat.completions.create(model="m", messages=messages) for _ in range(2)]
    assert [one.choices[0].message.content for one in said] == ["be brief|dog|0", "be brief|dog|1"]
    assert ask(server, "cat").choices[0].message.content == "by rule"


def test_a_bug_in_a_callable_is_a_500_that_names_it(start: Start, logged: io.StringIO) -> None:
    def answer(request: ChatRequest) -> ServerAnswer:
        raise KeyError(request.model)

    with pytest.raises(openai.InternalServerError, match="KeyError"):
        ask(start(answer=answer))
    assert "KeyError" in logged.getvalue()


@pytest.mark.parametrize("feature", ["json_schema", "tools"])
def test_a_server_can_be_without_a_feature(start: Start, feature: str) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "e", "schema": {"type": "object"}}}
    tool = {"type": "function", "function": {"name": "edit", "parameters": {"type": "object"}}}
    asks: dict[str, Any] = {
        "json_schema": {"response_format": schema},
        "tools": {"tools": [tool]},
    }
    with pytest.raises(openai.BadRequestError, match=feature):
        ask(start(without=[feature]), **asks[feature])
    ask(start(), **asks[feature])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, "model"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": ["x"]}, "messages"),
        (chat(n=0), "n"),
        (chat(response_format={"type": "yaml"}), "response_format"),
        (chat(response_format={"type": "json_schema", "json_schema": {}}), "response_format.json_schema"),
        (chat(tools=[{"type": "function"}]), "tools"),
        (chat(tools=[{"function": {"name": "a"}}], tool_choice={"function": {"name": "b"}}), "tool_choice"),
        (chat(stream=True), "stream"),
        ([], None),
        (b"{", None),
    ],
)
def test_a_malformed_request_is_a_400_that_names_the_member(start: Start, body: Any, param: str | None) -> None:
    status, _, answer = post(start(), "/v1/chat/completions", body)
    assert status == 400
    assert json.loads(answer)["error"]["param"] == param


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every member of a JSON value."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        yield from places(inner, (*path, name))


FULL = chat(
    messages=[{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}],
    tools=[{"type": "function", "function": {"name": "f", "parameters": Edit.model_json_schema()}}],
    tool_choice={"type": "function", "function": {"name": "f"}},
    stream=False,
    n=2,
)
SCHEMA = chat(response_format={"type": "json_schema", "json_schema": {"name": "e", "schema": Edit.model_json_schema()}})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([FULL, SCHEMA]), st.data())
def test_no_malformed_request_makes_the_server_fail(body: dict[str, Any], data: st.DataObject) -> None:
    body = json.loads(json.dumps(body))
    *way, last = data.draw(st.sampled_from(list(places(body))))
    place: Any = body
    for step in way:
        place = place[step]
    place[last] = data.draw(JSON)
    reply = ServerApp().handle(HTTPRequest("POST", "/v1/chat/completions", "", {}, json.dumps(body).encode()))
    assert reply.status in {200, 400}


# --- who may ask, and where ----------------------------------------------------------------------------------


def test_models_are_listed_and_an_unknown_one_is_not_found(start: Start) -> None:
    server = start(models=["one", "org/two"])
    with client(server) as sdk:
        assert [model.id for model in sdk.models.list()] == ["one", "org/two"]
        assert sdk.models.retrieve("one").id == "one"
    with pytest.raises(openai.NotFoundError) as caught:
        ask(server)
    assert caught.value.code == "model_not_found"


def test_a_required_key_is_accepted_as_bearer_or_as_api_key(start: Start) -> None:
    server = start(app={"api_key": SECRET})
    assert ask(server)
    assert post(server, "/v1/chat/completions", chat(), **{"api-key": SECRET})[0] == 200
    assert post(server, "/v1/chat/completions", chat())[0] == 401
    assert post(server, "/_reset", {})[0] == 401
    with pytest.raises(openai.AuthenticationError), client(server, key="sk-other") as sdk:
        sdk.models.list()


def test_azures_sdk_is_served_by_its_paths(start: Start) -> None:
    server = start(models=["deployed"])
    with AzureOpenAI(azure_endpoint=server.root, api_key=SECRET, api_version="2024-10-21", max_retries=0) as sdk:
        said = sdk.chat.completions.create(model="deployed", messages=[{"role": "user", "content": "x"}])
        assert said.model == "deployed"
        assert sdk.files.create(file=("a.jsonl", b"{}"), purpose="batch").bytes == 2
    path = "/openai/deployments/deployed/chat/completions"
    bare = {"messages": [{"role": "user", "content": "x"}]}
    assert post(server, path, bare)[0] == 404
    assert post(server, f"{path}?api-version=2024-10-21", bare)[0] == 200
    assert post(server, "/openai/v1/chat/completions", {**bare, "model": "deployed"})[0] == 200


def test_an_unknown_path_is_a_404_and_a_wrong_method_a_405(start: Start) -> None:
    server = start()
    assert post(server, "/v1/embeddings", {})[0] == 404
    assert post(server, "/v1/models", {})[0] == 405


# --- faults --------------------------------------------------------------------------------------------------

STATUS_FAULTS = {
    "400": (openai.BadRequestError, None),
    "401": (openai.AuthenticationError, "invalid_api_key"),
    "context_too_long": (openai.BadRequestError, "context_length_exceeded"),
    "content_filter": (openai.BadRequestError, "content_filter"),
    "429": (openai.RateLimitError, "rate_limit_exceeded"),
    "429_bare": (openai.RateLimitError, "rate_limit_exceeded"),
    "quota": (openai.RateLimitError, "insufficient_quota"),
    "500": (openai.InternalServerError, None),
    "503": (openai.InternalServerError, None),
}


@pytest.mark.parametrize("kind", STATUS_FAULTS)
def test_a_status_fault_is_the_sdks_error_of_that_status(start: Start, kind: str) -> None:
    wanted, code = STATUS_FAULTS[kind]
    server = start(faults={kind: 1}, retry_after_s=2.5)
    with pytest.raises(wanted) as caught:
        ask(server)
    assert caught.value.code == code
    assert server.stats()["faults"] == {kind: 1}
    assert server.stats()["bodies"]["answered"] == 0
    headers = caught.value.response.headers
    hints = {name: headers.get(name) for name in ("retry-after", "retry-after-ms")}
    assert hints == ({"retry-after": "3", "retry-after-ms": "2500"} if kind == "429" else dict.fromkeys(hints))


def test_a_reset_is_a_connection_error_and_really_a_reset(start: Start) -> None:
    server = start(faults={"reset": 1})
    with pytest.raises(openai.APIConnectionError):
        ask(server)
    with pytest.raises(ConnectionResetError):
        post(server, "/v1/chat/completions", chat())


def test_a_half_sent_body_is_an_incomplete_read(start: Start) -> None:
    server = start(faults={"half": 1})
    with pytest.raises(http.client.IncompleteRead) as caught:
        post(server, "/v1/chat/completions", chat())
    assert len(caught.value.partial) > 50
    with pytest.raises(openai.APIConnectionError):
        ask(server)
    assert server.stats()["statuses"] == {"none": 2}


def test_a_dripped_body_comes_late_but_whole(start: Start) -> None:
    server = start(faults={"drip": 1}, drip_s=0.2)
    began = time.monotonic()
    assert ask(server).choices[0].message.content == "You said: a dog on a couch"
    assert time.monotonic() - began > 0.15
    assert server.stats()["bodies"]["answered"] == 1


def test_a_timeout_outlasts_the_clients_patience_but_not_for_ever(start: Start) -> None:
    server = start(faults={"timeout": 1}, hang_s=0.3)
    with pytest.raises(openai.APITimeoutError), client(server, patience=0.1) as sdk:
        sdk.chat.completions.create(**chat())
    with pytest.raises(ConnectionResetError):
        post(server, "/v1/chat/completions", chat())


def test_a_malformed_body_is_not_json(start: Start) -> None:
    status, headers, body = post(start(faults={"malformed": 1}), "/v1/chat/completions", chat())
    assert (status, headers["content-type"]) == (200, "application/json")
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)
    with pytest.raises((json.JSONDecodeError, openai.APIError)):
        ask(start(faults={"malformed": 1}))


def test_a_body_of_wrong_type_is_json_but_no_completion(start: Start) -> None:
    said = ask(start(faults={"wrong_type": 1}))
    assert not isinstance(said.choices, list)


def test_the_models_faults_are_well_formed_answers(start: Start) -> None:
    def first(kind: str, **more: Any) -> Any:
        return ask(start(faults={kind: 1}, rules=[{"text": '{"caption": "a cat", "n": 3}'}]), **more).choices[0]

    assert (first("refusal").message.content, first("refusal").finish_reason) == (None, "stop")
    assert first("refusal").message.refusal
    assert (first("empty").message.content, first("empty").finish_reason) == ("", "stop")
    assert (first("truncation").message.content, first("truncation").finish_reason) == ('{"caption": "a', "length")
    assert first("content_filter_finish").finish_reason == "content_filter"
    assert first("run_on").message.content.startswith('{"caption": "a cat", "n": 3}\n')
    assert json.loads(first("wrong_type_text").message.content) == {"caption": ["a cat"], "n": {"value": 3}}
    with pytest.raises(json.JSONDecodeError):
        json.loads(first("malformed_text").message.content)


def test_the_sdk_detects_truncation_of_a_parsed_answer(start: Start) -> None:
    with client(start(faults={"truncation": 1})) as sdk, pytest.raises(openai.LengthFinishReasonError):
        sdk.chat.completions.parse(**chat(), response_format=Edit)


def test_faults_hit_at_their_rate_and_repeat_exactly(start: Start) -> None:
    def statuses(seed: int, order: int) -> dict[str, int]:
        server = start(faults={"500": 0.2, "429": 0.1}, seed=seed)
        return {text: post(server, "/v1/chat/completions", chat(text))[0] for text in map(str, range(200)[::order])}

    first = statuses(1, 1)
    assert first == statuses(1, -1)
    assert first != statuses(2, 1)
    counts = [list(first.values()).count(status) for status in (500, 429, 200)]
    assert counts[0] in range(20, 62)
    assert counts[1] in range(7, 36)
    assert sum(counts) == 200


def test_a_retry_may_succeed(start: Start) -> None:
    server = start(faults={"500": 0.5})
    assert {post(server, "/v1/chat/completions", chat())[0] for _ in range(20)} == {200, 500}


def test_faults_of_other_endpoints_are_named_by_them(start: Start) -> None:
    server = start(faults={"files/503": 1, "batches/malformed": 1})
    with client(server) as sdk:
        with pytest.raises(openai.InternalServerError):
            sdk.files.list()
        with pytest.raises((json.JSONDecodeError, openai.APIError)):
            sdk.batches.list()
        assert sdk.models.list()
    assert ask(server)
    assert server.stats()["faults"] == {"files/503": 1, "batches/malformed": 1}


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"restet": 0.1}, "Did you mean reset"),
        ({"500": 2}, "between 0 and 1"),
        ({"500": 0.6, "429": 0.6}, "more than 1"),
        ({"files/refusal": 0.1}, "chat completions"),
        ({"embeddings/500": 0.1}, "not an endpoint"),
    ],
)
def test_an_invalid_fault_is_refused(faults: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_script({"faults": faults}, where="here")


def test_a_fault_is_written_as_kind_and_rate() -> None:
    assert parse_fault("429=0.01") == ("429", 0.01)
    for wrong in ("429", "429=", "429=often"):
        with pytest.raises(UsageError, match="KIND=RATE"):
            parse_fault(wrong)


def test_every_kind_of_fault_can_be_injected(start: Start) -> None:
    """No kind is only a name: each leaves its mark in the counts."""
    for kind in (kind for kind, (group, _) in KINDS.items() if group != "batch"):
        server = start(faults={kind: 1}, hang_s=0.05, drip_s=0.05)
        with contextlib.suppress(http.client.HTTPException, ConnectionResetError):
            post(server, "/v1/chat/completions", chat())
        assert server.stats()["faults"] == {kind: 1}


# --- limits and latency --------------------------------------------------------------------------------------


def test_a_limit_of_requests_answers_429_with_every_hint(start: Start) -> None:
    server = start(requests_per_minute=60, burst_s=2)
    status, headers, _ = post(server, "/v1/chat/completions", chat())
    assert (status, headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) == (
        200,
        "60",
        "1",
    )
    post(server, "/v1/chat/completions", chat())
    status, headers, _ = post(server, "/v1/chat/completions", chat())
    assert (status, headers["retry-after"], headers["x-ratelimit-remaining-requests"]) == (429, "1", "0")
    assert server.stats()["limited"] == {"requests": 1}


@given(st.integers(1, 6000), st.floats(0.1, 60), st.lists(st.floats(0, 2), max_size=60))
def test_no_more_passes_a_limit_than_its_rate_and_burst_allow(rate: int, burst: float, gaps: list[float]) -> None:
    bucket, now, passed = TokenBucket(rate, 0.0, burst), 0.0, 0
    for gap in gaps:
        now += gap
        if not (wait := bucket.wait(1, now)):
            bucket.take(1)
            passed += 1
        else:
            assert bucket.wait(1, now + wait + 1e-6) == 0  # the hint is true
            now += wait + 1e-6
    assert passed <= max(1.0, rate / 60 * burst) + rate / 60 * now + 1e-3


def test_a_limit_can_be_silent(start: Start) -> None:
    server = start(tokens_per_minute=60, burst_s=1, retry_after_header=False, ratelimit_headers=False)
    statuses, headers = zip(*[post(server, "/v1/chat/completions", chat("x" * 400))[:2] for _ in range(2)], strict=True)
    assert set(statuses) >= {429}
    assert not any(name.startswith(("retry-after", "x-ratelimit")) for found in headers for name in found)
    assert server.stats()["limited"]["tokens"] >= 1


def test_more_at_once_than_allowed_get_a_429() -> None:
    async def run() -> tuple[list[int], dict[str, Any]]:
        app = ServerApp(ServerScript(max_concurrency=4, latency_ms=100))
        async with serve_app(app) as server, AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0) as sdk:

            async def one(number: int) -> int:
                try:
                    await sdk.chat.completions.create(**chat(str(number)))
                except openai.RateLimitError as error:
                    return error.status_code
                return 200

            return await asyncio.gather(*(one(n) for n in range(10))), server.stats()

    statuses, stats = asyncio.run(run())
    assert (statuses.count(200), statuses.count(429)) == (4, 6)
    assert stats["limited"] == {"concurrency": 6}
    assert stats["in_flight_max"] <= 5
    assert stats["in_flight"] == 0


def test_latency_is_waited_for_and_jitter_adds_to_it(start: Start) -> None:
    server = start(latency_ms=50, jitter_ms=50)
    began = time.monotonic()
    ask(server)
    assert time.monotonic() - began >= 0.05


# --- files and batches ---------------------------------------------------------------------------------------


def batch_input(bodies: list[dict[str, Any]]) -> bytes:
    rows = [
        {"custom_id": f"row-{n}", "method": "POST", "url": "/v1/chat/completions", "body": b}
        for n, b in enumerate(bodies)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def begin_batch(sdk: OpenAI, data: bytes) -> str:
    file = sdk.files.create(file=("in.jsonl", data), purpose="batch")
    made = sdk.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert made.status == "validating"
    return made.id


def rows_of(sdk: OpenAI, file_id: str | None) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in sdk.files.content(file_id).text.splitlines()] if file_id else []
    return {row["custom_id"]: row for row in rows}


def test_files_are_uploaded_listed_read_and_deleted(start: Start) -> None:
    data = b'{"a": 1}\r\n\r\n--not a fence\r\n' + bytes(range(256))
    with client(start()) as sdk:
        file = sdk.files.create(file=('odd "name".jsonl', data), purpose="batch")
        assert (file.bytes, file.purpose) == (len(data), "batch")
        assert sdk.files.content(file.id).read() == data
        others = [sdk.files.create(file=("x", b""), purpose="user_data").id for _ in range(3)]
        assert [found.id for found in sdk.files.list(limit=2)] == [*others[::-1], file.id]
        assert [found.id for found in sdk.files.list(purpose="batch")] == [file.id]
        assert sdk.files.delete(file.id).deleted
        with pytest.raises(openai.NotFoundError):
            sdk.files.retrieve(file.id)


def test_an_upload_that_is_no_form_is_a_400(start: Start) -> None:
    server = start()
    for headers in ({}, {"content-type": "multipart/form-data; boundary=x"}):
        assert post(server, "/v1/files", b"--x\r\nno end", **headers)[0] == 400


def test_a_batch_is_worked_on_as_it_is_polled(start: Start) -> None:
    server = start(batch_polls=3)
    with client(server) as sdk:
        made = begin_batch(sdk, batch_input([chat(str(n)) for n in range(9)]))
        looks = [sdk.batches.retrieve(made) for _ in range(3)]
        assert [look.status for look in looks] == ["in_progress", "in_progress", "completed"]
        assert [look.request_counts and look.request_counts.completed for look in looks] == [3, 6, 9]
        rows = rows_of(sdk, looks[-1].output_file_id)
        assert looks[-1].error_file_id is None
        assert [batch.id for batch in sdk.batches.list()] == [made]
    assert list(rows) != sorted(rows)  # no order is promised
    said = {name: row["response"]["body"]["choices"][0]["message"]["content"] for name, row in rows.items()}
    assert said == {f"row-{n}": f"You said: {n}" for n in range(9)}
    assert server.stats()["bodies"]["answered"] == server.stats()["endpoints"]["batch_line"] == 9


def test_a_batch_may_take_its_time(start: Start) -> None:
    with client(start(batch_polls=0, batch_delay_s=0.2)) as sdk:
        made, began = begin_batch(sdk, batch_input([chat()])), time.monotonic()
        assert sdk.batches.retrieve(made).status == "in_progress"
        while sdk.batches.retrieve(made).status != "completed":
            assert time.monotonic() - began < PATIENCE
        assert time.monotonic() - began > 0.1


def test_failed_lines_stand_in_the_error_file(start: Start) -> None:
    bodies = [chat("good"), chat("bad"), chat("gone"), {"model": "m"}, chat(stream=True)]
    rules = [{"contains": "bad", "fault": "context_too_long"}, {"contains": "gone", "fault": "reset"}]
    with client(start(rules=rules)) as sdk:
        done = sdk.batches.retrieve(begin_batch(sdk, batch_input(bodies)))
        assert list(rows_of(sdk, done.output_file_id)) == ["row-0"]
        failed = rows_of(sdk, done.error_file_id)
    statuses = {name: row["response"]["status_code"] for name, row in failed.items()}
    assert statuses == {"row-1": 400, "row-2": 500, "row-3": 400, "row-4": 400}
    assert failed["row-1"]["response"]["body"]["error"]["code"] == "context_length_exceeded"


def test_expired_lines_have_no_response_and_a_second_batch_may_do_them(start: Start) -> None:
    server = start(faults={"batch_expired": 0.5})
    with client(server) as sdk:
        bodies = [chat(str(n)) for n in range(30)]
        done = sdk.batches.retrieve(begin_batch(sdk, batch_input(bodies)))
        failed = rows_of(sdk, done.error_file_id)
        again = sdk.batches.retrieve(begin_batch(sdk, batch_input(bodies)))
        failed_again = rows_of(sdk, again.error_file_id)
    assert done.status == "expired"
    assert 0 < len(failed) < 30
    assert all(row["response"] is None and row["error"]["code"] == "batch_expired" for row in failed.values())
    assert set(failed_again) != set(failed)
    assert server.stats()["faults"]["batch_expired"] == len(failed) + len(failed_again)


def test_a_cancelled_batch_keeps_what_is_done(start: Start) -> None:
    with client(start(batch_polls=2)) as sdk:
        made = begin_batch(sdk, batch_input([chat(str(n)) for n in range(4)]))
        sdk.batches.retrieve(made)
        assert sdk.batches.cancel(made).status == "cancelling"
        done = sdk.batches.retrieve(made)
        assert done.status == "cancelled"
        assert len(rows_of(sdk, done.output_file_id)) == 2
        codes = [row["error"]["code"] for row in rows_of(sdk, done.error_file_id).values()]
        assert codes == ["batch_cancelled"] * 2
        with pytest.raises(openai.BadRequestError):
            sdk.batches.cancel(made)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{\n", "invalid_json_line"),
        (batch_input([chat()]) * 2, "duplicate_custom_id"),
        (batch_input([chat()]).replace(b"/v1/chat", b"/v2/chat"), "mismatched_endpoint"),
        (batch_input([chat(str(n)) for n in range(4)]), "too_many_tasks"),
        (b'{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions"}', "missing_required_parameter"),
        (b"\n", "empty_file"),
        (batch_input([chat("1"), {**chat("2"), "model": "other"}]), "model_mismatch"),
    ],
)
def test_a_batch_of_a_wrong_input_fails_and_says_why(start: Start, data: bytes, code: str) -> None:
    with client(start(batch_lines_max=3)) as sdk:
        failed = sdk.batches.retrieve(begin_batch(sdk, data))
    assert failed.status == "failed"
    assert failed.errors
    assert failed.errors.data
    assert failed.errors.data[-1].code == code


def test_a_batch_can_be_made_to_fail(start: Start) -> None:
    with client(start(faults={"batch_failed": 1})) as sdk:
        assert sdk.batches.retrieve(begin_batch(sdk, batch_input([chat()]))).status == "failed"


def test_lines_may_make_a_batch_fail_and_are_named(start: Start) -> None:
    with client(start(faults={"batch_line_refused": 1})) as sdk:
        failed = sdk.batches.retrieve(begin_batch(sdk, batch_input([chat("1"), chat("2")])))
    assert failed.status == "failed"
    assert [(flaw.code, flaw.line) for flaw in (failed.errors and failed.errors.data) or []] == [
        ("invalid_request", 1),
        ("invalid_request", 2),
    ]


def test_a_batch_that_queues_too_many_tokens_fails_until_others_have_ended(start: Start) -> None:
    with client(start(batch_tokens_max=60)) as sdk:
        one, two = (begin_batch(sdk, batch_input([chat("x" * 100)])) for _ in range(2))
        refused, done = sdk.batches.retrieve(two), sdk.batches.retrieve(one)
        again = sdk.batches.retrieve(begin_batch(sdk, batch_input([chat("x" * 100)])))
    assert (done.status, refused.status, again.status) == ("completed", "failed", "completed")
    assert refused.errors
    assert refused.errors.data
    assert refused.errors.data[0].code == "token_limit_exceeded"


def test_lines_may_be_lost_or_garbled_though_they_were_worked_on(start: Start) -> None:
    server = start(faults={"batch_line_lost": 1})
    with client(server) as sdk:
        lost = sdk.batches.retrieve(begin_batch(sdk, batch_input([chat()])))
        assert (lost.status, lost.output_file_id) == ("completed", None)
        server.change(faults={"batch_line_garbled": 1})
        garbled = sdk.batches.retrieve(begin_batch(sdk, batch_input([chat()])))
        half, strange, other = sdk.files.content(str(garbled.output_file_id)).text.splitlines()
    assert half.startswith('{"id":"batch_req_2_1","custom_id":"row-0"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(half)
    assert json.loads(strange)["custom_id"] == "0" * 32
    assert json.loads(other) == []
    assert server.stats()["bodies"]["answered"] == 1


# --- replay --------------------------------------------------------------------------------------------------


def test_what_was_recorded_is_replayed(start: Start, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    first = start(app={"record": tape}, rules=[{"contains": "dog", "text": "a cat"}])
    ask(first)
    ask(first, "a bird")
    server = start(app={"replay": tape})
    assert ask(server).choices[0].message.content == "a cat"
    assert ask(server, stream=False).choices[0].message.content == "a cat"
    assert SECRET not in tape.read_text()


def test_several_answers_to_one_request_are_replayed_in_order(start: Start, tmp_path: Path) -> None:
    tape, completion = tmp_path / "tape.jsonl", ask(start()).model_dump()
    error = {"error": {"message": "busy", "type": "requests", "param": None, "code": None}}
    lines = [
        {"request": chat(), "status": 429, "response": error},
        {"key": f"{body_key(chat()):016x}", "response": completion},
    ]
    tape.write_text("".join(json.dumps(line) + "\n" for line in lines))
    server = start(app={"replay": tape})
    assert [post(server, "/v1/chat/completions", chat())[0] for _ in range(3)] == [429, 200, 200]


def test_a_request_that_was_never_recorded_is_a_404_that_says_so(start: Start, tmp_path: Path) -> None:
    (tmp_path / "tape.jsonl").write_text("")
    with pytest.raises(openai.NotFoundError) as caught:
        ask(start(app={"replay": tmp_path / "tape.jsonl"}))
    assert caught.value.code == "replay_unmatched"


@pytest.mark.parametrize("line", ["{", "[]", '{"response": {}}', '{"key": "zz", "response": {}}', '{"key": "1"}'])
def test_a_broken_recording_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "tape.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(InputError, match=r"tape.jsonl:2"):
        ServerApp(replay=tmp_path / "tape.jsonl")


# --- counts --------------------------------------------------------------------------------------------------


def test_stats_count_repeated_requests_and_answers(start: Start) -> None:
    server = start(rules=[{"contains": "late", "fault": 500, "times": 1}])
    ask(server, "once")
    ask(server, "twice")
    ask(server, "twice")
    with pytest.raises(openai.InternalServerError):
        ask(server, "late")
    ask(server, "late")
    stats = server.stats(each=True)
    each = stats["bodies"].pop("each")
    assert stats["bodies"] == {"distinct": 3, "repeated": 2, "most": 2, "answered": 3, "answered_again": 1}
    assert stats["requests"] == stats["endpoints"]["chat"] == 5
    assert stats["statuses"] == {"200": 4, "500": 1}
    assert each[f"{body_key(chat('twice')):016x}"][:2] == [2, 2]
    assert each[f"{body_key(chat('late')):016x}"][:2] == [2, 1]


def test_a_body_is_the_same_body_whatever_the_order_of_its_members(start: Start) -> None:
    server, body = start(), chat(temperature=0)
    for each in (body, dict(reversed(body.items()))):
        post(server, "/v1/chat/completions", each)
    assert server.stats()["bodies"]["distinct"] == 1


def test_an_answer_without_its_client_does_not_count_as_answered(start: Start) -> None:
    server = start(latency_ms=60_000)
    with socket.create_connection((server.host, server.port)) as line:
        body = json.dumps(chat()).encode()
        line.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        )
        while not server.stats()["in_flight"]:
            pass
    while server.stats()["in_flight"]:
        pass
    assert (server.stats()["broken_off"], server.stats()["bodies"]["answered"]) == (1, 0)


def test_the_script_is_changed_and_counts_are_reset_while_running(start: Start) -> None:
    server = start()
    ask(server)
    assert post(server, "/_script", {"rules": [{"text": "new"}]})[0] == 200
    assert ask(server).choices[0].message.content == "new"
    status, _, body = post(server, "/_script", {"ruels": []})
    assert (status, "unknown key `ruels`" in body.decode()) == (400, True)
    server.change(faults={"500": 1})
    with pytest.raises(openai.InternalServerError):
        ask(server)
    assert post(server, "/_reset", {})[0] == 200
    assert server.stats()["requests"] == 0
    with httpx2.Client() as web:
        assert web.get(f"{server.root}/_stats").json()["requests"] == 0
        assert web.get(f"{server.root}/_script").json()["faults"] == {"500": 1}


def test_no_secret_is_in_stats_script_or_logs(start: Start, logged: io.StringIO, tmp_path: Path) -> None:
    server = start(app={"api_key": SECRET, "record": tmp_path / "tape.jsonl"})
    ask(server)
    _, _, refused = post(server, "/v1/chat/completions", chat(), authorization=f"Bearer {SECRET}x")
    with httpx2.Client(headers={"api-key": SECRET}) as web:
        shown = web.get(f"{server.root}/_stats?each=1").text + web.get(f"{server.root}/_script").text
    assert SECRET not in shown + logged.getvalue() + refused.decode() + (tmp_path / "tape.jsonl").read_text()


# --- scripts, sockets ----------------------------------------------------------------------------------------


def test_a_script_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("latency_ms: 5\nfaults: {429: 0.5}\nrules:\n  - contains: dog\n    fault: 500\n")
    script = load_script(path)
    assert (script.faults, script.rules[0].fault) == ({"429": 0.5}, "500")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latencyms: 5", "unknown key `latencyms`"),
        ("rules: [{txt: a}]", r"unknown key `rules.0.txt`. Did you mean text\? There are: contains"),
        ("rules: [{matches: '('}]", "not a regular expression"),
        ("rules: [{text: a, json: {}}]", "mutually exclusive"),
        ("rules: [{fault: batch_failed}]", "a fault of batches"),
        ("latency_ms: -1", "latency_ms"),
        ("a: [", "not YAML"),
        ("", "no settings"),
        ("seed: 1\nseed: 2", "duplicate key `seed`"),
    ],
)
def test_an_invalid_script_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_script(path)


def test_a_used_port_is_reported_in_one_line(start: Start) -> None:
    server = start()
    with pytest.raises(UsageError, match="cannot listen"), serve_in_thread(ServerApp(), port=server.port):
        pass


def test_requests_may_come_chunked_pipelined_and_in_pieces(start: Start) -> None:
    server, body = start(), json.dumps(chat()).encode()
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:20], body[20:])) + b"0\r\n\r\n"
    path = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
    data = path + b"Transfer-Encoding: chunked\r\n\r\n" + chunked
    data += path + b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as line:
        for at in range(0, len(data), 7):
            line.sendall(data[at : at + 7])
        received = b"".join(iter(lambda: line.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 2
    assert server.stats()["bodies"] == {"distinct": 1, "repeated": 1, "most": 2, "answered": 1, "answered_again": 1}


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\ncontent-length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\ncontent-length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"x" * 70_000, 400),
    ],
)
def test_what_is_not_http_is_refused_and_the_connection_closed(
    start: Start, data: bytes, status: int, logged: io.StringIO
) -> None:
    server = start()
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as line:
        line.sendall(data)
        received = line.recv(65536)
        with contextlib.suppress(OSError):  # it is closed
            line.shutdown(socket.SHUT_WR)  # the server waits for the rest of a body no longer
        while line.recv(65536):
            pass
    assert received.split()[1] == b"%d" % status
    assert "Traceback" not in logged.getvalue()
    assert ask(server)


def test_expect_100_continue_is_answered(start: Start) -> None:
    server, body = start(), json.dumps(chat()).encode()
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as line:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        line.sendall(head % len(body))
        assert line.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(body)
        assert line.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_the_page_names_every_fault_and_every_setting() -> None:
    page = (Path(__file__).parents[4] / "docs" / "verbs" / "dev.md").read_text(encoding="utf-8")
    for name, (_, meaning) in KINDS.items():
        assert f"| `{name}` |" in page
        assert meaning in page
    names = [field.alias or name for model in (ServerScript, AnswerRule) for name, field in model.model_fields.items()]
    assert [name for name in names if f"| `{name}` |" not in page] == []
