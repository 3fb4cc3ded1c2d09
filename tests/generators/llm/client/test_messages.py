"""What the records of a chat promise."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from pairwright.generators.llm.client.messages import Image, Message, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_errors import RequestError


def test_requests_and_replies_cannot_be_changed() -> None:
    request = Request((Message("user", "hello"),), "small")
    with pytest.raises(FrozenInstanceError):
        request.model = "large"  # type: ignore[misc]


def test_a_request_with_a_schema_survives_a_process_boundary() -> None:
    schema = Schema("answer", {"type": "object", "properties": {"b": {}, "a": {}}})
    request = Request(
        (Message("system", "be brief"), Message("user", "hello")), "small", {"seed": 1}, schema, 2, "row 9"
    )
    again = pickle.loads(pickle.dumps(request))  # noqa: S301 - our own bytes
    assert again == request
    assert again.key("here") == request.key("here")


def test_a_schema_that_is_not_json_is_refused_when_it_is_made() -> None:
    with pytest.raises(RequestError, match="not JSON"):
        Schema("answer", {"type": object()})


def test_an_image_is_made_into_a_url_only_when_it_is_sent() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("made")
        return "data:image/png;base64,"

    image = Image("00", "edge=8", make)
    Request((Message("user", "see", (image,)),), "small").key("here")
    assert not made
    assert image.data_url() == "data:image/png;base64,"
    assert made


def test_the_raw_body_is_neither_shown_nor_compared() -> None:
    reply = Reply("yes", "stop", "", Usage(3, 1), "small", raw=b"{}")
    assert replace(reply, raw=b"") == reply
    assert "raw" not in repr(reply)
