"""``pairwright generate`` with servers that answer and refuse like providers."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pairwright.cli.main import app
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

ROWS = 6
RATIONALE = "It says so. So the answer is entailment."
FATAL = {
    "openai_unknown_model": "the server has no such model (404: The model `x` does not exist",
    "openai_no_chat": "the server does not offer this model for chat completions (404: This is not a chat model",
    "anthropic_no_credit": "the account has no quota left (400: Your credit balance is too low",
    "gemini_bad_key": "the server does not accept the key (400: API key not valid.",
    "gemini_unknown_model": "the server has no such model (404: models/x is not found",
    "gemini_quota_day": "the account has no quota left (429: You exceeded your current quota",
    "litellm_bad_key": "the server does not accept the key (400: Authentication Error, No connected db.)",
    "litellm_budget": "the account has no quota left (400: Budget has been exceeded!",
    "litellm_unknown_model": "the server has no such model (400: ",
    "openrouter_no_credit": "the account has no quota left (402: Insufficient credits.",
    "openrouter_unknown_model": "the server has no such model (400: x/y is not a valid model ID)",
    "vllm_no_chat": "the server does not offer this model for chat completions (400: ",
}
OF_THE_ROW = ["gemini_context", "llama_cpp_python_context", "openrouter_wrapped", "tgi_context", "vllm_context"]


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions and rows of a task, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("captions.csv").write_text("caption\n" + "".join(f"Dog {n} and a cat on a bed.\n" for n in range(ROWS)))
    rows = [{"premise": f"Dog {n} eats.", "hypothesis": "A dog eats.", "label": "entailment"} for n in range(ROWS)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def serving(**settings: Any) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript.model_validate(settings))) as server:
        yield server


ONE_BY_ONE = ("negatives", "captions.csv", "--captions-per-request", "1")


def ran(url: str, *more: str, verb: Sequence[str] = (*ONE_BY_ONE, "--method", "llm")) -> Result:
    command = ("generate", *verb, "--model", "m", "--base-url", url, "--price", "1/2", "--out", "out.jsonl", *more)
    return CliRunner().invoke(app, command)


def rationales(url: str, *more: str) -> Result:
    return ran(url, *more, verb=("rationales", "rows.jsonl", "--task", "nli"))


def printed(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.mark.parametrize("transport", ["direct", "sdk"])
@pytest.mark.parametrize("kind", FATAL)
def test_what_no_row_can_change_stops_the_run_at_once_with_one_line(kind: str, transport: str) -> None:
    with serving(faults={kind: 1.0}) as server:
        result = ran(server.url, "--transport", transport, "--max-concurrency", "2")
        sent = server.stats()["endpoints"]
    assert isinstance(result.exception, RequestError)
    assert result.exception.exit_code == 1
    assert str(result.exception).startswith(FATAL[kind])
    assert "\n" not in str(result.exception)
    assert sent["chat"] <= 2
    assert sent.get("models", 0) == kind.endswith("unknown_model")  # whose names the error lists
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_an_unknown_model_is_answered_with_the_five_nearest_names_that_the_server_has(transport: str) -> None:
    """Before, the error said to name a model that the server has, and left it to the user to find one."""
    names = ["llava-1.5-7b", "m-large", "m-small", "m1", "m12", "qwen2.5-vl-7b"]
    with serving(models=names[:2]) as server:
        few = ran(server.url, "--transport", transport)
    with serving(models=names) as server:
        many = ran(server.url, "--transport", transport)
        sent = server.stats()["endpoints"]
    assert str(few.exception).endswith("Name one with --model that the server has: m-large, llava-1.5-7b.")
    assert str(many.exception).endswith("the server has, such as m1, m12, m-small, m-large, qwen2.5-vl-7b.")
    assert sent["models"] == 1


@pytest.mark.parametrize("fault", ["models/500", "models/malformed", "models/wrong_type", "models/reset"])
def test_a_server_that_does_not_list_its_models_leaves_the_error_as_it_is(fault: str) -> None:
    with serving(models=["other"], faults={fault: 1.0}) as server:
        result = ran(server.url)
    assert str(result.exception) == (
        "the server has no such model (404: unknown model 'm'). Name one with --model that the server has."
    )


@pytest.mark.parametrize("kind", OF_THE_ROW)
def test_a_prompt_that_is_too_long_rejects_its_row_and_not_the_run(kind: str) -> None:
    with serving(rules=[{"contains": "Dog 3", "fault": kind}, {"text": RATIONALE}]) as server:
        result = rationales(server.url)
    assert result.exit_code == 0, result.output
    [failed] = [json.loads(line) for line in Path("out.failed.jsonl").read_text().splitlines()]
    assert failed["reason"] == "context_too_long"


def test_a_reasoning_model_is_adapted_to_once_and_later_runs_begin_with_what_was_learnt() -> None:
    """Before, every row failed: 400, `temperature` and `max_tokens` are not supported with this model."""
    with serving(without=["temperature", "max_tokens", "system"], rules=[{"text": RATIONALE}]) as server:
        first = rationales(server.url, "--parameter", "max_tokens=400", "--parameter", "temperature=0")
        refused = server.stats()["statuses"]["400"]
        rows = Path("rows.jsonl").read_text()
        Path("rows.jsonl").write_text(rows + rows.replace("Dog", "Cat"))
        second = rationales(server.url, "--parameter", "max_tokens=400", "--parameter", "temperature=0")
        stats = server.stats()
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert printed(first).count("m refuses temperature: it is omitted from now on") == 1
    assert printed(first).count("m refuses max_tokens: max_completion_tokens is sent instead from now on") == 1
    assert "refuses" not in second.output
    assert stats["statuses"] == {"200": 2 * ROWS, "400": refused}


def test_a_schema_that_groq_finds_unmet_is_asked_for_in_the_next_form() -> None:
    """Before, such a row was lost as a bad request."""

    def answer(request: ChatRequest) -> ServerAnswer | None:
        return ServerAnswer(fault="groq_json_validate_failed") if request.wants == "schema" else None

    with serve_in_thread(ServerApp(answer=answer)) as server:
        result = ran(server.url)
        stats = server.stats()
    assert "schema_failed" not in result.output
    assert 3 <= stats["faults"]["groq_json_validate_failed"] <= ROWS
    assert stats["statuses"]["200"] == ROWS


def test_an_answer_with_finish_reason_error_is_asked_for_again_and_never_kept(tmp_path: Path) -> None:
    with serving(rules=[{"fault": "error_finish", "times": 1}, {"text": RATIONALE}]) as server:
        result = rationales(server.url, "--json")
        assert server.stats()["faults"] == {"error_finish": ROWS}
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["llm"]["in_all"]["answers"] == ROWS


def test_reasoning_that_used_up_the_tokens_is_named_as_the_cause() -> None:
    with serving(faults={"reasoning_used_up": 1.0}, rules=[{"text": "x" * 800}]) as server:
        result = ran(server.url)
    assert result.exit_code == 3
    assert "reasoning_only: the model stopped within its reasoning, without an answer" in printed(result)
    assert "(200 of 200 completion tokens were reasoning). Raise the token limit" in printed(result)


def test_an_answer_that_the_server_took_for_reasoning_is_read() -> None:
    answers = {}
    for name, faults in (("plain", {}), ("reasoning", {"reasoning_json": 1.0})):
        with serving(faults=faults) as server:
            answers[name] = json.loads(ran(server.url, "--json", "--cache", f"{name}.sqlite").stdout)["types"]
    assert answers["plain"] == answers["reasoning"]


def test_two_deployments_behind_one_gateway_share_no_answers() -> None:
    with serving(rules=[{"text": RATIONALE}]) as server:
        for url, requests in ((server.url, ROWS), (f"{server.root}/openai/v1", 2 * ROWS), (server.root, 2 * ROWS)):
            assert rationales(url).exit_code == 0
            assert server.stats()["requests"] == requests


def test_a_server_that_never_answered_ends_the_run_whatever_the_patience() -> None:
    """Before, the run waited for 300 s."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens there
        port = taken.getsockname()[1]
        result = ran(f"http://127.0.0.1:{port}", "--patience", "1")
    assert isinstance(result.exception, RequestError)
    assert str(result.exception).startswith("no server answers at the base URL (no response in 1 s; last: ")
    assert f"127.0.0.1:{port}" in str(result.exception)


@pytest.mark.parametrize("verb", ["negatives", "positives"])
def test_rules_that_keep_nothing_end_in_exit_code_3_with_the_reason(verb: str) -> None:
    Path("one.csv").write_text("caption\nHello.\n")
    result = CliRunner().invoke(app, ["generate", verb, "one.csv", "--out", "out.jsonl"])
    assert result.exit_code == 3
    assert "No text was kept of 1 caption. Reasons by candidate: no_edit " in printed(result)


def test_a_reason_that_all_rows_have_is_explained() -> None:
    with serving() as server:
        result = ran(server.url, "--see-image")
    assert result.exit_code == 3
    assert "no_image: the model needs the image, which is missing, invalid or too large." in printed(result)


def test_a_build_whose_model_kept_no_text_ends_in_exit_code_3_and_points_to_no_sample() -> None:
    with serving(faults={"refusal": 1.0}) as server:
        config = f"name: b\nworkers: 1\ninput: {{path: captions.csv}}\nllm: {{model: m, base_url: '{server.url}'}}\n"
        Path("b.yaml").write_text(config + "negatives: {method: llm}\n")
        result = CliRunner().invoke(app, ["build", "b.yaml", "--out", "b", "--no-prefect"])
    assert result.exit_code == 3, result.output
    assert "negatives: no text was kept of 42 attempts (refused 42)." in printed(result)
    assert "Look at a sample" not in result.output


def test_a_prompt_of_ones_own_that_gets_no_answer_ends_in_exit_code_3() -> None:
    Path("mine").mkdir()
    Path("mine/mine.yaml").write_text(
        "version: 1\nabout: A test.\nsystem: Be brief.\nuser: 'Describe: {{ caption }}'\nvalues: {caption: it}\nanswer: text\ntypical: A dog.\n"
    )
    with serving(faults={"content_filter": 1.0}) as server:
        command = ("prompts", "ask", "mine", "captions.csv", "--prompts", "mine", "--model", "m", "--out", "a.jsonl")
        result = CliRunner().invoke(app, [*command, "--base-url", server.url])
    assert result.exit_code == 3, result.output
    assert f"No answer was kept of {ROWS} pairs: content_filter {ROWS}." in printed(result)
