"""Pacing: what may leave when. Time is virtual, or handed in."""

import asyncio
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.rate_limits import (
    ConcurrencyWindow,
    LimitedModel,
    Limiter,
    ServerQuota,
    TokenBucket,
    parse_duration,
)
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.retrying import RetryingModel
from tests.generators.llm.client.virtual_time import run


def request(number: int, letters: int = 4, **parameters: int) -> Request:
    return Request((Message("user", str(number).rjust(letters)),), "m", parameters)


class Slow:
    """A server without a network: answers after ``latency`` seconds, refuses by a rule, and keeps count."""

    def __init__(self, latency: float = 0.1, tokens: tuple[int, int] = (0, 0)) -> None:
        self.latency, self.tokens = latency, tokens
        self.times: list[float] = []
        self.order: list[str] = []
        self.in_flight = self.most = self.refused = 0
        self.at_once: list[int] = []

    def refusal(self) -> RequestError | None:
        """Return what the request that has just come is refused with."""
        return None

    async def ask(self, request: Request) -> Reply:
        """Answer, in time."""
        self.times.append(asyncio.get_running_loop().time())
        self.order.append(request.messages[0].text.strip())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.at_once.append(self.in_flight)
        try:
            refusal = self.refusal()
            await asyncio.sleep(self.latency)
            if refusal:
                self.refused += 1
                raise refusal
            return Reply("yes", "stop", "", Usage(*self.tokens), "m")
        finally:
            self.in_flight -= 1


class Unlucky(Slow):
    """Refuses a share of requests, whatever their number."""

    share = 0.01

    def refusal(self) -> RequestError | None:
        """Refuse as the class says."""
        if make_rng(5, len(self.times)).random() < self.share:
            return RequestError("rate_limited", status=429, retry_after=1.0)
        return None


class Narrow(Slow):
    """Refuses requests above a concurrency limit, without a hint."""

    most_at_once = 10

    def refusal(self) -> RequestError | None:
        """Refuse as the class says."""
        return RequestError("rate_limited", status=429) if self.in_flight > self.most_at_once else None


class PerSecond(Slow):
    """Refuses more than 20 requests per second, with ``retry_after`` if given."""

    retry_after: float | None = None

    def refusal(self) -> RequestError | None:
        """Refuse as the class says."""
        now = self.times[-1]
        recent = [time for time in self.times[-400:] if time > now - 1]
        return RequestError("rate_limited", status=429, retry_after=self.retry_after) if len(recent) > 20 else None


async def ask_all(server: Slow, rows: int, limiter: Limiter, *, at_once: int, patience: float = 1e6) -> float:
    """Ask many rows through pacing and retries; return the seconds it took."""
    model = RetryingModel(LimitedModel(server, limiter), patience=patience)
    numbers = iter(range(rows))

    async def worker() -> None:
        for number in numbers:
            assert (await model.ask(request(number))).text == "yes"

    loop = asyncio.get_running_loop()
    start = loop.time()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return loop.time() - start


def test_the_window_reaches_its_limit_within_a_second() -> None:
    server = Slow()
    seconds = run(ask_all(server, 10_000, Limiter(256), at_once=300))
    assert server.most == 256
    assert 10_000 / seconds > 0.85 * 2560


def test_no_more_requests_are_in_flight_than_the_limit() -> None:
    server = Slow()
    run(ask_all(server, 200, Limiter(7), at_once=50))
    assert server.most == 7


def test_one_refusal_in_a_hundred_costs_at_most_a_fifth() -> None:
    undisturbed = run(ask_all(Slow(), 20_000, Limiter(256), at_once=300))
    server = Unlucky()
    assert run(ask_all(server, 20_000, Limiter(256), at_once=300)) < undisturbed / 0.8
    assert 150 < server.refused < 250


def test_a_server_with_a_limit_of_ten_gets_about_ten_concurrent_requests() -> None:
    server = Narrow()
    seconds = run(ask_all(server, 3000, Limiter(256), at_once=300))
    assert 3000 / seconds > 0.6 * 100  # ten at once, ten times a second
    assert server.refused < 0.35 * len(server.times)
    assert max(server.at_once[-300:]) <= 20


@pytest.mark.parametrize("retry_after", [None, 0.5])
def test_a_limit_per_second_is_found_with_and_without_retry_after(retry_after: float | None) -> None:
    server = PerSecond()
    server.retry_after = retry_after
    seconds = run(ask_all(server, 300, Limiter(64), at_once=80))
    assert seconds < 300 / 20 * 8
    assert len(server.times) < 300 * 4


def test_requests_per_minute_hold_in_every_minute_and_are_used() -> None:
    server = Slow(0.0)
    run(ask_all(server, 300, Limiter(64, requests_per_minute=120), at_once=64))
    window: deque[float] = deque()
    for time in server.times:
        window.append(time)
        while window[0] <= time - 60:
            window.popleft()
        assert len(window) <= 120 + 2  # a second's worth may be caught up on
    assert server.times[-1] == pytest.approx(300 / 2, rel=0.03)


def test_tokens_per_minute_hold_by_the_tokens_actually_used() -> None:
    server = Slow(0.05, tokens=(90, 10))
    seconds = run(ask_all(server, 600, Limiter(64, tokens_per_minute=6000), at_once=64))
    assert 600 * 100 / seconds * 60 == pytest.approx(6000, rel=0.15)


def test_waiting_requests_leave_in_order_of_arrival() -> None:
    server = Slow()
    run(ask_all(server, 100, Limiter(1), at_once=100))
    assert server.order == [str(number) for number in range(100)]


def test_a_cancelled_request_frees_its_place() -> None:
    async def main() -> tuple[int, int, int]:
        server, limiter = Slow(10.0), Limiter(4)
        model = LimitedModel(server, limiter)
        tasks = [asyncio.create_task(model.ask(request(number))) for number in range(10)]
        await asyncio.sleep(1)
        assert (limiter.in_flight, limiter.waiting) == (4, 6)
        for task in tasks[2:7]:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found = limiter.in_flight
        await asyncio.gather(*tasks, return_exceptions=True)
        return found, limiter.in_flight, limiter.waiting

    assert run(main()) == (4, 0, 0)


def test_after_a_fatal_error_nothing_is_sent() -> None:
    class WrongKey(Slow):
        def refusal(self) -> RequestError | None:
            """Refuse as the class says."""
            return RequestError("bad_key", status=401)

    async def main() -> tuple[int, Counter[str]]:
        server = WrongKey()
        model = LimitedModel(server, Limiter(4))
        found = await asyncio.gather(*(model.ask(request(n)) for n in range(50)), return_exceptions=True)
        return len(server.times), Counter(each.code for each in found if isinstance(each, RequestError))

    assert run(main()) == (4, Counter(bad_key=50))


class Telling(Slow):
    """Has a quota and reports the rest in headers, as OpenAI does."""

    def __init__(self, limiter: Limiter, per_minute: int, level: float) -> None:
        super().__init__(0.05)
        self.limiter, self.limit, self.level, self.at = limiter, per_minute, level, 0.0

    async def ask(self, request: Request) -> Reply:
        """Answer, in time."""
        now = asyncio.get_running_loop().time()
        rate = self.limit / 60
        self.level = min(self.limit, self.level + (now - self.at) * rate)
        self.at = now
        passed = self.level >= 1
        self.level -= passed
        left = int(self.level)
        try:
            await super().ask(request)
        finally:
            reset = f"{(self.limit - left) / rate:.2f}s"
            self.limiter.heard(
                {
                    "x-ratelimit-limit-requests": str(self.limit),
                    "x-ratelimit-remaining-requests": str(left),
                    "x-ratelimit-reset-requests": reset,
                }
            )
        if not passed:
            self.refused += 1
            raise RequestError("rate_limited", status=429, retry_after=1 / rate)
        return Reply("yes", "stop", "", Usage(0, 0), "m")


def test_a_reported_quota_is_respected_with_few_refusals() -> None:
    async def main() -> tuple[float, int]:
        limiter = Limiter(64)
        server = Telling(limiter, per_minute=600, level=100)
        return await ask_all(server, 1000, limiter, at_once=64), server.refused

    seconds, refused = run(main())
    assert seconds == pytest.approx((1000 - 100) / 10, rel=0.1)
    assert refused <= 10


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-remaining-requests": "0"},
        {
            "x-ratelimit-remaining-requests": "none",
            "x-ratelimit-limit-requests": "5",
            "x-ratelimit-reset-requests": "1s",
        },
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-limit-requests": "0", "x-ratelimit-reset-requests": "1s"},
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-limit-requests": "9",
            "x-ratelimit-reset-requests": "soon",
        },
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-limit-requests": "9",
            "x-ratelimit-reset-requests": "1795256958",
        },
        {"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-limit-tokens": "inf", "x-ratelimit-reset-tokens": ""},
    ],
)
def test_missing_or_invalid_headers_stall_nothing(headers: dict[str, str]) -> None:
    async def main() -> float:
        limiter = Limiter(16)
        await limiter.enter(request(0))
        limiter.heard(headers)
        return await ask_all(Slow(), 150, limiter, at_once=15)

    assert run(main()) < 1.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120ms", 0.12),
        ("1.5s", 1.5),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("2d", 172800),
        ("7.66s", 7.66),
        ("0s", 0),
        ("30", 30),
        ("", None),
        (None, None),
        ("soon", None),
        ("-1", None),
        ("nan", None),
    ],
)
def test_durations_of_servers_are_parsed(text: str | None, seconds: float | None) -> None:
    assert parse_duration(text) == (pytest.approx(seconds) if seconds is not None else None)


@given(st.integers(1, 300), st.lists(st.booleans(), max_size=600))
def test_the_window_stays_between_one_and_the_limit(ceiling: int, refusals: list[bool]) -> None:
    window = ConcurrencyWindow(ceiling)
    for refused in refusals:
        window.ended(window.epoch, refused=refused)
        assert 1 <= window.size <= ceiling


@given(st.integers(1, 300), st.lists(st.booleans(), max_size=300))
def test_requests_sent_before_a_decrease_cause_no_further_one(ceiling: int, refusals: list[bool]) -> None:
    window = ConcurrencyWindow(ceiling)
    while not window.ended(window.epoch, refused=True):
        pass
    size = window.size
    for refused in refusals:
        window.ended(0, refused=refused)
    assert window.size == size


@given(
    st.integers(1, 6000),
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 50)), min_size=1, max_size=50),
)
def test_a_bucket_admits_at_most_its_rate_and_a_burst_of_one_second(
    per_minute: int, steps: list[tuple[float, float]]
) -> None:
    bucket, now, passed = TokenBucket(per_minute, 0.0), 0.0, 0.0
    largest = 0.0
    for pause, amount in steps:
        now += pause
        now += bucket.wait(amount, now) + 1e-6
        assert bucket.wait(amount, now) < 1e-3
        bucket.take(amount)
        passed += amount
        largest = max(largest, amount)
        rate = per_minute / 60
        assert passed <= rate * now + max(1.0, rate) + largest + 1e-3


def test_a_quota_follows_the_server_after_a_drift_of_our_count() -> None:
    allowance = ServerQuota("tokens")
    headers = {
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": "3000",
        "x-ratelimit-reset-tokens": "30s",
    }
    allowance.heard(headers, 0.0, 0.0)
    allowance.take(2900)  # expected far too much
    for _ in range(500):
        allowance.heard(headers, 100.0, 0.0)
    assert allowance.wait(2850, 0.0) == 0
    assert 1.0 <= allowance.wait(3000, 0.0) < 1.3
