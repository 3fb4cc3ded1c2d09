"""Accepted forms of an answer: whatever a model wraps a good answer in, the same texts are read."""

import json
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pairwright.generators.conversations.llm_generator import WrittenConversation, WrittenTurn
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.steps import run_step
from pairwright.generators.llm.output.accepted_forms import ACCEPTED_FORMS, SYNONYMS
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.llm.output.structured import TOLERATED_DEFECTS
from pairwright.generators.llm_edits.listed_answers import NEGATIVES, Negative
from pairwright.generators.llm_edits.requests import Rewritten
from pairwright.generators.llm_edits.sugarcrepe_workflow import Concepts
from tests.example_counts import examples

REQUEST = Request((Message("user", "a dog"),), "m")


class Edit(BaseModel):
    """An entry whose type has another name, and words beside its text."""

    kind: Literal["swap_words", "add_word"]
    old: str = Field("", alias="from")
    caption: str


class Edits(BaseModel):
    """The list."""

    edits: list[Edit]


def reply(text: str) -> Reply:
    return Reply(text, "stop", "", Usage(1, 1), "m")


def negatives(*said: str) -> Answer[list[ListEntry[Negative]]]:
    """Return what is read of these answers, all of which are used."""
    waiting = list(said)
    [answer] = run_step(request_answers([REQUEST], NEGATIVES), lambda _: reply(waiting.pop(0)))
    assert not waiting
    return answer


def texts(answer: Answer[list[ListEntry[Negative]]]) -> list[tuple[str, str]]:
    return [(entry.value.type, entry.value.caption) for entry in answer.value or () if entry.value is not None]


Pairs = Sequence[tuple[str, str]]


def entries(pairs: Pairs, text: str = "caption") -> list[dict[str, str]]:
    return [{"type": kind, "from": "x", "to": "y", text: caption} for kind, caption in pairs]


def numbered(pairs: Pairs, line: str) -> str:
    return "\n".join(line.format(at, kind, caption) for at, (kind, caption) in enumerate(pairs, 1))


FORMS_OF_A_LIST: dict[str, Callable[[Pairs], str]] = {
    "as asked": lambda pairs: json.dumps({"negatives": entries(pairs)}),
    "another name of the text": lambda pairs: json.dumps({"negatives": entries(pairs, "new_caption")}),
    "the source beside it": lambda pairs: json.dumps(
        {"negatives": [{"original_caption": "a dog", **each} for each in entries(pairs, "Negative Caption")]}
    ),
    "the source under the name": lambda pairs: json.dumps(
        {"negatives": [{"caption": "a dog", **each} for each in entries(pairs, "edited_caption")]}
    ),
    "bare list": lambda pairs: json.dumps(entries(pairs)),
    "keyed texts": lambda pairs: json.dumps(dict(pairs)),
    "keyed objects": lambda pairs: json.dumps({kind: {"caption": text} for kind, text in pairs}),
    "keyed in other spelling": lambda pairs: json.dumps({kind.upper().replace("-", "_"): text for kind, text in pairs}),
    "keyed in its list": lambda pairs: json.dumps({"negatives": dict(pairs)}),
    "keyed in something": lambda pairs: json.dumps({"result": {kind: {"new_caption": text} for kind, text in pairs}}),
    "keyed one by one": lambda pairs: json.dumps({"negatives": [{kind: text} for kind, text in pairs]}),
    "as text": lambda pairs: json.dumps({"negatives": json.dumps(entries(pairs))}),
    "a line each": lambda pairs: "\n".join(map(json.dumps, entries(pairs))),
    "numbered": lambda pairs: numbered(pairs, "{}. {}: {}"),
    "numbered, bold, quoted": lambda pairs: numbered(pairs, '{}) **{}** (x -> y): "{}"'),
    "numbered, text below": lambda pairs: numbered(pairs, "{}. **{}**\n   {}"),
    "bullets": lambda pairs: numbered(pairs, "- {1} - {2}"),
    "lines of names": lambda pairs: numbered(pairs, "{}.\nType: {}\nFrom: x\nTo: y\nCaption: {}\n"),
    "headings": lambda pairs: numbered(pairs, "### {}. {}\n**Caption:** {}\n"),
}
AROUND: dict[str, Callable[[str], str]] = {
    "nothing": str,
    "fence": "```json\n{}\n```".replace("{}", "%s").__mod__,
    "prose": "Sure! Here are the captions:\n\n%s\n\nI hope that helps".__mod__,
    "tags": "<think>Maybe {}? No.</think>\n%s".__mod__,
    "harmony": (
        "<|channel|>analysis<|message|>The user wants JSON, such as {} or []. Let me think.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>%s<|return|>"
    ).__mod__,
    "harmony with a constraint": "<|channel|>final <|constrain|>json<|message|>%s".__mod__,
    "harmony's call of a function": (
        "<|channel|>analysis<|message|>So {} it is.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.answer <|constrain|>json<|message|>%s<|call|>"
    ).__mod__,
    "harmony without marks": "analysisWe need JSON, such as {}.assistantfinal%s".__mod__,
}
WORDS = st.sampled_from(["a", "red dog", "it's", '"Stop"', "(blurry)", "3", "sits:", "on - top", "of", "the", "end."])
CAPTIONS = st.lists(WORDS, min_size=2, max_size=8).map(lambda words: f"A cat {' '.join(words)} here.")


@pytest.mark.parametrize("form", FORMS_OF_A_LIST)
@pytest.mark.parametrize("around", AROUND)
@given(
    pairs=st.lists(st.tuples(st.sampled_from(BENCHMARK_TYPES), CAPTIONS), min_size=2, unique_by=lambda pair: pair[0])
)
@settings(max_examples=examples(20, fewest=4), deadline=None)
def test_a_list_in_any_form_and_wrapping_gives_the_same_texts(form: str, around: str, pairs: Pairs) -> None:
    answer = negatives(AROUND[around](FORMS_OF_A_LIST[form](pairs)))
    assert texts(answer) == list(pairs)
    assert set(answer.tolerated) <= set(TOLERATED_DEFECTS)


@pytest.mark.parametrize("form", [name for name in FORMS_OF_A_LIST if name.startswith(("as asked", "keyed", "bare"))])
@pytest.mark.parametrize(
    "between", ["Wait, the second one is true of the picture. Corrected:", "Hmm, that is wrong.", "Final answer:"]
)
def test_an_answer_that_the_model_corrects_itself_is_the_last_one(form: str, between: str) -> None:
    first = [("swap-object", "A dog."), ("add-object", "A cat.")]
    last = [("swap-object", "A cow."), ("add-object", "A hen.")]
    said = f"{FORMS_OF_A_LIST[form](first)}\n\n{between}\n```json\n{FORMS_OF_A_LIST[form](last)}\n```"
    answer = negatives(said)
    assert texts(answer) == last
    assert "corrected" in answer.tolerated


@pytest.mark.parametrize("between", ["or", "\n", "Another option:", "Alternatively, as a correct version:"])
def test_two_answers_of_which_none_is_taken_back_are_several(between: str) -> None:
    one, other = (json.dumps({"negatives": entries([("swap-object", text)])}) for text in ("A dog.", "A cat."))
    said = f"{one} {between} {other}"
    assert negatives(said, said).reason == "several_answers"


def rewritten(*said: str) -> Answer[Rewritten]:
    waiting = list(said)
    [answer] = run_step(request_answers([REQUEST], Rewritten), lambda _: reply(waiting.pop(0)))
    return answer


@pytest.mark.parametrize(
    "said",
    [
        '{"possible": true, "from": "dog", "to": "cat", "new_caption": "A cat sits."}',
        '{"possible": true, "old": "dog", "new": "cat", "Caption": "A cat sits."}',
        '{"isPossible": true, "newCaption": "A cat sits."}',
        '{"possible": true, "from": "dog", "to": "cat", "text": "A cat sits."}',
        '{"possible": true, "hard_negative": "A cat sits."}',
        '{"possible": true, "caption": "A dog sits.", "rewritten_caption": "A cat sits."}',
        '[{"result": {"new caption": "A cat sits."}}]',
        "Possible: true\nFrom: dog\nTo: cat\nCaption: A cat sits.",
        "**New caption:** A cat sits.",
        '- possible: yes\n- from: dog\n- to: cat\n- caption: "A cat sits."',
    ],
)
@pytest.mark.parametrize("around", AROUND)
def test_one_edit_in_any_form_and_wrapping_gives_the_same_text(said: str, around: str) -> None:
    answer = rewritten(AROUND[around](said))
    assert answer.value is not None
    assert (answer.value.possible, answer.value.caption) == (True, "A cat sits.")


def test_an_edit_that_is_not_possible_stays_so_in_other_forms() -> None:
    for said in ('{"possible": false, "new_caption": ""}', "Possible: false\nCaption: "):
        answer = rewritten(said)
        assert answer.value is not None
        assert not answer.value.possible


@pytest.mark.parametrize("said", ["1. dog\n2. park bench", "- dog\n- park bench", '["dog", "park bench"]'])
def test_a_list_of_texts_may_be_numbered_lines(said: str) -> None:
    [answer] = run_step(request_answers([REQUEST], Concepts), lambda _: reply(said))
    assert answer.value == Concepts(concepts=["dog", "park bench"])


@pytest.mark.parametrize(
    "said",
    [
        "Q: What sits there?\nA: A dog.\nQ: Where?\nA: On a bench.",
        "1. **Question:** What sits there?\n   **Answer:** A dog.\n2. **Question:** Where?\n   **Answer:** On a bench.",
        "User: What sits there?\nAssistant: A dog.\n\nUser: Where?\nAssistant: On a bench.",
        json.dumps([{"user": "What sits there?", "assistant": "A dog."}, {"q": "Where?", "a": "On a bench."}]),
    ],
)
def test_a_conversation_may_be_lines_of_questions_and_answers(said: str) -> None:
    wanted = [("What sits there?", "A dog."), ("Where?", "On a bench.")]
    [answer] = run_step(request_answers([REQUEST], ListShape(WrittenConversation, WrittenTurn)), lambda _: reply(said))
    assert [(entry.value.question, entry.value.answer) for entry in answer.value or () if entry.value] == wanted


@pytest.mark.parametrize(
    "said",
    [
        '{"SWAP WORDS": "A cat.", "add_word": ["A cow.", "A hen."]}',
        "1. Swap words: A cat.\n2. add_word: A cow.\n3. Add-word: A hen.",
    ],
)
def test_names_and_types_come_from_the_model_of_the_answer(said: str) -> None:
    [answer] = run_step(request_answers([REQUEST], ListShape(Edits, Edit)), lambda _: reply(said))
    read = [(entry.value.kind, entry.value.caption) for entry in answer.value or () if entry.value is not None]
    assert read == [("swap_words", "A cat."), ("add_word", "A cow."), ("add_word", "A hen.")]


def test_a_numbered_list_that_is_cut_off_keeps_the_entries_before_the_cut() -> None:
    said = Reply("1. swap-object: A cat.\n2. add-object: A co", "length", "", Usage(1, 1), "m")
    [answer] = run_step(request_answers([REQUEST], NEGATIVES), lambda _: said)
    assert texts(answer) == [("swap-object", "A cat.")]
    assert [entry.error.word for entry in answer.value or () if entry.error] == ["truncated"]


@pytest.mark.parametrize(
    "said",
    ["A cat sits.", "I changed: the dog", "Note: nothing\nReason: none", "1. A cat.\n2. A dog.", "{broken: ", "a: b"],
)
def test_prose_is_no_answer_in_any_form(said: str) -> None:
    answer = rewritten(said, said)
    assert (answer.value, answer.reason in {"malformed", "missing_field", "truncated"}) == (None, True)


def test_every_form_has_a_name_and_an_example_that_is_json() -> None:
    for form in ACCEPTED_FORMS:
        assert form.tolerated in TOLERATED_DEFECTS
        assert json.loads(form.example.replace(", ...", "").replace("{...}", "{}"))
    assert not any(name in others for name, others in SYNONYMS.items())


@pytest.mark.parametrize("empty", ['{"negatives": []}', "[]"])
def test_an_empty_list_after_a_repair_has_the_reason_that_the_repair_was_for(empty: str) -> None:
    """An empty first answer says that there is nothing to list; one after a repair only avoids the repair."""
    assert negatives(empty).value == []
    answer = negatives("no json", empty)
    assert (answer.value, answer.reason, len(answer.replies)) == (None, "malformed", 2)
    said = iter(["no json", '{"concepts": []}'])
    [concepts] = run_step(request_answers([REQUEST], Concepts), lambda _: reply(next(said)))
    assert (concepts.value, concepts.reason) == (None, "malformed")
