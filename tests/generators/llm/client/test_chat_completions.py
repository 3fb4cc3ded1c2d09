"""How servers of different makes say no, and when they say to come back."""

import email.utils
import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.llm.client.chat_completions import (
    build_payload,
    parse_error,
    parse_reply,
    remove_prompt,
    retry_after,
)
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError

VLLM_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
AZURE_FILTER = {"code": "x", "message": "filtered", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
OPENROUTER = {"code": 403, "message": "flagged", "metadata": {"flagged_input": "a dog", "reasons": ["violence"]}}


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, {"error": {"message": "max_tokens must be positive", "type": "invalid_request_error"}}, "bad_request"),
        (422, {"detail": [{"msg": "field required"}]}, "bad_request"),
        (400, {"object": "error", "message": VLLM_LONG, "type": "BadRequestError", "code": 400}, "context_too_long"),
        (400, {"error": {"type": "exceed_context_size_error", "message": "too big"}}, "context_too_long"),
        (413, b"<html>Request Entity Too Large</html>", "request_too_large"),
        (429, {"error": {"message": "Request too large for m on tokens per min (TPM)"}}, "request_too_large"),
        (400, {"error": {"code": "content_filter", "message": "filtered"}}, "content_filter"),
        (400, {"error": AZURE_FILTER}, "content_filter"),
        (403, {"error": OPENROUTER}, "content_filter"),
        (400, {"error": {"code": "unsupported_value", "param": "temperature", "message": "no"}}, "unsupported"),
        (400, {"error": {"message": "response_format json_schema is not supported"}}, "unsupported"),
        (401, {"error": "unauthorized"}, "bad_key"),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, "no_quota"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}, "no_quota"),
        (403, {"error": {"message": "Country not supported"}}, "forbidden"),
        (404, {"error": {"code": "model_not_found", "message": "no"}}, "unknown_model"),
        (404, {"error": {"code": "DeploymentNotFound", "message": "no"}}, "unknown_model"),
        (404, {"object": "error", "message": "The model `x` does not exist.", "code": 404}, "unknown_model"),
        (404, {"error": {"message": 'model "x" not found, try pulling it first'}}, "unknown_model"),
        (404, {"detail": "Not Found"}, "wrong_url"),
        (405, {"detail": "Method Not Allowed"}, "wrong_url"),
        (308, b"", "wrong_url"),
        (408, b"", "server_error"),
        (429, b"slow down", "rate_limited"),
        (500, [], "server_error"),
        (503, {"error": {"message": "Loading model"}}, "overloaded"),
        (529, {"error": {"type": "overloaded_error"}}, "overloaded"),
    ],
)
def test_errors_of_servers_are_classified(status: int, body: Any, word: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    failure = parse_error(status, {}, data)
    assert (failure.code, failure.status, failure.retry_after) == (word, status, None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "2", "retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "2", "retry-after-ms": "soon"}, 2),
        ({"retry-after": email.utils.formatdate(0, usegmt=True)}, 0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Mon, 99 Foo 99999 99:99:99 GMT"}, None),
    ],
)
def test_retry_after_is_parsed_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == (None if seconds is None else pytest.approx(seconds, abs=0))


def test_retry_after_may_be_a_date() -> None:
    headers = {"retry-after": email.utils.formatdate(time.time() + 3600, usegmt=True)}
    assert retry_after(headers) == pytest.approx(3600, abs=60)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "error", "code", "usage", "tool_calls", "metadata", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.binary(max_size=60), st.integers(300, 599))
def test_every_body_gives_a_reply_or_a_request_error(body: Any, status: int) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8", "surrogatepass")
    assert parse_error(status, {}, data).code in REQUEST_ERROR_CODES
    with suppress(RequestError):
        assert isinstance(parse_reply(data), Reply)


def test_servers_that_stream_by_default_are_asked_not_to() -> None:
    assert build_payload(Request((Message("user", "a dog"),), "m"))["stream"] is False


def test_each_sample_of_a_request_with_a_seed_has_another_seed() -> None:
    """With one seed the server would send, and bill, the same answer again."""

    def seed(sample: int, **parameters: Any) -> Any:
        return build_payload(Request((Message("user", "a dog"),), "m", parameters, sample=sample)).get("seed")

    seeds = [seed(sample, seed=7) for sample in range(20)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 20
    assert seeds == [seed(sample, seed=7) for sample in range(20)]
    assert seed(1, seed=8) not in seeds
    assert (seed(0), seed(3), seed(0, seed=0)) == (None, None, 0)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (None, "server_error"),
        ({"code": 502, "message": "Upstream error"}, "server_error"),
        ({"code": 400, "message": "Provider returned error"}, "server_error"),
        ({"code": 429, "message": "slow down"}, "rate_limited"),
        ({"code": 403, "message": "flagged", "metadata": {"flagged_input": "a dog"}}, "content_filter"),
    ],
)
def test_a_choice_with_finish_reason_error_is_an_error(error: Any, word: str) -> None:
    choice = {"finish_reason": "error", "message": {"content": "A"}, **({"error": error} if error else {})}
    with pytest.raises(RequestError) as caught:
        parse_reply(json.dumps({"choices": [choice]}).encode())
    assert caught.value.code == word


@pytest.mark.parametrize(
    "marks", ["<|end|><|assistant|>", "\nassistant\n", "<|vision_start|><|vision_end|><|im_end|>\n", ""]
)
def test_a_prompt_that_a_server_repeats_is_no_part_of_the_answer(marks: str) -> None:
    """`transformers serve` does so with some models; the demonstration would be read as the answer."""
    shown = [
        Message("system", "Write a question and an answer about the image, as one JSON object."),
        Message("user", "Caption: A cat sleeps on a red mat."),
        Message("assistant", '{"question": "What sleeps?", "answer": "A cat."}'),
        Message("user", "Caption: Two dogs run."),
    ]
    request = Request(tuple(shown), "small")
    said = '{"question": "What runs?", "answer": "Two dogs."}'
    prompt = "".join(f"<|{each.role}|>{each.text}<|end|>" for each in shown).removesuffix("<|end|>")
    assert remove_prompt(Reply(prompt + marks + said, "stop", "", Usage(1, 1), "small"), request).text == said
    for whole in (said, f"{shown[-1].text} {said}", f"{shown[0].text} {said}", ""):
        reply = Reply(whole, "stop", "", Usage(1, 1), "small")
        assert remove_prompt(reply, request) is reply
