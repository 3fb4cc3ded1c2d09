"""The cache key table: what changes the key of a request, and what must not."""

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.generators.llm.client.messages import Message, Request, Schema
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.images import MessageImages
from tests.generators.llm.test_images import drawn

HERE = "http://localhost:8000"
SCHEMA = {"type": "object", "properties": {"negative": {"type": "string"}, "why": {"type": "string"}}}
IMAGES = MessageImages(edge=64)
BASE = Request(
    messages=(
        Message("system", "You edit captions."),
        Message("user", "A café by the sea.", (IMAGES.of(drawn()), IMAGES.of(drawn((41, 20))))),
    ),
    model="small",
    parameters={"temperature": 0.5, "max_tokens": 100, "seed": 7, "stop": ["\n", "."]},
    schema=Schema("answer", SCHEMA),
    sample=0,
    row="row 1",
)

Change = Callable[[Request], Request]


def with_parameters(**changed: Any) -> Change:
    return lambda request: replace(request, parameters={**request.parameters, **changed})


def without_parameter(name: str) -> Change:
    return lambda request: replace(
        request, parameters={key: value for key, value in request.parameters.items() if key != name}
    )


def with_message(place: int, **changed: Any) -> Change:
    def change(request: Request) -> Request:
        messages = list(request.messages)
        messages[place] = replace(messages[place], **changed)
        return replace(request, messages=tuple(messages))

    return change


def with_schema(name: str = "answer", schema: Any = SCHEMA, *, strict: bool = True) -> Change:
    return lambda request: replace(request, schema=Schema(name, schema, strict))


FIRST, SECOND = BASE.messages[1].images

CHANGES: dict[str, Change] = {
    "the model": lambda request: replace(request, model="large"),
    "the letter case of the model": lambda request: replace(request, model="Small"),
    "the sample number": lambda request: replace(request, sample=1),
    "the system text": with_message(0, text="You edit captions!"),
    "the user text": with_message(1, text="A cafe by the sea."),
    "a space at the end of a text": with_message(1, text="A café by the sea. "),
    "a line end written as CR LF": with_message(0, text="You edit\r\ncaptions."),
    "a text in another Unicode form": with_message(1, text=unicodedata.normalize("NFD", "A café by the sea.")),
    "a role": with_message(0, role="user"),
    "the order of messages": lambda request: replace(request, messages=request.messages[::-1]),
    "a message more": lambda request: replace(request, messages=(*request.messages, Message("assistant", ""))),
    "a message less": lambda request: replace(request, messages=request.messages[1:]),
    "an image's content": with_message(1, images=(FIRST, IMAGES.of(drawn((42, 20))))),
    "the order of images": with_message(1, images=(SECOND, FIRST)),
    "an image less": with_message(1, images=(FIRST,)),
    "the size in which images are sent": with_message(1, images=(MessageImages(edge=32).of(drawn()), SECOND)),
    "an image at another message": lambda request: replace(
        request,
        messages=(replace(request.messages[0], images=(SECOND,)), replace(request.messages[1], images=(FIRST,))),
    ),
    "the temperature": with_parameters(temperature=0.6),
    "max_tokens": with_parameters(max_tokens=101),
    "the seed": with_parameters(seed=8),
    "no seed": without_parameter("seed"),
    "the order within a list": with_parameters(stop=[".", "\n"]),
    "a list of one for a text": with_parameters(stop="\n"),
    "a default that is given": with_parameters(top_p=1),
    "a null that is given": with_parameters(top_p=None),
    "a parameter that pairwright does not know": with_parameters(chat_template_kwargs={"thinking": False}),
    "a boolean for a number": with_parameters(seed=True),
    "no schema": lambda request: replace(request, schema=None),
    "the schema": with_schema(schema={**SCHEMA, "additionalProperties": False}),
    "the order of a schema's properties, which is the order of the answer": with_schema(
        schema={"type": "object", "properties": dict(reversed(SCHEMA["properties"].items()))}  # type: ignore[attr-defined]
    ),
    "the schema's name": with_schema("reply"),
    "the schema's strictness": with_schema(strict=False),
}

NO_CHANGES: dict[str, Change] = {
    "the row that asks": lambda request: replace(request, row="row 2"),
    "the order of parameters": lambda request: replace(
        request, parameters=dict(reversed(list(request.parameters.items())))
    ),
    "an integer written as a float": with_parameters(max_tokens=100.0),
    "a float written with an exponent": with_parameters(temperature=5e-1),
    "a tuple for a list": with_parameters(stop=("\n", ".")),
    "an equal schema, built again": with_schema(schema={**SCHEMA}),
    "who the user is": with_parameters(user="me"),
    "how it is billed": with_parameters(service_tier="flex", store=True, metadata={"job": "7"}),
    "the same image, read again": with_message(
        1, images=(MessageImages(edge=64).of(drawn(), where="elsewhere"), SECOND)
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_shapes_the_answer_changes_the_key(name: str) -> None:
    assert CHANGES[name](BASE).key(HERE) != BASE.key(HERE)


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_does_not_shape_the_answer_leaves_the_key(name: str) -> None:
    assert NO_CHANGES[name](BASE).key(HERE) == BASE.key(HERE)


def test_all_changes_give_different_keys() -> None:
    keys = [change(BASE).key(HERE) for change in CHANGES.values()]
    assert len({*keys, BASE.key(HERE)}) == len(CHANGES) + 1


def test_another_endpoint_is_another_key() -> None:
    assert BASE.key(HERE) != BASE.key("http://localhost:8001") != BASE.key("our cluster")


def test_the_key_is_128_bits_and_the_same_in_every_release() -> None:
    request = Request((Message("user", "hello"),), "small", {"temperature": 0})
    assert request.key(HERE) == "4604e2914daf135c2149aab9ac03a823"


def test_numbers_count_by_value_inside_parameters_too() -> None:
    one, other = {"logit_bias": {"50256": -100}}, {"logit_bias": {"50256": -100.0}}
    assert with_parameters(**one)(BASE).key(HERE) == with_parameters(**other)(BASE).key(HERE)
    zero, minus = with_parameters(temperature=0)(BASE), with_parameters(temperature=-0.0)(BASE)
    assert zero.key(HERE) == minus.key(HERE)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), 2**70, "\ud800"])
def test_values_that_json_cannot_express_are_an_error_of_the_row(value: object) -> None:
    with pytest.raises(RequestError, match="not JSON") as caught:
        with_parameters(stop=value)(BASE).key(HERE)
    assert (caught.value.transient, caught.value.fatal) == (False, False)


def test_a_lone_surrogate_in_a_text_is_an_error_of_the_row() -> None:
    with pytest.raises(RequestError, match="not JSON"):
        with_message(1, text="\ud83d")(BASE).key(HERE)


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=8)), max_size=4), st.text()
)
def test_texts_never_run_into_each_other(messages: list[tuple[Any, str]], model: str) -> None:
    request = Request(tuple(Message(role, text) for role, text in messages), model)
    joined = Request((Message("user", "".join(role + text for role, text in messages)),), model)
    assert request.key(HERE) == Request(request.messages, model).key(HERE)
    assert (request.key(HERE) == joined.key(HERE)) == (request.messages == joined.messages)
