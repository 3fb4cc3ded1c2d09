"""Merging of requests, and splitting of answers by item."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pairwright.generators.llm.client.messages import Image, Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome, run_step
from pairwright.generators.llm.grouping import group_steps, request_merged, split_items
from pairwright.generators.llm.output.answers import PLANNED_FINISH_REASON, request_answers
from pairwright.generators.llm.output.json_schema import build_schema


class Said(BaseModel):
    """What is said of an item."""

    said: str


FIXED = (Message("system", "Repeat the text."), Message("user", "hello"), Message("assistant", '{"said": "hello"}'))


def request_for(text: str, **changes: Any) -> Request:
    made = Request(
        (*FIXED, Message("user", text)), "m", {"temperature": 0, "max_tokens": 50}, build_schema(Said),
        expects='{"said": "x"}',
    )  # fmt: skip
    return replace(made, **changes)


def items_of(request: Request) -> list[tuple[int, str]]:
    """Return id and text of each item of a merged request."""
    return split_items(request.messages[-1].text)


def reply(text: str, **changes: Any) -> Reply:
    return replace(Reply(text, "stop", "", Usage(400, 80, 40), "m", "key"), **changes)


def repeats(request: Request) -> Reply:
    """Answer as a model would that does everything right."""
    items = items_of(request)
    if not items:
        return reply(json.dumps({"said": request.messages[-1].text}))
    return reply(json.dumps({"answers": [{"id": own, "said": text} for own, text in items]}))


def ask(text: str) -> LLMStep[str]:
    [answer] = yield from request_answers([request_for(text)], Said)
    return answer.value.said if answer.value is not None else answer.reason


def run(texts: list[str], model: Callable[[Request], RequestOutcome] = repeats) -> tuple[list[str], list[Request]]:
    """Return what the steps of a group return, and all requests."""
    asked: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        asked.append(request)
        return model(request)

    return list(run_step(group_steps([ask(text) for text in texts]), answer)), asked


@given(st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), max_size=12))
def test_a_group_returns_what_its_members_return_alone(texts: list[str]) -> None:
    found, asked = run(texts)
    assert found == [run([text])[0][0] for text in texts]
    assert len(asked) == bool(texts)


def test_a_merged_request_has_the_instructions_once_and_each_item_under_its_own_id() -> None:
    _, [merged] = run(["one", "two", "three"])
    system, shown, answered, last = merged.messages
    assert system.text.startswith(FIXED[0].text)
    assert items_of(merged) == [
        (own, text) for (own, _), text in zip(items_of(merged), ("one", "two", "three"), strict=True)
    ]
    assert len({own for own, _ in items_of(merged)}) == 3
    [demonstration] = json.loads(answered.text)["answers"]
    assert shown.text == f"Item {demonstration['id']}\nhello"
    assert demonstration["said"] == "hello"
    assert merged.parameters == {"temperature": 0, "max_tokens": 150}
    assert merged.schema is not None
    assert list(merged.schema.schema["properties"]["answers"]["items"]["properties"]) == ["id", "said"]
    assert last.role == "user"


def test_the_fixed_part_is_the_same_for_every_group() -> None:
    """So a server's prefix cache holds it."""
    _, [first] = run(["one", "two", "three"])
    _, [second] = run(["four", "five"])
    assert first.messages[:-1] == second.messages[:-1]


def test_equal_requests_are_one_item() -> None:
    found, [merged] = run(["one", "two", "one"])
    assert found == ["one", "two", "one"]
    assert [text for _, text in items_of(merged)] == ["one", "two"]


def damaged(change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Request], Reply]:
    """Return a model that damages the entries of merged answers."""

    def model(request: Request) -> Reply:
        given_ = repeats(request)
        if not items_of(request):
            return given_
        entries = json.loads(given_.text)["answers"]
        change(entries)
        return replace(given_, text=json.dumps({"answers": entries}))

    return model


@pytest.mark.parametrize(
    ("change", "alone"),
    [
        (lambda entries: entries.pop(1), ["two"]),
        (lambda entries: entries[1].update(id=7), ["two"]),
        (lambda entries: entries[1].pop("id"), ["two"]),
        (lambda entries: entries[1].update(id=entries[0]["id"]), ["one", "two"]),
        (lambda entries: entries.insert(0, dict(entries[2])), ["three"]),
        (lambda entries: entries.append({"id": 5, "said": "more"}), []),
        (lambda entries: entries.reverse(), []),
        (lambda entries: entries[1].update(id=str(entries[1]["id"])), []),
        (lambda entries: entries.clear(), ["one", "two", "three"]),
    ],
    ids=["missing", "unknown id", "no id", "repeated id", "twice", "one more", "other order", "id as text", "none"],
)
def test_an_item_without_an_entry_of_its_own_is_requested_alone(
    change: Callable[[list[dict[str, Any]]], object], alone: list[str]
) -> None:
    found, asked = run(["one", "two", "three"], damaged(change))
    assert found == ["one", "two", "three"]
    assert [request.messages[-1].text for request in asked[1:]] == alone
    assert all(request.messages[:-1] == FIXED for request in asked[1:])


@pytest.mark.parametrize(
    "form",
    [
        lambda entries: {"answers": [{**each, "id": float(each["id"])} for each in entries]},
        lambda entries: {"answers": [{**each, "id": f"Item {each['id']}"} for each in entries]},
        lambda entries: {"answers": {str(each.pop("id")): each for each in entries}},
        lambda entries: {str(each.pop("id")): each for each in entries},
        lambda entries: {"note": "done", "answers": entries},
        lambda entries: {"result": {"answers": entries}},
        lambda entries: entries,
    ],
    ids=["floats", "labels", "by id", "by id alone", "beside a note", "in an object", "a list alone"],
)
def test_entries_are_found_in_other_layouts(form: Callable[[list[dict[str, Any]]], object]) -> None:
    """Without a schema, models write them in their own way; each would be billed twice if it was not read."""

    def model(request: Request) -> Reply:
        answer = repeats(request)
        return replace(answer, text=json.dumps(form(json.loads(answer.text)["answers"])))

    found, asked = run(["one", "two", "three"], model)
    assert found == ["one", "two", "three"]
    assert len(asked) == 1


def test_items_before_a_cut_are_used_and_the_others_requested_alone() -> None:
    def cut(request: Request) -> Reply:
        whole = repeats(request)
        if not items_of(request):
            return whole
        return replace(whole, text=whole.text[: whole.text.index("two")], finish_reason="length")

    found, asked = run(["one", "two", "three"], cut)
    assert found == ["one", "two", "three"]
    assert [request.messages[-1].text for request in asked[1:]] == ["two", "three"]


@pytest.mark.parametrize(
    "answer", [reply("", refusal="I cannot."), reply("no json"), RequestError("content_filter", "400"), reply("{}")]
)
def test_an_answer_without_entries_is_replaced_by_one_for_each_item(answer: RequestOutcome) -> None:
    """One caption that a filter blocks does not block the others of its group."""
    found, asked = run(["one", "two"], lambda request: answer if items_of(request) else repeats(request))
    assert found == ["one", "two"]
    assert len(asked) == 3


@pytest.mark.parametrize("code", ["server_error", "over_budget"])
def test_an_error_of_the_server_or_the_budget_is_that_of_every_item(code: str) -> None:
    found, asked = run(["one", "two"], lambda _: RequestError(code, "down"))
    assert found == [code, code]
    assert len(asked) == 1


def test_an_invalid_entry_is_repaired_alone() -> None:
    """The repair goes on from the request about this item."""
    found, asked = run(["one", "two"], damaged(lambda entries: entries[1].pop("said")))
    assert found[0] == "one"
    assert [len(request.messages) for request in asked] == [4, 6]
    assert asked[1].messages[3].text == "two"


def test_requests_that_differ_in_more_than_the_item_are_not_merged() -> None:
    image = Image("0" * 64, "edge=8", lambda: "data:")
    others = [
        request_for("two", sample=1),
        request_for("three", parameters={"temperature": 1}),
        request_for("four", model="other"),
        request_for("five", messages=(*FIXED, Message("user", "five", (image,)))),
        request_for("six", messages=(*FIXED, Message("user", "six", (image,)))),
        request_for("seven", schema=None),
        request_for("eight", schema=None),
        request_for("nine", repair="this"),
    ]
    step = request_merged([request_for("one"), *others])
    assert next(step) == [request_for("one"), *others]


def test_the_tokens_of_an_answer_are_shared_by_its_items_and_its_key_is_that_of_the_request() -> None:
    step = request_merged([request_for(text) for text in ("one", "two")])
    [merged] = next(step)
    with pytest.raises(StopIteration) as end:
        step.send([repeats(merged)])
    outcomes = end.value.value
    assert [each.usage for each in outcomes] == [Usage(200, 40, 20)] * 2
    assert {each.key for each in outcomes} == {"key"}


def test_a_plan_reads_the_expected_answer_of_each_item() -> None:
    """It counts one request, and one about each item for the case that an answer is invalid."""
    planned = run(["one", "two"], lambda request: reply(request.expects, finish_reason=PLANNED_FINISH_REASON))
    found, [merged] = planned
    assert found == ["x", "x"]
    assert merged.alone == (
        replace(request_for("one"), repair="possible"), replace(request_for("two"), repair="possible")
    )  # fmt: skip


def test_entries_under_each_others_ids_are_noticed_and_requested_alone() -> None:
    texts = ["A brown dog sleeps on a bed.", "Two red buses wait at a corner.", "A man flies a kite on a beach."]

    def exchange(entries: list[dict[str, Any]]) -> None:
        entries[0]["id"], entries[1]["id"] = entries[1]["id"], entries[0]["id"]

    found, asked = run(texts, damaged(exchange))
    assert found == texts
    assert [request.messages[-1].text for request in asked[1:]] == texts[:2]


@pytest.mark.parametrize("edited", ["Two brown dogs sleep on a bed.", "A brown dog sleeps under a red bus."])
def test_an_edit_of_an_item_is_not_taken_for_one_of_another(edited: str) -> None:
    texts = ["A brown dog sleeps on a bed.", "Two brown dogs run on a beach.", "A red bus waits at a corner."]
    found, asked = run(texts, damaged(lambda entries: entries[0].update(said=edited)))
    assert found == [edited, *texts[1:]]
    assert len(asked) == 1
