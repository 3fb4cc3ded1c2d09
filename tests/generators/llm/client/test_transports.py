"""Both transports, against real servers: the same answers and the same failures from either."""

import asyncio
import io
import json
import shutil
import ssl
import subprocess
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.generators.llm.client.factory import open_model, open_transport
from pairwright.generators.llm.client.messages import Image, Message, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.faults import KINDS
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_app
from tests.generators.llm.client.raw_server import RawServer, answering, http

KEY = "topsecret-key-0123456789"
TOKEN = "token-0123456789"  # noqa: S105 - nobody's
REQUEST = Request((Message("system", "Be brief."), Message("user", "a dog")), "m", {"max_tokens": 9})
OK_BODY = {"model": "m", "choices": [{"finish_reason": "stop", "message": {"content": "yes"}}]}
FAULTS = {
    "400": "bad_request",
    "401": "bad_key",
    "context_too_long": "context_too_long",
    "content_filter": "content_filter",
    "429": "rate_limited",
    "429_bare": "rate_limited",
    "quota": "no_quota",
    "500": "server_error",
    "503": "overloaded",
    "reset": "connection_lost",
    "half": "cut_off",
    "drip": "timeout",
    "timeout": "timeout",
    "malformed": "not_json",
    "wrong_type": "wrong_shape",
    "refusal": "",
    "empty": "",
    "truncation": "",
    "content_filter_finish": "",
    "malformed_text": "",
    "wrong_type_text": "",
    "run_on": "",
    "error_finish": "server_error",
    "reasoning_json": "",
    "reasoning_used_up": "",
    "openai_unknown_model": "unknown_model",
    "openai_no_chat": "unsupported_endpoint",
    "anthropic_no_credit": "no_quota",
    "gemini_bad_key": "bad_key",
    "gemini_unknown_model": "unknown_model",
    "gemini_context": "context_too_long",
    "gemini_quota_minute": "rate_limited",
    "gemini_quota_day": "no_quota",
    "groq_json_validate_failed": "schema_failed",
    "litellm_bad_key": "bad_key",
    "litellm_budget": "no_quota",
    "litellm_unknown_model": "unknown_model",
    "llama_cpp_python_context": "context_too_long",
    "llama_cpp_unparsed": "schema_failed",
    "openrouter_no_credit": "no_quota",
    "openrouter_unknown_model": "unknown_model",
    "openrouter_wrapped": "context_too_long",
    "tgi_context": "context_too_long",
    "vllm_context": "context_too_long",
    "vllm_no_chat": "unsupported_endpoint",
}


@pytest.fixture(params=["direct", "sdk"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def asked(transport: str, url: str, request: Request = REQUEST, **options: Any) -> Reply | RequestError:
    """Ask once, without pacing and retries."""
    settings = LLMSettings(**{"base_url": url, "api_key": KEY, "transport": transport, "timeout": 5.0, **options})
    async with open_transport(settings, options.pop("heard", lambda _: None)) as model:
        try:
            return await model.ask(request)
        except RequestError as failure:
            return failure


def ask(transport: str, app: ServerApp, request: Request = REQUEST, **options: Any) -> Reply | RequestError:
    """Ask the test server once."""

    async def main() -> Reply | RequestError:
        async with serve_app(app) as server:
            return await asked(transport, server.url, request, **options)

    return asyncio.run(main())


def ask_raw(
    transport: str, answer: bytes, *, forever: bytes = b"", **options: Any
) -> tuple[Reply | RequestError, RawServer]:
    """Ask a server that answers with these bytes."""

    async def main() -> tuple[Reply | RequestError, RawServer]:
        async with answering(answer, forever=forever) as server:
            return await asked(transport, server.root, **options), server

    return asyncio.run(main())


def test_the_table_of_faults_is_whole() -> None:
    assert set(FAULTS) == {kind for kind, (group, _) in KINDS.items() if group != "batch"}


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_ends_as_its_code_or_as_a_billed_answer(kind: str, transport: str) -> None:
    script = ServerScript(faults={kind: 1.0}, hang_s=3.0, drip_s=2.0, retry_after_s=1.5)
    # Short where it has to pass: elsewhere a busy machine may take its time.
    found = ask(transport, ServerApp(script), timeout=0.5 if FAULTS[kind] == "timeout" else 60.0)
    assert (found.code if isinstance(found, RequestError) else "") == FAULTS[kind]
    if kind == "429":
        assert isinstance(found, RequestError)
        assert (found.status, found.retry_after) == (429, 1.5)


def test_a_reply_has_all_parts_of_the_response(transport: str) -> None:
    found = ask(transport, ServerApp(ServerScript(rules=({"contains": "dog", "text": "a cat"},))))
    assert isinstance(found, Reply)
    assert (found.text, found.finish_reason, found.refusal, found.model) == ("a cat", "stop", "", "m")
    assert found.usage.prompt_tokens > 0
    assert json.loads(found.raw)["choices"][0]["message"]["content"] == "a cat"


def test_a_body_that_drips_in_time_is_an_answer(transport: str) -> None:
    assert isinstance(ask(transport, ServerApp(ServerScript(faults={"drip": 1.0}, drip_s=0.2))), Reply)


def test_both_transports_send_the_same_body() -> None:
    seen: list[Mapping[str, Any]] = []

    def note(request: ChatRequest) -> None:
        seen.append(request.body)

    image = Image("00", "", lambda: "data:image/png;base64,AAAA")
    schema = Schema("answer", {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}})
    request = Request(
        (Message("system", "Straße, 犬, 🐕"), Message("user", "a dog", (image,))),
        "m",
        {"temperature": 0.5, "seed": 7, "stop": ["\n"]},
        schema,
    )
    for transport in ("direct", "sdk"):
        assert isinstance(ask(transport, ServerApp(answer=note), request), Reply)
    assert json.dumps(seen[0]) == json.dumps(seen[1])
    assert seen[0]["response_format"]["json_schema"]["schema"] == schema.schema
    assert seen[0]["messages"][1]["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


def test_a_tool_call_answers_with_its_arguments(transport: str) -> None:
    tool = {"type": "function", "function": {"name": "say", "parameters": {"type": "object", "properties": {}}}}
    found = ask(transport, ServerApp(), Request(REQUEST.messages, "m", {"tools": [tool], "tool_choice": "required"}))
    assert isinstance(found, Reply)
    assert (found.text, found.finish_reason) == ("{}", "tool_calls")


def said(transport: str, body: Any) -> Reply | RequestError:
    """Ask a server that answers 200 with this JSON."""
    return ask_raw(transport, http("200 OK", json.dumps(body).encode()))[0]


def choice(message: Any, **others: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"finish_reason": "stop", "message": message}], **others}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (choice({"content": "yes"}), "yes"),
        (choice({"content": None}), ""),
        (choice({}), ""),
        (choice({"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}]}), "yes"),
        (choice({"content": None, "tool_calls": [{"function": {"arguments": {"a": 1}}}]}), '{"a":1}'),
        ({"choices": [{"message": {"content": "yes"}}]}, "yes"),
        ({"choices": [{"finish_reason": "length", "index": 0}]}, ""),  # Gemini, after reasoning
    ],
)
def test_parts_that_servers_omit_are_handled(body: Any, text: str, transport: str) -> None:
    found = said(transport, body)
    assert isinstance(found, Reply)
    assert (found.text, found.usage) == (text, Usage(0, 0))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ([], "wrong_shape"),
        ({}, "wrong_shape"),
        ({"choices": None}, "no_choices"),  # OpenRouter, while a model starts
        ({"choices": [{"text": "yes", "finish_reason": "stop"}]}, "wrong_shape"),
        ({"choices": []}, "no_choices"),
        ({"choices": ["yes"]}, "wrong_shape"),
        ({"choices": [{"message": "yes"}]}, "wrong_shape"),
        (choice({"content": 42}), "wrong_shape"),
        (choice({"content": {"text": "yes"}}), "wrong_shape"),
        (choice({"content": None, "tool_calls": [{"function": None}]}), "wrong_shape"),
        ({"error": {"message": "upstream is busy", "code": 429}}, "rate_limited"),
        ({"error": {"message": "upstream is busy", "code": "429"}}, "rate_limited"),
        ({"error": {"message": "provider failed", "code": "internal"}}, "server_error"),
        ({"error": "out of memory"}, "server_error"),
    ],
)
def test_a_body_with_missing_or_mistyped_parts_is_an_error(body: Any, word: str, transport: str) -> None:
    found = said(transport, body)
    assert isinstance(found, RequestError)
    assert found.code == word


def test_odd_usage_counts_as_none(transport: str) -> None:
    usage = {"prompt_tokens": "7", "completion_tokens": -1, "prompt_tokens_details": None}
    found = said(transport, choice({"content": "yes"}, usage=usage))
    assert isinstance(found, Reply)
    assert found.usage == Usage(0, 0)
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}
    found = said(transport, choice({"content": "yes"}, usage=usage))
    assert isinstance(found, Reply)
    assert found.usage == Usage(7, 2, 5)


def test_reasoning_that_a_server_counts_in_the_total_alone_is_billed(transport: str) -> None:
    """Gemini and xAI bill it like the answer."""
    for usage, completion in (
        ({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}, 603),
        ({"prompt_tokens": 20, "total_tokens": 623}, 603),
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 20}, 5),
        ({"completion_tokens": 5, "total_tokens": 623}, 5),
    ):
        found = said(transport, choice({"content": "yes"}, usage=usage))
        assert isinstance(found, Reply)
        assert found.usage.completion_tokens == completion


def test_a_server_that_streams_whatever_it_is_asked_is_named(transport: str) -> None:
    found, _ = ask_raw(transport, http("200 OK", b'data: {"choices": []}\n\ndata: [DONE]\n\n'))
    assert isinstance(found, RequestError)
    assert (found.code, found.detail) == ("wrong_shape", "the server streams its answers, although it is asked not to")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (http("200 OK", b""), "not_json"),
        (http("200 OK", b"\xff\xfe"), "not_json"),
        (http("200 OK", b"[" * 5000), "not_json"),
        (http("204 No Content", b""), "not_json"),
        (http("302 Found", b"", "location: http://127.0.0.1:9/"), "wrong_url"),
        (http("404 Not Found", b"<html>no page</html>"), "wrong_url"),
        (http("502 Bad Gateway", b"<html>bad gateway</html>"), "server_error"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not_json"),
        (b"", "connection_lost"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{", "cut_off"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}", "cut_off"),
    ],
)
def test_responses_that_are_not_chat_completions_have_codes(answer: bytes, word: str, transport: str) -> None:
    found, server = ask_raw(transport, answer)
    assert isinstance(found, RequestError)
    assert found.code == word
    assert len(server.heads) == 1


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
def test_of_a_page_its_words_are_shown(status: str, transport: str) -> None:
    page = (
        b"<!DOCTYPE html><!--[if IE]> old <![endif]--><head><title>Busy</title><style>a{b:c}</style></head>"
        b"<body><script>let x = 1 < 2;</script><h1>Come back later</h1><script>cut"
    )
    found, _ = ask_raw(transport, http(status, page))
    assert isinstance(found, RequestError)
    assert found.detail.removeprefix("502: ") == "Busy Come back later"


@pytest.mark.parametrize("length", ["content-length: 999999999", "transfer-encoding: chunked"])
def test_an_endless_response_ends_at_the_size_limit(
    length: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"pairwright.generators.llm.client.{transport}_transport.MAX_RESPONSE_BYTES", 200_000)
    piece = b"x" * 10_000 if "length" in length else b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    found, _ = ask_raw(transport, f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode(), forever=piece)
    assert isinstance(found, RequestError)
    assert found.code == "answer_too_large"


def test_no_server_and_a_dropped_connection_have_different_codes(transport: str) -> None:
    async def main() -> Reply | RequestError:
        async with serve_app(ServerApp()) as server:
            url = server.url
        return await asked(transport, url)

    found = asyncio.run(main())
    assert isinstance(found, RequestError)
    assert found.code == "unreachable"


def test_an_untrusted_certificate_stops_the_run(transport: str, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def main() -> Reply | RequestError:
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with listener:
            return await asked(transport, f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}")

    found = asyncio.run(main())
    assert isinstance(found, RequestError)
    assert found.code == "bad_certificate"


@pytest.mark.parametrize(
    "form",
    [
        "{root}",
        "{root}/",
        "{root}/v1",
        "{root}/v1/",
        "{root}/v1/chat/completions",
        "{root}/chat/completions",
        "{root}/openai/v1/",
        " {root}/v1 ",
    ],
)
def test_a_base_url_works_as_users_write_it(form: str, transport: str) -> None:
    async def main() -> Reply | RequestError:
        async with serve_app(ServerApp(api_key=KEY)) as server:
            return await asked(transport, form.format(root=server.root))

    assert isinstance(asyncio.run(main()), Reply)


@pytest.mark.parametrize(
    "form", ["{root}", "{root}/", "{root}/openai", "{root}/openai/deployments/m", "{root}/?api-version=2024-10-21"]
)
def test_azure_is_asked_by_deployment_with_version_and_its_own_header(form: str) -> None:
    async def main() -> tuple[Reply | RequestError, dict[str, Any]]:
        async with serve_app(ServerApp(api_key=KEY)) as server:
            version = "" if "api-version" in form else "2024-10-21"
            return await asked("auto", form.format(root=server.root), api_version=version), server.stats()

    found, stats = asyncio.run(main())
    assert isinstance(found, Reply)
    assert stats["endpoints"] == {"chat": 1}


def test_azures_header_and_path_follow_its_documentation() -> None:
    answer = http("200 OK", json.dumps(OK_BODY).encode())
    found, server = ask_raw("auto", answer, api_version="2024-10-21")
    assert isinstance(found, Reply)
    assert server.heads[0].startswith("POST /openai/deployments/m/chat/completions?api-version=2024-10-21 ")
    assert (server.header("api-key"), server.header("authorization")) == (KEY, None)
    _, server = ask_raw("auto", answer, api_version="2024-10-21", api_key="", ad_token=TOKEN)
    assert (server.header("api-key"), server.header("authorization")) == (None, f"Bearer {TOKEN}")


def test_headers_query_and_user_of_the_url_are_sent_and_no_key_means_no_header(transport: str) -> None:
    answer = http("200 OK", json.dumps(OK_BODY).encode())
    found, server = ask_raw(transport, answer, headers={"X-Team": "blue"})
    assert isinstance(found, Reply)
    assert (server.header("x-team"), server.header("authorization")) == ("blue", f"Bearer {KEY}")
    _, server = ask_raw(transport, answer, api_key="")
    assert server.header("authorization") is None
    _, server = ask_raw(transport, answer, headers={"Authorization": "Token abc"})
    assert server.header("authorization") == "Token abc"

    async def main() -> RawServer:
        async with answering(answer) as server:
            url = server.root.replace("//", "//ann:pass%40word@") + "/v1?key=query-secret"
            assert isinstance(await asked(transport, url), Reply)
            return server

    server = asyncio.run(main())
    assert server.heads[0].startswith("POST /v1/chat/completions?key=query-secret ")
    assert server.header("authorization") == "Basic YW5uOnBhc3NAd29yZA=="


SECRETS = (KEY, "pass@word", "pass%40word", "query-secret", "header-secret", "YW5uOnBhc3NAd29yZA==")


@pytest.mark.parametrize("status", ["401 Unauthorized", "400 Bad Request", "500 Server Error", "200 OK"])
@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_is_in_an_error_a_traceback_or_a_log(
    status: str, form: str, transport: str, logged: io.StringIO
) -> None:
    echo = "you sent " + " ".join(SECRETS) + " and Bearer sk-somebody-elses-key"
    body = json.dumps({"error": {"message": echo}}).encode() if form == "json" else echo.encode()

    async def main() -> tuple[RequestError, LLMSettings]:
        async with answering(http(status, body)) as server:
            url = server.root.replace("//", "//ann:pass%40word@") + "/v1?key=query-secret"
            settings = LLMSettings.from_env(
                {},
                base_url=url,
                api_key=KEY,
                transport=transport,
                headers={"X-Key": "header-secret"},
            )
            async with open_transport(settings, lambda _: None) as model:
                try:
                    await model.ask(REQUEST)
                except RequestError as failure:
                    return failure, settings
        raise AssertionError

    failure, settings = asyncio.run(main())
    assert "you sent ***" in str(failure)
    shown = [str(failure), repr(failure), failure.detail, *traceback.format_exception(failure)]
    shown += [repr(settings), repr(settings.address), logged.getvalue()]
    for secret in (*SECRETS, "sk-somebody-elses-key"):
        assert not [text for text in shown if secret in text], secret
    assert failure.__context__ is None  # where the request, and so the key, would hang


@pytest.mark.parametrize("fails", [http("401 Unauthorized", b"{}"), b"", b"nonsense\r\n\r\n"])
def test_a_request_error_has_no_foreign_cause(fails: bytes, transport: str) -> None:
    found, _ = ask_raw(transport, fails)
    assert isinstance(found, PairwrightError)
    assert found.__cause__ is None
    assert found.__context__ is None


def test_headers_of_every_response_reach_the_limiter(transport: str) -> None:
    heard: list[str | None] = []

    async def main() -> None:
        script = ServerScript(requests_per_minute=2, rules=({"contains": "cat", "fault": "400"},))
        async with serve_app(ServerApp(script)) as server:
            settings = LLMSettings.from_env({}, base_url=server.url, transport=transport)
            async with open_transport(
                settings, lambda h: heard.append(h.get("x-ratelimit-remaining-requests"))
            ) as model:
                for text in ("a dog", "a cat", "a cow"):
                    try:
                        await model.ask(Request((Message("user", text),), "m"))
                    except RequestError as failure:
                        heard.append(failure.code)

    asyncio.run(main())
    assert heard == ["1", "0", "bad_request", "0", "rate_limited"]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until the server has seen it; at most two minutes."""
    async with asyncio.timeout(120):
        while not holds():  # noqa: ASYNC110 - the server's counts have no event
            await asyncio.sleep(0.01)


def test_cancelling_leaves_no_task_and_no_connection(transport: str) -> None:
    async def main() -> tuple[set[Any], dict[str, Any]]:
        async with serve_app(ServerApp(ServerScript(latency_ms=60_000))) as server:
            before = asyncio.all_tasks()
            settings = LLMSettings.from_env({}, base_url=server.url, transport=transport, max_concurrency=8)

            async def stage() -> None:
                async with open_model(settings) as model, asyncio.TaskGroup() as group:
                    for number in range(20):
                        group.create_task(model.ask(Request((Message("user", str(number)),), "m")))

            task = asyncio.create_task(stage())
            await until(lambda: server.stats()["in_flight"] == 8)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: server.stats()["in_flight"] == 0)
            return asyncio.all_tasks() - before, server.stats()

    left, stats = asyncio.run(main())
    assert left == set()
    assert (stats["broken_off"], stats["requests"]) == (8, 8)


def test_connections_are_reused_up_to_the_limit(transport: str) -> None:
    async def main() -> dict[str, Any]:
        async with serve_app(ServerApp(ServerScript(latency_ms=250))) as server:
            settings = LLMSettings.from_env({}, base_url=server.url, transport=transport, max_concurrency=150)
            async with open_model(settings) as model:
                for _ in range(20):  # a busy machine needs more than one, since the ceiling is come to by answers
                    asks = (model.ask(Request((Message("user", str(number)),), "m")) for number in range(450))
                    await asyncio.gather(*asks)
                    if server.stats()["in_flight_max"] >= 150:
                        break
            return server.stats()

    stats = asyncio.run(main())
    assert stats["in_flight_max"] == 150
    assert stats["connections"] <= 160


@pytest.mark.parametrize("broken", ["\ud800", b"bytes"])
def test_a_row_that_is_not_json_fails_alone_and_sends_nothing(broken: Any, transport: str) -> None:
    found = ask(transport, ServerApp(), Request((Message("user", broken),), "m"))
    assert isinstance(found, RequestError)
    assert found.code == "bad_request"


def test_parameters_that_would_change_the_form_of_the_answer_are_refused(transport: str) -> None:
    refused: tuple[dict[str, Any], ...] = ({"n": 2}, {"stream": True}, {"messages": []})
    for parameters in refused:
        with pytest.raises(UsageError, match="cannot be set here"):
            ask(transport, ServerApp(), Request(REQUEST.messages, "m", parameters))


def test_a_proxy_of_the_environment_is_used_and_one_that_is_excepted_is_not(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def through(no_proxy: str) -> tuple[Reply | RequestError, RawServer]:
        async def main() -> tuple[Reply | RequestError, RawServer]:
            async with (
                answering(http("200 OK", json.dumps(OK_BODY).encode())) as proxy,
                serve_app(ServerApp()) as server,
            ):
                monkeypatch.setenv("HTTP_PROXY", proxy.root)
                monkeypatch.setenv("NO_PROXY", no_proxy)
                return await asked(transport, server.url), proxy

        return asyncio.run(main())

    found, proxy = through("")
    assert isinstance(found, Reply)
    assert found.text == "yes"
    assert proxy.heads[0].startswith("POST http://127.0.0.1:")
    found, proxy = through("127.0.0.1")
    assert isinstance(found, Reply)
    assert found.text == "You said: a dog"
    assert proxy.heads == []


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": " "}])
def test_openai_without_a_key_is_refused_before_anything_is_sent(environment: dict[str, str]) -> None:
    async def main() -> None:
        async with open_model(LLMSettings.from_env(environment, model="m")):
            raise AssertionError

    with pytest.raises(UsageError, match="Set OPENAI_API_KEY"):
        asyncio.run(main())
