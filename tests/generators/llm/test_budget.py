"""Limits hold to the cent with any number of requests under way, and nothing that was paid for is lost."""

import asyncio
import timeit
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.budget import DEFAULT_HELD_TOKENS, Budget, SpendingTotals, format_usd
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Message, Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.image_tokens import ImageRule
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import parse_script
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.llm.token_estimate import max_prompt_tokens

PRICE = Price(1.0, 10.0, cached=0.1)
PRICES = Prices({"small": PRICE})
TINY = 1e-9  # USD: sums of fractions


def request(text: str = "hello", *, most: int | None = 100, model: str = "small") -> Request:
    return Request((Message("user", text),), model, {} if most is None else {"max_tokens": most})


def most_of(asked: Request, answer: int) -> float:
    return PRICE.most(max_prompt_tokens(asked, ImageRule()), answer)


class Paid:
    """A model that knows what it has billed; it answers after as many turns of the loop as it is told."""

    def __init__(self, usage: Callable[[Request], Usage], turns: Callable[[Request], int] = lambda _: 1) -> None:
        self.usage, self.turns = usage, turns
        self.received = self.answered = self.under_way = self.most_under_way = 0
        self.billed = 0.0
        self.fails: set[str] = set()

    async def ask(self, asked: Request) -> Reply:
        """Answer, or fail where it is told to."""
        self.received += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(self.turns(asked)):
            await asyncio.sleep(0)
        self.under_way -= 1
        if asked.messages[0].text in self.fails:
            raise RequestError("bad_request", "no")
        usage = self.usage(asked)
        self.answered += 1
        self.billed += PRICE.cost(usage)
        return Reply("yes", "stop", "", usage, "small")


def ask_all(model: Model, requests: list[Request]) -> list[Reply | BaseException]:
    async def gathered() -> list[Reply | BaseException]:
        return await asyncio.gather(*(model.ask(each) for each in requests), return_exceptions=True)

    return asyncio.run(gathered())


def over_budget(outcomes: list[Reply | BaseException]) -> int:
    return sum(isinstance(each, RequestError) and each.code == "over_budget" for each in outcomes)


# one request: letters of its prompt, max_tokens, share of the most that is used of both, turns, whether it fails
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2000), st.integers(1, 4000), st.floats(0, 1), st.floats(0, 1), st.integers(0, 9), st.booleans()
    ),
    min_size=1,
    max_size=40,
)


@given(ROWS, st.floats(0, 0.2))
def test_the_cost_never_exceeds_the_limit_and_stops_within_one_request_of_it(
    rows: list[tuple[int, int, float, float, int, bool]], limit: float
) -> None:
    requests = [request(f"{at:03}{'x' * letters}", most=most) for at, (letters, most, *_) in enumerate(rows)]

    def usage(asked: Request) -> Usage:
        _, most, prompt_share, share, _, _ = rows[int(asked.messages[0].text[:3])]
        prompt = max(1, int(max_prompt_tokens(asked, ImageRule()) * prompt_share))
        return Usage(prompt, max(1, int(most * share)), prompt // 2)

    server = Paid(usage, lambda asked: rows[int(asked.messages[0].text[:3])][4])
    server.fails = {each.messages[0].text for each, row in zip(requests, rows, strict=True) if row[5]}
    budget = Budget(server, PRICES, max_cost=limit)
    outcomes = ask_all(budget, requests)

    assert server.billed <= limit + TINY
    assert budget.bill.cost == pytest.approx(server.billed)
    refused = over_budget(outcomes)
    assert server.received + refused == len(requests)
    if refused:
        dearest = max(most_of(each, rows[at][1]) for at, each in enumerate(requests))
        assert server.billed + dearest > limit - TINY


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_never_more_answers_than_max_requests_and_failures_give_their_place_back(
    limit: int, rows: list[tuple[int, bool]]
) -> None:
    requests = [request(str(at)) for at in range(len(rows))]
    server = Paid(lambda _: Usage(10, 10), lambda asked: rows[int(asked.messages[0].text)][0])
    server.fails = {str(at) for at, (_, fails) in enumerate(rows) if fails}
    outcomes = ask_all(Budget(server, PRICES, max_requests=limit), requests)
    answers = sum(isinstance(each, Reply) for each in outcomes)
    assert server.answered == answers <= limit
    good = sum(not fails for _, fails in rows)
    if over_budget(outcomes):
        assert answers == limit
    else:
        assert answers == good


def test_far_from_the_limit_nothing_waits() -> None:
    server = Paid(lambda _: Usage(10, 10), lambda _: 5)
    ask_all(Budget(server, PRICES, max_cost=1000.0, max_requests=256), [request(str(at)) for at in range(256)])
    assert server.most_under_way == 256


def test_what_was_held_and_not_used_is_spent_on_later_requests() -> None:
    # Held are 100 tokens of answer, used is 1: the budget lasts for many more than were held at first.
    server = Paid(lambda _: Usage(1, 1))
    limit = 5 * most_of(request("000"), 100)
    outcomes = ask_all(Budget(server, PRICES, max_cost=limit), [request(f"{at:03}") for at in range(400)])
    assert server.answered > 300
    assert server.most_under_way <= 5
    assert over_budget(outcomes) == 400 - server.answered


def test_without_max_tokens_the_overrun_is_what_the_answers_under_way_exceed_what_was_held() -> None:
    long = 3 * DEFAULT_HELD_TOKENS
    server = Paid(lambda asked: Usage(max_prompt_tokens(asked, ImageRule()), long))
    unlimited = [request(f"{at:03}", most=None) for at in range(50)]
    limit = 4 * most_of(unlimited[0], DEFAULT_HELD_TOKENS)
    ask_all(Budget(server, PRICES, max_cost=limit), unlimited)
    assert limit < server.billed <= limit + 4 * PRICE.most(0, long - DEFAULT_HELD_TOKENS) + TINY
    assert server.answered == 4


def test_without_max_tokens_twice_the_longest_answer_so_far_is_held() -> None:
    server = Paid(lambda _: Usage(10, 50))
    limit = 1.01 * most_of(request("000", most=None), DEFAULT_HELD_TOKENS)
    outcomes = ask_all(Budget(server, PRICES, max_cost=limit), [request(f"{at:03}", most=None) for at in range(100)])
    assert over_budget(outcomes)
    assert 0 <= limit - server.billed < most_of(request("000", most=None), 100)


def test_a_server_that_counts_more_than_there_are_bytes_is_held_to_its_own_count() -> None:
    asked = request("x", most=1)
    many = 10 * max_prompt_tokens(asked, ImageRule())
    server = Paid(lambda _: Usage(many, 1))
    budget = Budget(server, PRICES, max_cost=2.5 * PRICE.most(many, 1))

    async def one_by_one() -> list[str]:
        outcomes = []
        for at in range(5):
            try:
                outcomes.append((await budget.ask(request(str(at), most=1))).text)
            except RequestError as failure:
                outcomes.append(failure.code)
        return outcomes

    assert asyncio.run(one_by_one()) == ["yes", "yes", *["over_budget"] * 3]


def test_the_stop_is_fatal_says_what_was_spent_and_holds_for_all_that_come_later() -> None:
    server = Paid(lambda _: Usage(10, 10))
    budget = Budget(server, PRICES, max_requests=1)
    first, second = ask_all(budget, [request("1"), request("2")])
    assert isinstance(first, Reply)
    assert isinstance(second, RequestError)
    assert second.fatal
    assert "1 of 1 requests" in str(second)
    assert "Raise --max-cost or --max-requests, then run again" in str(second)
    [third] = ask_all(budget, [request("3")])
    assert isinstance(third, RequestError)
    assert server.received == 1


def test_the_stop_for_money_names_the_limit_and_what_the_next_request_may_cost() -> None:
    [outcome] = ask_all(Budget(Paid(lambda _: Usage(1, 1)), PRICES, max_cost=0.0001), [request(most=10_000)])
    assert "$0.00 of $0.0001 spent; the next request may cost $0.100" in str(outcome)


def test_a_limit_in_dollars_and_an_unknown_price_are_refused_before_anything_is_sent() -> None:
    server = Paid(lambda _: Usage(1, 1))
    [outcome] = ask_all(Budget(server, PRICES, max_cost=1.0), [request(model="llama")])
    assert isinstance(outcome, UsageError)
    assert "--price" in str(outcome)
    assert server.received == 0


def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    budget = Budget(Paid(lambda _: Usage(10, 5)), PRICES, max_requests=5)
    ask_all(budget, [request(), request(model="llama")])
    assert budget.bill.cost is None
    assert (budget.bill.requests, budget.bill.unpriced) == (2, 1)
    assert budget.bill.priced == pytest.approx(PRICE.cost(Usage(10, 5)))


def test_a_server_that_does_not_count_is_billed_by_estimate_and_that_is_told() -> None:
    budget = Budget(Paid(lambda _: Usage(0, 0)), PRICES)
    ask_all(budget, [request("The cat sits on the mat.")])
    bill = budget.bill
    assert bill.estimated == 1
    assert bill.prompt_tokens == pytest.approx(7 + 7, abs=2)
    assert bill.completion_tokens == 1
    assert bill.cost is not None
    assert bill.cost > 0


def test_a_failed_request_costs_nothing_and_is_counted() -> None:
    server = Paid(lambda _: Usage(10, 10))
    server.fails = {"bad"}
    budget = Budget(server, PRICES, max_cost=1.0)
    ask_all(budget, [request("bad"), request("good")])
    assert (budget.bill.requests, budget.bill.failed) == (1, 1)
    assert budget.bill.cost == pytest.approx(PRICE.cost(Usage(10, 10)))


def test_rows_that_are_called_off_while_they_wait_hold_nothing_back() -> None:
    server = Paid(lambda _: Usage(10, 10), lambda _: 20)
    budget = Budget(server, PRICES, max_requests=2)

    async def run() -> Reply:
        first = asyncio.create_task(budget.ask(request("first")))
        second = asyncio.create_task(budget.ask(request("second")))
        await asyncio.sleep(0)
        waits = asyncio.create_task(budget.ask(request("waits")))
        await asyncio.sleep(0)
        waits.cancel()
        first.cancel()
        await asyncio.gather(first, waits, return_exceptions=True)
        reply = await budget.ask(request("third"))
        await second
        return reply

    assert asyncio.run(run()).text == "yes"
    assert server.answered == 2


class Batches(Paid):
    """A model that answers all that is under way together, as a batch; it counts them."""

    def __init__(self, usage: Callable[[Request], Usage]) -> None:
        super().__init__(usage, lambda _: 20)
        self.batches: list[int] = []

    async def ask(self, asked: Request) -> Reply:
        """Answer with the batch."""
        if not self.under_way:
            self.batches.append(0)
        self.batches[-1] += 1
        return await super().ask(asked)


@pytest.mark.parametrize("tokens", [5, 20, 60])
def test_by_estimate_a_limit_is_spent_in_few_batches_and_hardly_overrun(tokens: int) -> None:
    asked = [replace(request(f"row {n} " + "word " * 30, most=1000), expects="word " * 20) for n in range(500)]
    each = PRICE.cost(Usage(36, tokens))
    model = Batches(lambda _: Usage(36, tokens))
    outcomes = ask_all(Budget(model, PRICES, max_cost=200 * each, by_estimate=True), asked)
    assert len(model.batches) <= 5
    assert over_budget(outcomes) == 500 - model.answered
    longer = max(1.0, tokens / 20)
    assert 0.93 * 200 * each <= model.billed <= longer * 1.05 * 200 * each


def test_several_stages_share_one_bill_and_so_one_limit() -> None:
    bill, server = SpendingTotals(), Paid(lambda _: Usage(10, 10))
    ask_all(Budget(server, PRICES, bill, max_requests=3), [request("1"), request("2")])
    outcomes = ask_all(Budget(server, PRICES, bill, max_requests=3), [request("3"), request("4")])
    assert over_budget(outcomes) == 1
    assert bill.described()["requests"] == 3


@pytest.mark.parametrize("limits", [{"max_cost": -1.0}, {"max_cost": float("nan")}, {"max_requests": -1}])
def test_impossible_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="0 or more"):
        Budget(Paid(lambda _: Usage(1, 1)), PRICES, **limits)  # type: ignore[arg-type]


def test_counting_an_answer_is_cheap() -> None:
    bill, usage = SpendingTotals(), Usage(100, 20, 10)
    best = min(timeit.repeat(lambda: bill.add(usage, PRICE), number=2000, repeat=5)) / 2000
    assert best < 30e-6  # 1 to 2 us where nothing else runs


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "$0.00"), (0.00012, "$0.00012"), (1e-5, "$0.00001"), (0.5, "$0.500"), (1234.5, "$1,234.50")],
)
def test_money_is_shown_with_digits_that_tell(amount: float, shown: str) -> None:
    assert format_usd(amount) == shown


@pytest.mark.parametrize("limits", [{"max_requests": 12}, {"max_cost": 0.0045}])
def test_a_run_that_the_budget_ended_sends_only_the_rest_when_it_is_run_again(
    tmp_path: Path, limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pairwright.generators.llm.client.retrying.INITIAL_DELAY_S", 0.01)
    usage = {"prompt_tokens": 60, "completion_tokens": 30}
    script = parse_script({"rules": [{"text": "fine", "usage": usage}], "faults": {"500": 0.1}}, where="test")
    rows = [request(f"row {at}", most=50) for at in range(40)]
    with serve_in_thread(ServerApp(script)) as server:
        settings = LLMSettings(model="small", base_url=server.url, max_concurrency=16)

        async def run(**limit: float) -> tuple[list[Reply | BaseException], SpendingTotals]:
            with Cache.open(tmp_path / "cache.sqlite") as cache:
                async with open_model(settings) as client:
                    budget = Budget(client, PRICES, **limit)  # type: ignore[arg-type]
                    model = CachedModel(budget, cache, server.root)
                    outcomes = await asyncio.gather(*(model.ask(each) for each in rows), return_exceptions=True)
                    return outcomes, budget.bill

        outcomes, bill = asyncio.run(run(**limits))
        done = [each for each in outcomes if isinstance(each, Reply)]
        assert 0 < len(done) == bill.requests < 40
        assert over_budget(outcomes) == 40 - len(done)
        if "max_cost" in limits:
            assert bill.cost is not None
            assert bill.cost <= limits["max_cost"]
        else:
            assert bill.requests == limits["max_requests"]
        again, rest = asyncio.run(run())
        assert all(isinstance(each, Reply) for each in again)
        assert rest.requests == 40 - len(done)
        assert server.stats()["bodies"]["answered"] == 40
        assert server.stats()["bodies"]["answered_again"] == 0
