"""Judging answers: what is read of a judgement, and what both orders come to."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import InputError
from pairwright.filters.metrics.answer_judging import (
    AnswerJudge,
    AnswerJudgement,
    ImageQuestion,
    combine_judgements,
    parse_scores,
    read_answers,
    read_questions,
    relative_score,
)
from pairwright.filters.metrics.confidence_intervals import ratio_interval
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import run_step
from pairwright.generators.prompts.book import PromptBook

QUESTION = ImageQuestion("1", "a.jpg", "What is it?", "a cat", "A cat sleeps.", "detail")


def reply(text: str) -> Reply:
    return Reply(text, "stop", "", Usage(1, 1), "m", "")


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("7 9\nBoth are good.", (7, 9)),
        ("8.5, 10", (8.5, 10)),
        ("<think>3 3</think>\n\n4 6\n", (4, 6)),
        ("Scores: 5 8", (5, 8)),
        ("7/10 9/10", (7, 9)),
        ("Assistant 1 is better.\n7 9", None),
        ("0 5", None),
        ("7", None),
        ("11 3", None),
        ("7 8 9", None),
        ("", None),
    ],
)
def test_scores_are_the_two_numbers_of_the_first_line_or_none(text: str, scores: tuple[float, float] | None) -> None:
    assert parse_scores(text) == scores


def test_each_answer_has_the_mean_of_its_scores_in_both_orders() -> None:
    judged = combine_judgements(QUESTION, [reply("6 8\nso"), reply("9 5\nso")])
    assert (judged.model, judged.reference, judged.inconsistent) == (5.5, 8.5, False)
    first_wins = combine_judgements(QUESTION, [reply("8 6"), reply("7 6")])
    assert first_wins.inconsistent
    assert (first_wins.model, first_wins.reference) == (7, 6.5)


def test_an_answer_without_two_judgements_has_no_score() -> None:
    lost = combine_judgements(QUESTION, [reply("8 6"), reply("I cannot say")])
    assert (lost.model, lost.reason, lost.unparsed) == (None, "unparsed", 1)
    failed = combine_judgements(QUESTION, [reply("no"), RequestError("timeout", "no")])
    assert (failed.model, failed.reason, failed.unparsed) == (None, "timeout", 1)


def test_the_relative_score_is_the_ratio_of_sums_over_scored_questions() -> None:
    rows = [
        AnswerJudgement(QUESTION, 4, 8),
        AnswerJudgement(QUESTION, 9, 9, inconsistent=True),
        AnswerJudgement(QUESTION, None, None, 2, "unparsed"),
    ]
    found = relative_score(rows)
    assert found.model.sum() / found.reference.sum() == 13 / 17
    assert (found.inconsistent, found.unscored, found.unparsed) == (1, {"unparsed": 1}, 2)


def test_the_interval_of_a_ratio_has_its_nominal_coverage() -> None:
    rng, inside = np.random.default_rng(0), 0
    for _ in range(400):
        below = rng.uniform(5, 9, size=90)
        above = 0.8 * below + rng.normal(scale=1.0, size=90)
        low, high = ratio_interval(above, below)
        inside += low <= 0.8 <= high
    assert 0.92 <= inside / 400 <= 0.98


def test_the_judge_gets_both_orders_and_the_context() -> None:
    judge = AnswerJudge(PromptBook(), "m", [QUESTION], {"one": ["a dog"], "two": ["a cat"]})
    assert len({pair.key for pair in judge.pairs}) == 2
    shown: list[str] = []

    def answer(request: Request) -> Reply:
        shown.append(request.messages[-1].text)
        return reply("3 9" if len(shown) == 1 else "9 3")

    (row,) = run_step(judge.annotate(judge.pairs[0], random.Random(0)), answer)
    assert all("A cat sleeps." in text and "What is it?" in text for text in shown)
    first, second = ((text.index("a dog"), text.rindex("a cat")) for text in shown)
    assert first[0] < first[1]
    assert second[0] > second[1]
    subject, judged = judge.judged(row)
    assert (subject, judged.model, judged.reference) == ("one", 3, 9)


def test_column_names_of_llava_bench_are_accepted(tmp_path: Path) -> None:
    rows = [
        {
            "question_id": 1,
            "image": "a.jpg",
            "text": "What?",
            "answer": "It.",
            "caption": ["A cat.", "A mat."],
            "category": "conv",
        },
        {"id": "b", "image": "b.jpg", "question": "Who?", "reference": "He.", "context": "A man."},
    ]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, two = read_questions(path, "images")
    assert one == ImageQuestion("1", "images/a.jpg", "What?", "It.", "A cat.\nA mat.", "conv")
    assert two.type == ""
    answers = tmp_path / "a.jsonl"
    answers.write_text('{"id": "b", "answer": ""}\n{"question_id": 1, "text": "x"}\n')
    assert read_answers(answers, [one, two]) == ["x", ""]
    answers.write_text('{"id": "b", "answer": "y"}\n')
    with pytest.raises(InputError, match="no answer to 1 of 2 questions, the first 1"):
        read_answers(answers, [one, two])
    path.write_text('{"id": "b", "image": "b.jpg"}\n')
    with pytest.raises(InputError, match=r"q.jsonl:1: no question"):
        read_questions(path)
