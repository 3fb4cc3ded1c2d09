"""A language model as a blind scorer: what it is asked, and what its ratings come to."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.filters.scorers.llm import LLMScorer, PrecomputedGaps, pair_for_row
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import RequestOutcome, run_step
from pairwright.generators.prompts.book import PromptBook

ROW = ("a dog runs", "a run dogs")


def replied(text: str) -> Reply:
    return Reply(text, "stop", "", Usage(1, 1), "m")


def asked_about(row: tuple[str, str], first: dict[str, int] | str, second: dict[str, int] | str) -> dict[str, float]:
    """Return the scores of a row whose positive is shown first, then second."""
    scorer = LLMScorer(PromptBook(), "m", [row])
    answers = iter([first, second])

    def answer(request: Request) -> RequestOutcome:
        assert not any(message.images for message in request.messages)
        said = next(answers, "nothing to say")
        return replied(said if isinstance(said, str) else json.dumps(said))

    [found] = run_step(scorer.annotate(pair_for_row(row), random.Random(0)), answer)
    assert (found.status == "kept") == bool(found.scores)
    assert bool(found.reason) == (found.status == "rejected")
    return dict(found.scores)


def test_a_row_is_requested_in_both_orders_without_an_image() -> None:
    shown: list[list[str]] = []

    def answer(request: Request) -> RequestOutcome:
        last = request.messages[-1]
        assert not last.images
        shown.append([json.loads(line.partition(" ")[2]) for line in str(last.text).strip().splitlines()])
        return replied('{"first": 5, "second": 5}')

    run_step(LLMScorer(PromptBook(), "m", [ROW]).annotate(pair_for_row(ROW), random.Random(0)), answer)
    assert shown == [list(ROW), list(reversed(ROW))]


@given(st.integers(1, 10), st.integers(1, 10))
def test_a_model_that_only_prefers_a_position_has_a_gap_of_zero(first: int, second: int) -> None:
    ratings = {"first": first, "second": second}
    assert asked_about(ROW, ratings, ratings) == {"llm": 0.0}


def test_the_gap_is_the_mean_difference_and_reaches_one() -> None:
    assert asked_about(ROW, {"first": 10, "second": 1}, {"first": 1, "second": 10}) == {"llm": 1.0}
    assert asked_about(ROW, {"first": 1, "second": 10}, {"first": 10, "second": 1}) == {"llm": -1.0}
    assert asked_about(ROW, {"first": 10, "second": 1}, {"first": 4, "second": 4}) == {"llm": 0.5}


@pytest.mark.parametrize("said", ["I cannot say.", {"first": 11, "second": 1}, {"first": 3}])
def test_a_row_without_two_valid_answers_has_no_gap(said: dict[str, int] | str) -> None:
    assert asked_about(ROW, {"first": 10, "second": 1}, said) == {}


def test_a_request_without_an_answer_leaves_the_row_without_a_gap() -> None:
    scorer = LLMScorer(PromptBook(), "m", [ROW])
    steps = scorer.annotate(pair_for_row(ROW), random.Random(0))
    [found] = run_step(steps, lambda _: RequestError("timeout", "no answer"))
    assert (found.status, found.reason, dict(found.scores)) == ("rejected", "timeout", {})


def test_precomputed_gaps_are_looked_up_by_texts_and_nan_if_unknown() -> None:
    gaps = PrecomputedGaps({ROW: 0.25}).gaps([ROW[0], "x", ROW[0]], [ROW[1], "y", ROW[1]], ["1", "2", "3"], 0)
    np.testing.assert_array_equal(gaps, [0.25, np.nan, 0.25])
