"""Parsing of chain-of-thought output: rationale, label, and text after the answer."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.steps import run_step
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.rationales.arithmetic import evaluate_expression
from pairwright.generators.rationales.chain_of_thought import ParsedRationale, parse_chain_of_thought
from pairwright.generators.rationales.labels import Labels
from pairwright.generators.rationales.task_files import open_task

NLI, MATH, MCQA, ITM = (open_task(name) for name in ("nli", "math", "mcqa", "itm"))


def nli(text: str) -> ParsedRationale:
    return parse_chain_of_thought(text, NLI.labels, fields=tuple(NLI.fields))


def math(text: str, question: str = "") -> ParsedRationale:
    return parse_chain_of_thought(text, MATH.labels, fields=tuple(MATH.fields), question=question)


@pytest.mark.parametrize(
    "marker",
    [
        "So the answer is",
        "so the answer is",
        "The answer is",
        "THE ANSWER IS:",
        "Thus, the correct answer is",
        "Therefore the final answer would be",
    ],
)
def test_the_marker_is_found_in_any_case_and_wording(marker: str) -> None:
    assert nli(f"A dog is an animal. {marker} entailment.") == ParsedRationale(
        "A dog is an animal.", "entailment", "entailment"
    )


@pytest.mark.parametrize(
    "behind",
    [
        "\n\nPremise: A cat sleeps.\nHypothesis: It runs.\nIt sleeps. So the answer is contradiction.",
        "\nQ: There are 15 trees.\nA: 15. The answer is neutral.",
        " Premise: A cat sleeps. So the answer is contradiction.",
        "\n\n### Next\nSo the answer is neutral.",
        "\nHypothesis: It runs. So the answer is neutral.",
        "\nHuman: and now? So the answer is neutral.",
    ],
)
def test_text_after_the_answer_is_cut(behind: str) -> None:
    assert nli(f"A dog is an animal. So the answer is entailment.{behind}") == ParsedRationale(
        "A dog is an animal.", "entailment", "entailment"
    )


def test_an_answer_to_an_invented_question_is_no_answer() -> None:
    found = nli("A dog is an animal.\n\nPremise: A cat sleeps.\nSo the answer is neutral.")
    assert found == ParsedRationale("A dog is an animal.", reason="no_answer")
    assert not found.parsed


def test_a_repeated_question_is_skipped_and_not_taken_for_an_invented_one() -> None:
    said = "Tom has 3 eggs.\nHow many are left?\nA: He eats 2, so 3 - 2 = 1. The answer is (3 - 2)."
    assert math(said, question="Tom has 3 eggs. How many are left?") == ParsedRationale(
        "He eats 2, so 3 - 2 = 1.", "3 - 2", "(3 - 2)"
    )
    assert math(said, question="Eva has 5 pears.").reason == "no_answer"
    fields = "Premise: A dog sleeps.\nHypothesis: It runs.\nIt sleeps. So the answer is contradiction."
    found = parse_chain_of_thought(fields, NLI.labels, fields=tuple(NLI.fields), question="A dog sleeps. It runs.")
    assert found == ParsedRationale("It sleeps.", "contradiction", "contradiction")


def test_the_answer_behind_a_repeated_question_is_neither_cut_nor_requested_again() -> None:
    said = "Tom has 3 eggs and eats 2.\nHow many are left?\nA: 3 - 2 = 1 is left. So the answer is 1.\n\nQ: How many cows?\nA: 9."
    (answer,) = run_step(
        request_answers([Request((Message("user", "?"),), "m")], TextShape("text")),
        lambda _: Reply(said, "stop", "", Usage(1, 1), "m"),
    )
    assert answer.value is not None
    assert answer.value.endswith("So the answer is 1.")
    assert (
        math(answer.value, question="Tom has 3 eggs and eats 2. How many are left?").rationale == "3 - 2 = 1 is left."
    )


def test_a_marker_within_a_question_gives_no_answer() -> None:
    said = "The question asks what the answer is to 15 - 6. 15 - 6 = 9. So the answer is 9."
    assert math(said) == ParsedRationale("The question asks what the answer is to 15 - 6. 15 - 6 = 9.", "9", "9")


def test_a_number_behind_four_hashes_is_an_answer() -> None:
    assert math("Nora has 15 - 6 = 9.\n#### 9") == ParsedRationale("Nora has 15 - 6 = 9.", "9", "9")


def test_of_two_markers_the_one_with_a_label_counts() -> None:
    assert nli("He lived from 1894. The answer is 71. So the answer is entailment.") == ParsedRationale(
        "He lived from 1894. The answer is 71.", "entailment", "entailment"
    )


def test_two_different_answers_are_rejected() -> None:
    assert math("At first the answer is 5. No, 3 + 3 = 6. So the answer is 6.").reason == "several_answers"
    assert math("It is 5 + 1. The answer is 5 + 1. So the answer is 6.").label == "5 + 1"


def test_an_output_whose_label_cannot_be_read_is_not_parsed() -> None:
    found = math("He had some and lost 9. The answer is (some - 9).")
    assert found == ParsedRationale("He had some and lost 9.", raw_label="(some - 9)", reason="unreadable_label")
    assert not found.parsed


@pytest.mark.parametrize(
    "behind",
    [
        "either (c) or (d)",
        "(c) or (d).",
        "C and D",
        "(d) yard or (e) garage",
        "(d) the yard of a house or (e)",
        "(b) or possibly (e)",
        "oven or the refrigerator",
        "**refrigerator** / **oven**",
        "(b), (c)",
        "option (c), option (d) or option (e)",
    ],
)
@pytest.mark.parametrize("marker", ["So the answer is ", "\nAnswer: "])
def test_alternatives_behind_one_marker_are_several_answers(marker: str, behind: str) -> None:
    choices = ["cupboard", "refrigerator", "oven", "front yard", "garage"]
    found = parse_chain_of_thought(f"It is cold there. {marker}{behind}", MCQA.labels, choices=choices)
    assert (found.reason, found.label, found.parsed) == ("several_answers", "", False)


@pytest.mark.parametrize(
    ("behind", "label"),
    [
        ("(b) refrigerator, not the oven", "refrigerator"),
        ("(b), as (c) and (d) are too warm", "refrigerator"),
        ("(b) and not (c)", "refrigerator"),
        ("(b) refrigerator because it is cold and the oven is hot", "refrigerator"),
        ("(f) oven and stove", "oven and stove"),
        ("oven and stove", "oven and stove"),
        ("(c) oven or (c)", "oven"),
    ],
)
def test_a_choice_with_another_that_is_no_alternative_is_one_answer(behind: str, label: str) -> None:
    choices = ["cupboard", "refrigerator", "oven", "front yard", "stove", "oven and stove"]
    found = parse_chain_of_thought(f"It is cold there. So the answer is {behind}.", MCQA.labels, choices=choices)
    assert (found.label, found.reason, found.parsed) == (label, "", True)


def test_alternatives_may_be_narrowed_down_to_one_answer_but_not_come_last() -> None:
    choices = ["cupboard", "refrigerator", "oven"]
    listed, single = "So the answer is (a) or (b).", "So the answer is (a)."
    assert (
        parse_chain_of_thought(f"It is cold. {listed} Food is there. {single}", MCQA.labels, choices=choices).label
        == "cupboard"
    )
    found = parse_chain_of_thought(f"It is cold. {single} Food is there. {listed}", MCQA.labels, choices=choices)
    assert (found.reason, found.label) == ("several_answers", "")


@given(st.data())
def test_any_two_answers_joined_as_alternatives_are_several(data: st.DataObject) -> None:
    task = data.draw(st.sampled_from([NLI, MCQA, MATH, ITM]))
    choices = ["cupboard", "refrigerator", "front yard"] if task is MCQA else []
    said = {
        "number": [str(number) for number in range(1, 40)],
        "choice": [*choices, "(a)", "(b)", "(c)", "B", "C"],
        "set": list(task.labels.words),
    }[task.labels.kind]
    one, other = data.draw(st.lists(st.sampled_from(said), min_size=2, max_size=2))
    joined = data.draw(st.sampled_from(["{} or {}", "either {} or {}", "{} and {}", "{}, {}", "{}, or maybe {}"]))
    found = task.labels.answers(joined.format(one, other), choices)
    wanted = {task.labels.read(each, choices) for each in (one, other)}
    assume(len(wanted) == 2)
    assert {evaluate_expression(each) or each for each in found} == {
        evaluate_expression(each) or each for each in wanted
    }


def test_a_label_alone_is_no_rationale() -> None:
    assert nli("So the answer is neutral.").reason == "no_rationale"


def test_a_marker_within_a_sentence_leaves_the_sentence_before_it() -> None:
    assert math("Since 3 * 4 = 12, the answer is 12 eggs.") == ParsedRationale("Since 3 * 4 = 12.", "12", "12 eggs")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("It is cold there. So the answer is B. oven", ""),
        ("It is cold there. So the answer is (b).", "refrigerator"),
        ("It is cold there. So the answer is: **refrigerator**.", "refrigerator"),
        ("It is cold there.\nAnswer: refrigerator", "refrigerator"),
        ("A: Let's think step by step. It is cold there. The answer is refrigerator!", "refrigerator"),
        ("It is cold there. \\boxed{refrigerator}", "refrigerator"),
    ],
)
def test_answers_in_other_formats_are_read(text: str, label: str) -> None:
    found = parse_chain_of_thought(text, MCQA.labels, choices=["cupboard", "refrigerator", "oven"])
    assert found.label == label
    assert found.rationale == "It is cold there."


def test_what_the_answer_must_be_is_a_part_of_the_rationale() -> None:
    said = "The answer must be a place that is cold. Only one is. So the answer is (b) refrigerator."
    found = parse_chain_of_thought(said, MCQA.labels, choices=["a place", "refrigerator"])
    assert found == ParsedRationale(
        "The answer must be a place that is cold. Only one is.", "refrigerator", "(b) refrigerator"
    )


def test_decimals_do_not_end_a_label() -> None:
    assert math("Half of 7. So the answer is 3.5.").label == "3.5"


words = st.lists(
    st.sampled_from(["dog", "3 + 4 = 7", "because", "premise", "it's", "(so)", "the.", "a,", "is"]), min_size=1
)


@given(words, st.sampled_from(NLI.labels.values), st.sampled_from(["So", "so"]), words)
def test_any_rationale_is_returned_without_the_text_after_its_label(
    before: list[str], label: str, so: str, behind: list[str]
) -> None:
    rationale = f"It {' '.join(before)} dog."
    found = nli(f"{rationale} {so} the answer is {label}.\n\nPremise: {' '.join(behind)}. So the answer is neutral.")
    assert (found.rationale, found.label, found.reason) == (rationale, label, "")


@given(st.text(max_size=200))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    for labels in (NLI.labels, MATH.labels, Labels("text")):
        found = parse_chain_of_thought(text, labels, fields=("premise",), question=text[:50])
        assert "\n" not in found.rationale


@pytest.mark.parametrize("unit", ["so the answer is ", "A: ", "\nA:", "(", "The answer ", "****", "Q: \n", "and so "])
@pytest.mark.parametrize("times", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_long_outputs_are_parsed_in_linear_time(unit: str, times: int) -> None:
    assert parse_chain_of_thought(unit * times, MATH.labels, fields=("problem",), question=unit * 100) is not None


def palm(folder: Path, task: str) -> list[tuple[str, str, str]]:
    """Return outputs, their rows' inputs and right labels of one task."""
    if task == "nli":
        rows = [json.loads(line) for line in (folder / "anli1" / "anli1_valid.json").read_text().splitlines()]
        said = json.loads((folder / "anli1" / "palm" / "valid_CoT_0.json").read_text())
        return [
            (text, f"{row['premise']} {row['hypothesis']}", str(row["label"]))
            for text, row in zip(said, rows, strict=True)
        ]
    rows, said = [], []
    for split, parts in (("train", 2), ("test", 1)):
        rows += [json.loads(line) for line in (folder / "svamp" / f"svamp_{split}.json").read_text().splitlines()]
        for part in range(parts):
            said += json.loads((folder / "svamp" / "palm" / f"{split}_CoT_{part}.json").read_text())
    return [(text, row["input"], row["label"]) for text, row in zip(said, rows, strict=True)]


@pytest.mark.parametrize(("name", "parsed", "correct"), [("nli", 999, 675), ("math", 978, 750)])
def test_recorded_outputs_are_read_wherever_they_hold_an_answer(
    real_data: Path, name: str, parsed: int, correct: int
) -> None:
    task = open_task(name)
    read = [
        (parse_chain_of_thought(text, task.labels, fields=tuple(task.fields), question=row), task.labels.gold(gold))
        for text, row, gold in palm(real_data / "palm_cot", name)
    ]
    assert sum(thought.parsed for thought, _ in read) == parsed
    reasons = Counter(thought.reason for thought, _ in read)
    assert sum(reasons[each] for each in ("no_answer", "several_answers", "unreadable_label")) == 1000 - parsed
    assert all(thought.parsed == bool(thought.label) for thought, _ in read)
    right = sum(bool(thought.label) and task.labels.same(thought.label, gold) for thought, gold in read)
    assert right == correct
    assert not any(re.search(r"\b(?:Q|A|Premise|Hypothesis):", thought.rationale) for thought, _ in read)


def test_a_calculation_with_a_word_has_the_number_that_the_rationale_states() -> None:
    found = parse_chain_of_thought("She spent 8. So some - 8 = 6. So the answer is (some - 8).", MATH.labels)
    assert (found.label, found.reason) == ("6", "")
    found = parse_chain_of_thought("She spent 8. So the answer is (some - 8). So some - 8 = 6.", MATH.labels)
    assert found.reason == "unreadable_label", "text after the answer is not part of the rationale"


def test_two_numbers_behind_one_marker_are_several_answers() -> None:
    assert (
        parse_chain_of_thought("They share. So the answer is (8 / 4) and (6 / 4).", MATH.labels).reason
        == "several_answers"
    )
