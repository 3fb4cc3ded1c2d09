"""Rationales from a model and from existing outputs: reasons of rejection, and votes of samples."""

from collections import Counter
from collections.abc import Callable

import pytest

from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import RequestOutcome, run_step
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.rationales.generator import (
    JudgedExample,
    RationaleGenerator,
    RationaleSettings,
    assign_split,
)
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.rationales.tasks import TaskRow

MATH, NLI = open_task("math"), open_task("nli")
SEVEN = MATH.item({"problem": "Tom has 3 eggs and gets 4. How many has he?", "answer": 7})
GOOD = "He has 3 + 4 = 7 eggs. So the answer is 7."


def reply(text: str, finish: str = "stop", refusal: str = "") -> Reply:
    return Reply(text, finish, refusal, Usage(10, 10), "m", key="f" * 32)


def maker(**settings: object) -> RationaleGenerator:
    given = RationaleSettings(**settings)  # type: ignore[arg-type]
    return RationaleGenerator(MATH, given, MATH.build_prompt(PromptBook(), label_given=given.label_given), "m")


def run(item: TaskRow, answer: Callable[[Request], RequestOutcome], **settings: object) -> JudgedExample:
    return run_step(maker(**settings).ask(item), answer)


def test_a_good_answer_is_kept_with_its_origin() -> None:
    judged = run(SEVEN, lambda _: reply(GOOD))
    example = judged.example
    assert (example.status, example.label, example.label_source) == ("kept", "7", "gold")
    assert example.rationale == "He has 3 + 4 = 7 eggs."
    assert (example.origin.model, example.origin.request) == ("m", "f" * 32)
    assert example.origin.prompt.startswith("rationale-math@")
    assert (judged.parsed, judged.correct, judged.consistency) == (True, True, "agrees")


@pytest.mark.parametrize(
    "text",
    [
        f"{GOOD}\n\nProblem: There are 9 cows.\nSo the answer is 9.",
        f"Sure! Here is the answer:\n{GOOD}",
        f"```\n{GOOD}\n```",
        GOOD.replace("So the", "so the"),
    ],
)
def test_trailing_text_and_other_formats_give_the_same_row(text: str) -> None:
    assert run(SEVEN, lambda _: reply(text)).example.rationale == "He has 3 + 4 = 7 eggs."


@pytest.mark.parametrize(
    ("answer", "reason", "parsed"),
    [
        (reply("He has 3 + 5 = 8 eggs. So the answer is 8."), "wrong_label", True),
        (reply("He has 3 + 4 = 8 eggs, or 7. So the answer is 7."), "inconsistent", True),
        (reply("He has seven eggs, I think."), "no_answer", False),
        (reply("He has some. So the answer is some + 4."), "unreadable_label", False),
        (reply("So the answer is 7."), "no_rationale", True),
        (reply("Perhaps the answer is 6. So the answer is 7."), "several_answers", False),
        (reply("I'm sorry, but I can't help with that."), "refused", False),
        (reply("", refusal="No."), "refused", False),
        (reply("He has 3 +", "length"), "truncated", False),
        (reply(""), "empty_answer", False),
        (RequestError("timeout"), "timeout", False),
    ],
)
def test_every_other_answer_is_rejected_with_its_reason(answer: RequestOutcome, reason: str, parsed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    judged = run(SEVEN, lambda _: answer)
    assert (judged.example.status, judged.example.reason, judged.parsed) == ("rejected", reason, parsed)


def test_an_answer_truncated_in_an_invented_question_is_complete() -> None:
    said = "He has 3 + 4 = 7 eggs. So the answer is 7. He might also"
    assert run(SEVEN, lambda _: reply(said, "length")).example.status == "kept"
    assert (
        run(SEVEN, lambda _: reply("He has 3 + 4 = 7 eggs. So the answer is 7.", "length")).example.reason
        == "truncated"
    )


def test_a_wrong_label_is_rejected_or_replaced_by_the_gold_label() -> None:
    wrong = reply("He has 3 + 5 = 8 eggs. So the answer is 8.")
    apart = run(SEVEN, lambda _: wrong).example
    assert (apart.label, apart.label_source, apart.status) == ("8", "model", "rejected")
    kept = run(SEVEN, lambda _: wrong, wrong_labels="keep").example
    assert (kept.label, kept.label_source, kept.status) == ("7", "gold", "kept")


def test_without_a_gold_label_the_label_of_the_model_is_used() -> None:
    judged = run(MATH.item({"problem": "Tom has 3 eggs and gets 4."}), lambda _: reply(GOOD))
    assert (judged.example.label, judged.example.label_source, judged.correct) == ("7", "model", None)


def test_an_invalid_answer_is_requested_once_more() -> None:
    requests: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        requests.append(request)
        return reply(GOOD if len(requests) > 1 else "He has seven eggs.")

    assert run(SEVEN, answer).example.status == "kept"
    assert 'does not end in "So the answer is X."' in requests[1].messages[-1].text


def test_a_given_label_is_sent_to_the_model_and_must_be_returned() -> None:
    requests: list[Request] = []

    def answer(request: Request) -> RequestOutcome:
        requests.append(request)
        return reply("He has 3 + 5 = 8 eggs. So the answer is 8.")

    judged = run(SEVEN, answer, label_given=True)
    assert 'Right answer: "7"' in requests[0].messages[-1].text
    assert "not the right answer" in requests[1].messages[-1].text
    assert judged.example.reason == "wrong_label"
    requests.clear()
    run(SEVEN, answer)
    assert "Right answer" not in requests[0].messages[-1].text
    assert len(requests) == 1  # a wrong label is no flaw of form: it is not asked for again


@pytest.mark.parametrize(
    ("said", "reason", "rationale", "agreement"),
    [
        (["It is 6. So the answer is 6.", GOOD, "So 3 + 4. So the answer is 3 + 4."], "", "He has 3 + 4 = 7 eggs.", 2 / 3),
        (["It is 3 + 4 = 8. So the answer is 7.", GOOD, GOOD], "", "He has 3 + 4 = 7 eggs.", 1),
        (["It is 6. So the answer is 6.", GOOD, "No idea."], "tied_vote", "It is 6.", 1 / 3),
        (["No idea.", "None.", "I pass."], "no_answer", "No idea.", 0),
        (["It is 6. So the answer is 6.", "6 it is. So the answer is 6.", GOOD], "wrong_label", "It is 6.", 2 / 3),
    ],
)  # fmt: skip
def test_samples_vote_and_the_first_sound_rationale_of_the_winner_counts(
    said: list[str], reason: str, rationale: str, agreement: float
) -> None:
    samples: list[int] = []

    def answer(request: Request) -> RequestOutcome:
        samples.append(request.sample)
        return reply(said[request.sample - 3])

    judged = run_step(maker(samples=3).ask(SEVEN, attempt=1), answer)
    assert (judged.example.reason, judged.example.rationale) == (reason, rationale)
    assert judged.agreement == pytest.approx(agreement)
    assert samples[:3] == [3, 4, 5]
    assert maker().judge(SEVEN, said).example.reason == reason


def test_the_expected_answer_of_a_plan_has_a_rationale_and_a_label() -> None:
    for name in ("nli", "math", "mcqa", "itm"):
        task = open_task(name)
        made = RationaleGenerator(task, RationaleSettings(), task.build_prompt(PromptBook(), label_given=False), "m")
        row = {"premise": "A.", "hypothesis": "B.", "problem": "C.", "question": "D?", "choices": ["e", "f"], "known": ["G."], "caption": "H."}  # fmt: skip
        [request] = made.requests(task.item(row), "", 0)
        thought = made.read(task.item(row), request.expects)
        assert thought.rationale
        assert thought.reason in {"", "unreadable_label"}, "a choice of the demonstration is not a choice of this row"


def test_splits_hold_a_tenth_go_by_the_key_and_never_share_an_input() -> None:
    settings = RationaleSettings()
    rows = [NLI.item({"premise": f"Dog {number}.", "hypothesis": "It runs."}) for number in range(5000)]
    counts = Counter(assign_split(item, settings) for item in rows)
    assert 400 < counts["validation"] < 600
    assert assign_split(rows[7], settings) == assign_split(
        NLI.item({"premise": "Dog 7.", "hypothesis": "It runs.", "label": 1}), settings
    )
    alike = [TaskRow({}, f"caption {number}", key="a" * 32) for number in range(50)]
    assert len({assign_split(item, settings) for item in alike}) == 1
    assert {assign_split(item, RationaleSettings(validation=0)) for item in rows[:500]} == {"train"}


def test_equal_rows_have_different_ids_that_are_reproducible() -> None:
    first, again, second = (maker().judge(SEVEN, [GOOD], ordinal=n).example for n in (0, 0, 1))
    assert first == again
    assert first.id != second.id
