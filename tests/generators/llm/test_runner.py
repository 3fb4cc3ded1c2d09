"""What the runner promises: every row's result, in order, at a bounded look-ahead; and how a run ends before its end."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, PairwrightError, StorageError
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.runner import (
    GRACE_S,
    BrokenStepError,
    LLMRow,
    LLMRun,
    MostlyFailingError,
    RequestTotals,
    RowResult,
)
from tests.generators.llm.client.virtual_time import run


def request(text: str, sample: int = 0) -> Request:
    return Request((Message("user", text),), "small", sample=sample)


def reply(text: str, *, cached: bool = False) -> Reply:
    return Reply(text, "stop", "", Usage(10, 2, 1), "small", f"key of {text}", cached)


class Server:
    """Answers with the text that it is asked, after as many virtual seconds as it is told."""

    def __init__(
        self, takes: Callable[[str], float] = lambda _: 0.0, answer: Callable[[Request], RequestOutcome] | None = None
    ) -> None:
        self.takes, self.answer = takes, answer or (lambda request: reply(request.messages[0].text))
        self.at_once = self.most = 0
        self.asked: list[str] = []

    async def ask(self, request: Request) -> Reply:
        """Answer."""
        text = request.messages[0].text
        self.asked.append(text)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(self.takes(text))
        finally:
            self.at_once -= 1
        outcome = self.answer(request)
        if isinstance(outcome, RequestError):
            raise outcome
        return outcome


def once(text: str) -> LLMStep[str]:
    [outcome] = yield [request(text)]
    return outcome.text if isinstance(outcome, Reply) else outcome.code


def row(text: str, talk: Callable[[str], LLMStep[Any]] = once) -> LLMRow[Any]:
    return LLMRow(text, lambda _: talk(text))


async def all_of(
    rows: Iterator[LLMRow[Any]], server: Server, into: list[RowResult[Any]], in_flight: int = 4, look_ahead: int = 8192
) -> None:
    started = LLMRun(rows, server, in_flight=in_flight, look_ahead=look_ahead)
    try:
        while not started.over:
            into += await started.ready(1.0, enough=1)
    finally:
        await started.close()
    started.check()


def done_of(rows: Iterator[LLMRow[Any]], server: Server, **options: int) -> list[RowResult[Any]]:
    found: list[RowResult[Any]] = []
    run(all_of(rows, server, found, **options))
    return found


@given(st.lists(st.floats(0, 100), max_size=40), st.integers(1, 9), st.integers(0, 9))
def test_results_come_in_the_order_of_rows_however_long_each_takes(
    takes: list[float], in_flight: int, ahead: int
) -> None:
    server = Server(lambda text: takes[int(text)])
    found = done_of((row(str(n)) for n in range(len(takes))), server, in_flight=in_flight, look_ahead=ahead)
    assert [each.result for each in found] == [str(n) for n in range(len(takes))]
    assert server.most <= in_flight


def test_rows_are_read_only_as_far_as_there_is_room() -> None:
    read = 0

    def rows() -> Iterator[LLMRow[str]]:
        nonlocal read
        for read in range(1, 1_000_001):
            yield row(str(read))

    async def first() -> int:
        started = LLMRun(rows(), Server(), in_flight=4, look_ahead=10)
        assert await started.ready(1.0, enough=1)
        at_once = read
        await started.close()
        return at_once

    assert run(first()) <= 4 + 10 + 14


def test_a_slow_row_does_not_hold_up_those_behind_it() -> None:
    server = Server(lambda text: 1000.0 if text == "0" else 1.0)

    async def behind() -> int:
        begun = LLMRun((row(str(n)) for n in range(500)), server, in_flight=4, look_ahead=100)
        while asyncio.get_running_loop().time() < 500:
            assert await begun.ready(50, enough=1) == []
        await begun.close()
        return begun.meter.rows

    assert run(behind()) == 103  # the look-ahead, and those that were under way


def test_as_many_requests_are_under_way_as_talks_are_allowed() -> None:
    server = Server(lambda _: 1.0)
    done_of((row(str(n)) for n in range(100)), server, in_flight=20)
    assert server.most == 20


def test_a_talk_of_several_rounds_gets_the_outcomes_in_the_order_of_its_requests() -> None:
    def several(text: str) -> LLMStep[list[str]]:
        first = yield [request(f"{text}{n}") for n in (3, 1, 2)]
        second = yield [request(f"{text}last")]
        third = yield []
        return [each.text for each in [*first, *second, *third] if isinstance(each, Reply)]

    [done] = done_of(iter([row("x", several)]), Server(lambda text: float(text[1]) if text[1].isdigit() else 0.0))
    assert done.result == ["x3", "x1", "x2", "xlast"]
    assert done.requests.spent == RequestTotals(4, 0, 40, 8, 4)
    assert done.requests.keys == ["key of x3", "key of x1", "key of x2", "key of xlast"]
    assert done.requests.said == "xlast"


@pytest.mark.parametrize("paid_before", [False, True])
def test_an_answer_that_a_row_takes_twice_is_counted_once(*, paid_before: bool) -> None:
    """Else what its rows rest on would have cost more than was ever paid."""

    def twice(text: str) -> LLMStep[int]:
        first = yield [request(text), request(text)]
        later = yield [request(text)]
        return len(first) + len(later)

    seen: list[str] = [] if not paid_before else ["x"]

    def answer(asked: Request) -> Reply:
        seen.append(asked.messages[0].text)
        return reply("x", cached=len(seen) > 1)

    [done] = done_of(iter([row("x", twice)]), Server(answer=answer))
    once = RequestTotals(cached=1, kept_prompt_tokens=10, kept_completion_tokens=2)
    assert done.requests.spent == (once if paid_before else RequestTotals(1, 0, 10, 2, 1))
    assert (done.result, done.requests.keys) == (3, ["key of x"])


@pytest.mark.parametrize("paid", ["before", "first", "last", "never here"])
def test_an_answer_that_rows_share_is_counted_once(paid: str) -> None:
    """Whoever of them paid for it: a row that waited for another one's answer may end before that one does."""
    texts, seen = ["same"] * 3, list[str]()

    def answer(asked: Request) -> Reply:
        seen.append(asked.messages[0].text)
        here = {"before": 0, "first": 1, "last": 3, "never here": 0}[paid]
        return reply("same", cached=len(seen) != here)

    spent = sum((done.requests.spent for done in done_of(map(row, texts), Server(answer=answer))), RequestTotals())
    assert (spent.answers, spent.shared) == (1, 2)
    assert spent.prompt_tokens + spent.kept_prompt_tokens == 10
    assert spent.completion_tokens + spent.kept_completion_tokens == 2
    assert spent.requests == (paid in {"first", "last"})


def test_cached_answers_cost_nothing() -> None:
    [done] = done_of(iter([row("x")]), Server(answer=lambda _: reply("x", cached=True)))
    assert done.requests.spent == RequestTotals(cached=1, kept_prompt_tokens=10, kept_completion_tokens=2)


def test_a_talk_is_given_the_failure_of_its_row_and_goes_on() -> None:
    server = Server(answer=lambda r: RequestError("bad_request") if r.messages[0].text == "1" else reply("fine"))
    found = done_of((row(str(n)) for n in range(3)), server)
    assert [each.result for each in found] == ["fine", "bad_request", "fine"]
    assert [each.requests.unanswered for each in found] == [0, 1, 0]


def test_an_attempt_is_handed_to_the_talk() -> None:
    def talk(attempt: int) -> LLMStep[int]:
        yield [request("x", sample=attempt)]
        return attempt

    [done] = done_of(iter([LLMRow("x", talk, attempt=3)]), Server())
    assert (done.result, done.attempt) == (3, 3)


@pytest.mark.parametrize(
    "error",
    [InputError("no image", where="row 1", fix="Leave it out."), RequestError("bad_image"), PairwrightError("no")],
)
def test_what_a_talk_raises_about_its_row_ends_that_row_alone(error: PairwrightError) -> None:
    def raises(_: str) -> LLMStep[str]:
        raise error
        yield []

    found = done_of(iter([row("0"), row("1", raises), row("2")]), Server())
    assert [(each.result, each.error) for each in found] == [("0", None), (None, error), ("2", None)]


def ends(rows: Iterator[LLMRow[Any]], server: Server, **options: int) -> tuple[list[RowResult[Any]], PairwrightError]:
    found: list[RowResult[Any]] = []
    with pytest.raises(PairwrightError) as caught:
        run(all_of(rows, server, found, **options))
    return found, caught.value


def test_a_fatal_failure_ends_the_run_and_what_is_finished_is_given() -> None:
    server = Server(
        lambda text: 1.0 if text == "7" else 0.1,
        lambda r: RequestError("bad_key", "401") if r.messages[0].text == "7" else reply(r.messages[0].text),
    )
    found, error = ends((row(str(n)) for n in range(1000)), server)
    assert isinstance(error, RequestError)
    assert error.code == "bad_key"
    names = [int(each.row) for each in found]
    assert names == sorted(names)
    assert set(range(30)) - set(names) == {7}
    assert len(server.asked) < 100


def test_answers_under_way_when_the_run_ends_are_waited_for_but_not_for_ever() -> None:
    takes = {"0": 1.0, "1": GRACE_S, "2": GRACE_S + 10}
    server = Server(
        lambda text: takes[text], lambda r: RequestError("no_quota") if r.messages[0].text == "0" else reply("kept")
    )
    found, _ = ends((row(str(n)) for n in range(3)), server)
    assert [each.row for each in found] == ["1"]


def test_a_bug_in_a_talk_ends_the_run_and_names_the_row() -> None:
    def broken(text: str) -> LLMStep[str]:
        yield [request(text)]
        raise KeyError("caption")

    _, error = ends(iter([row("0"), row("row-17", broken)]), Server())
    assert isinstance(error, BrokenStepError)
    assert "row-17" in str(error)
    assert "KeyError" in str(error)
    assert isinstance(error.__cause__, KeyError)


def test_an_answer_that_cannot_be_kept_ends_the_run() -> None:
    def full(_: Request) -> RequestOutcome:
        raise StorageError("disk full")

    _, error = ends((row(str(n)) for n in range(9)), Server(answer=full))
    assert str(error) == "disk full"


def test_rows_that_cannot_be_read_end_the_run_after_those_before_them() -> None:
    def rows() -> Iterator[LLMRow[str]]:
        yield row("0")
        raise InputError("torn", where="line 2", fix="Mend it.")

    found, error = ends(rows(), Server())
    assert [each.row for each in found] == ["0"]
    assert isinstance(error, InputError)


def test_a_run_in_which_nearly_all_rows_fail_alike_ends_early_and_says_why() -> None:
    server = Server(answer=lambda _: RequestError("bad_request", "temperature must be at most 2"))
    found, error = ends((row(str(n)) for n in range(100_000)), server)
    assert isinstance(error, MostlyFailingError)
    assert "50 of the last 50" in str(error)
    assert "temperature must be at most 2" in str(error)
    assert len(server.asked) < 60
    assert found[0].result == "bad_request"


def test_a_run_goes_on_while_a_fifth_of_its_rows_are_answered() -> None:
    server = Server(
        answer=lambda r: reply("x") if r.messages[0].text.endswith(("0", "5")) else RequestError("bad_request")
    )
    assert len(done_of((row(str(n)) for n in range(1000)), server)) == 1000


def test_a_run_ends_when_a_server_turns_bad_in_its_middle() -> None:
    server = Server(answer=lambda r: reply("x") if int(r.messages[0].text) < 500 else RequestError("unsupported"))
    found, error = ends((row(str(n)) for n in range(10_000)), server)
    assert isinstance(error, MostlyFailingError)
    assert 500 + 180 - 1 <= len(found) < 700


def test_a_short_run_in_which_no_row_gets_an_answer_ends_in_an_error_behind_all_rows() -> None:
    words = ["server_error", "timeout"]
    found, error = ends(
        (row(str(n)) for n in range(6)), Server(answer=lambda r: RequestError(words[int(r.messages[0].text) % 2]))
    )
    assert len(found) == 6
    assert isinstance(error, MostlyFailingError)
    assert "of 6" in str(error)


@pytest.mark.parametrize("other", [reply("x"), RequestError("content_filter")])
def test_a_short_run_goes_through_where_one_row_is_answered_or_is_itself_at_fault(other: Reply | RequestError) -> None:
    server = Server(answer=lambda r: other if r.messages[0].text == "0" else RequestError("server_error"))
    assert len(done_of((row(str(n)) for n in range(6)), server)) == 6


def test_rows_that_fail_in_different_ways_end_nothing() -> None:
    words = ["bad_request", "context_too_long", "content_filter"]
    server = Server(answer=lambda r: RequestError(words[int(r.messages[0].text) % 3]))
    assert len(done_of((row(str(n)) for n in range(600)), server)) == 600


def test_rows_that_ask_nothing_are_no_failures() -> None:
    def silent(text: str) -> LLMStep[str]:
        return text
        yield []

    assert len(done_of((row(str(n), silent) for n in range(300)), Server())) == 300
