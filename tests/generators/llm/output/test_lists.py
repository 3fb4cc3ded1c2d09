"""Lists in answers: entries are read one by one where the whole does not fit, and a bad one costs itself alone."""

import json
import time
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.steps import run_step
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.llm.output.structured import TOLERATED_DEFECTS
from tests.example_counts import examples


class Edit(BaseModel):
    """An entry."""

    kind: Literal["swap", "add"]
    caption: str


class Edits(BaseModel):
    """The list."""

    edits: list[Edit]


LIST = ListShape(Edits, Edit)
REQUEST = Request((Message("system", "You write captions for the pictures of others."), Message("user", "a dog")), "m")
ONE, TWO = {"kind": "swap", "caption": "A cat."}, {"kind": "add", "caption": "A cow."}
REFUSAL = "I'm sorry, but I can't help with that."


def ask(*said: str, finish_reason: str = "stop") -> Answer[list[ListEntry[Edit]]]:
    """Ask once, with these answers in turn; all of them are used."""
    waiting = list(said)
    [answer] = run_step(
        request_answers([REQUEST], LIST), lambda _: Reply(waiting.pop(0), finish_reason, "", Usage(1, 1), "m")
    )
    assert not waiting
    return answer


def told(answer: Answer[list[ListEntry[Edit]]]) -> list[Any]:
    """Return each entry: the caption of a good one, the reason of a bad one and what it says."""
    return [
        entry.value.caption if entry.value is not None else (entry.error and entry.error.word, entry.fields)
        for entry in answer.value or ()
    ]


def listed(*entries: object) -> str:
    return json.dumps({"edits": entries})


def test_a_list_that_fits_is_its_entries() -> None:
    assert told(ask(listed(ONE, TWO))) == ["A cat.", "A cow."]
    assert told(ask(f"Sure!\n```json\n{listed(ONE, TWO)}\n```")) == ["A cat.", "A cow."]
    assert ask(listed()).value == []


@pytest.mark.parametrize(
    ("bad", "word", "said"),
    [
        ({"kind": "turn", "caption": "A."}, "wrong_value", {"kind": "turn", "caption": "A."}),
        ({"kind": "swap"}, "missing_field", {"kind": "swap"}),
        ({"kind": "swap", "caption": ["A."]}, "wrong_type", {"kind": "swap", "caption": ["A."]}),
        ("that is all", "wrong_type", {}),
        (None, "wrong_type", {}),
        ({"kind": "swap", "caption": REFUSAL}, "refused", {"kind": "swap", "caption": REFUSAL}),
        (
            {"kind": "swap", "caption": "You write captions for the pictures of others."},
            "echoed",
            {"kind": "swap", "caption": "You write captions for the pictures of others."},
        ),
    ],
)
@pytest.mark.parametrize("around", ["{}", "Here it is:\n```\n{}\n```\nAnything else?", "[in a list] {}"])
def test_one_bad_entry_costs_itself_alone(bad: object, word: str, said: object, around: str) -> None:
    """Its siblings are kept, in their order, and the model is not asked once more."""
    assert told(ask(around.replace("{}", listed(ONE, bad, TWO)))) == ["A cat.", (word, said), "A cow."]


@pytest.mark.parametrize(
    "text",
    [
        '[{"kind": "swap", "caption": "A cat."}, 5, {"kind": "add", "caption": "A cow."}]',
        '{"kind": "swap", "caption": "A cat."}\n{"kind": "turn", "caption": ""}\n{"kind": "add", "caption": "A cow."}',
        json.dumps({"answer": [ONE, 5, TWO]}),
        json.dumps({"edits": json.dumps([ONE, 5, TWO])}),
        json.dumps(listed(ONE, 5, TWO)),
    ],
)
def test_a_list_with_a_bad_entry_may_come_in_any_of_its_disguises(text: str) -> None:
    answer = ask(text)
    assert [entry.value.caption for entry in answer.value or () if entry.value] == ["A cat.", "A cow."]
    assert sum(entry.value is None for entry in answer.value or ()) <= 1


def test_an_entry_that_is_no_json_leaves_the_others_whole() -> None:
    """Of the broken one is told what stands before the break."""
    broken = '{"kind": "swap", "caption" "A "big" sign"}'
    text = f'{{"edits": [{json.dumps(ONE)}, {broken}, {json.dumps(TWO)}]}}'
    assert told(ask(text)) == ["A cat.", ("malformed", {"kind": "swap"}), "A cow."]


def test_a_list_that_is_cut_off_keeps_the_entries_before_the_cut() -> None:
    """Nothing is completed: the last entry is told to be truncated, with what was whole of it."""
    text = listed(ONE, TWO)[:-6]
    assert told(ask(text, finish_reason="length")) == ["A cat.", ("truncated", {"kind": "add"})]
    assert told(ask(listed(ONE)[:-2] + ", {", finish_reason="length")) == ["A cat.", ("truncated", {})]
    assert told(ask(text)) == ["A cat.", ("malformed", {"kind": "add"})]  # the server says that the model was done


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (listed({"kind": "turn", "caption": ""}, {"kind": "swap", "caption": 5}), "wrong_type"),
        (listed({"kind": "swap"}), "missing_field"),
        ('{"edits": [{"kind": "swap", "cap', "malformed"),
        (f"{listed(ONE, 5)} or {listed(TWO, 5)}", "wrong_type"),
        ('{"captions": {"turn": "A cat."}}', "missing_field"),
        ("", "empty_answer"),
    ],
)
def test_an_answer_without_one_list_that_has_a_good_entry_is_mended_or_none(said: str, reason: str) -> None:
    """The model is told once; the second answer counts."""
    assert told(ask(said, listed(ONE))) == ["A cat."]
    assert (ask(said, said).value, ask(said, said).reason) == (None, reason)


def test_a_list_of_nothing_but_refusals_is_refused() -> None:
    answer = ask(listed({"kind": "swap", "caption": REFUSAL}))
    assert (answer.value, answer.reason) == (None, "refused")


@given(
    said=st.text(max_size=200)
    | st.text("{}[]\"'`:,.\n Aa1-*#<>/|\\", max_size=120)
    | st.builds(lambda at: listed(ONE, TWO, 5)[:at] + "}" + listed(ONE, TWO)[at:], st.integers(0, 120)),
    finish_reason=st.sampled_from(["stop", "length", "", "planned"]),
)
@settings(max_examples=examples(300))
def test_no_answer_raises_and_each_gives_entries_or_a_reason(said: str, finish_reason: str) -> None:
    [answer] = run_step(
        request_answers([REQUEST], LIST, repair=False), lambda _: Reply(said, finish_reason, "", Usage(1, 1), "m")
    )
    assert (answer.value is None) == (answer.reason != "")
    assert answer.reason in {"", *OUTPUT_ERROR_CODES}
    assert set(answer.tolerated) <= set(TOLERATED_DEFECTS)
    for entry in answer.value or ():
        assert (entry.value is None) == (entry.error is not None)


@pytest.mark.parametrize(
    "said",
    [
        '{"edits": [' + '{"kind": 5}, ' * 8_000 + json.dumps(ONE) + "]}",
        '{"edits": [' + '{"kind": "a", ' * 20_000,
        "{" * 200_000,
        '{"a":' * 60 + "x" + '{"a": "b", ' * 30_000,
        listed(ONE)[:-2] + " " * 500_000 + "{",
    ],
    ids=["bad ones", "broken ones", "brackets", "levels", "blanks"],
)
def test_no_list_takes_long(said: str) -> None:
    began = time.process_time()
    run_step(request_answers([REQUEST], LIST, repair=False), lambda _: Reply(said, "length", "", Usage(1, 1), "m"))
    assert time.process_time() - began < 2
