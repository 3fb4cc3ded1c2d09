"""What is asked again, for how long, and what stops a run. Time is virtual, except where a real server is asked."""

import asyncio
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.rate_limits import LimitedModel, Limiter
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError
from pairwright.generators.llm.client.retrying import RetryingModel
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_app
from tests.generators.llm.client.virtual_time import run

YES = Reply("yes", "stop", "", Usage(0, 0), "m")
TRANSIENT = [word for word, entry in REQUEST_ERROR_CODES.items() if entry.kind == "transient"]
OF_ROW = [word for word, entry in REQUEST_ERROR_CODES.items() if entry.kind == "row"]
FATAL = [word for word, entry in REQUEST_ERROR_CODES.items() if entry.kind == "fatal"]
OWN_FAULTS = [word for word in TRANSIENT if word not in {"rate_limited", "overloaded", "unreachable"}]


def request(number: int = 0) -> Request:
    return Request((Message("user", f"row {number}"),), "m")


class Scripted:
    """Fails as ``fails`` says of (attempt of this row, seconds), else answers; notes when it was asked."""

    def __init__(self, fails: Callable[[int, float], RequestError | None]) -> None:
        self.fails = fails
        self.times: list[float] = []
        self.attempts: Counter[str] = Counter()

    async def ask(self, request: Request) -> Reply:
        """Fail or answer."""
        now = asyncio.get_running_loop().time()
        text = request.messages[0].text
        attempt = self.attempts[text]
        self.attempts[text] += 1
        self.times.append(now)
        failure = self.fails(attempt, now)
        if failure is not None:
            raise failure
        return YES


def first(count: int, failure: RequestError) -> Callable[[int, float], RequestError | None]:
    """Fail the first so many attempts of a row."""
    return lambda attempt, _: failure if attempt < count else None


def ask(model: Scripted, **limits: Any) -> Reply:
    """Ask one row."""

    async def main() -> Reply:
        return await RetryingModel(model, **limits).ask(request())

    return run(main())


@pytest.mark.parametrize("word", TRANSIENT)
def test_transient_errors_are_retried(word: str) -> None:
    model = Scripted(first(3, RequestError(word)))
    assert ask(model) == YES
    assert len(model.times) == 4


@pytest.mark.parametrize("word", OWN_FAULTS)
def test_a_persistent_error_is_raised_after_the_last_retry(word: str) -> None:
    async def main() -> RequestError:
        retrying = RetryingModel(model, max_retries=3)
        assert await retrying.ask(request(1)) == YES  # so it is a chat API
        with pytest.raises(RequestError) as caught:
            await retrying.ask(request(0))
        return caught.value

    model = Scripted(lambda _attempt, _now: RequestError(word) if len(model.times) > 1 else None)
    assert run(main()).code == word
    assert len(model.times) == 5


@pytest.mark.parametrize("word", OF_ROW + FATAL)
def test_permanent_errors_are_not_retried(word: str) -> None:
    model = Scripted(first(1000, RequestError(word)))
    with pytest.raises(RequestError) as caught:
        ask(model)
    assert (caught.value.code, len(model.times)) == (word, 1)


def test_delays_double_within_jitter_and_are_reproducible() -> None:
    def waits(seed: int) -> list[float]:
        model = Scripted(first(6, RequestError("server_error")))
        ask(model, seed=seed)
        return [after - before for before, after in zip(model.times, model.times[1:], strict=False)]

    found = waits(1)
    assert all(0.5 * 2**n * 0.5 <= wait <= 0.5 * 2**n * 1.5 for n, wait in enumerate(found))
    assert found == waits(1)
    assert found != waits(2)


def test_rows_that_failed_together_are_retried_at_different_times() -> None:
    async def main() -> list[float]:
        model = Scripted(first(1, RequestError("rate_limited", retry_after=10.0)))
        retrying = RetryingModel(model)
        await asyncio.gather(*(retrying.ask(request(n)) for n in range(50)))
        return sorted(model.times[50:])

    times = run(main())
    assert times[0] >= 10  # never before it was asked to
    assert times[-1] <= 11.1
    assert len(set(times)) == 50


@pytest.mark.parametrize("word", ["rate_limited", "overloaded"])
def test_refusals_do_not_count_as_attempts(word: str) -> None:
    model = Scripted(first(12, RequestError(word, retry_after=2.0)))
    assert ask(model, max_retries=0) == YES


def test_a_retry_after_beyond_the_patience_stops_the_run() -> None:
    with pytest.raises(RequestError, match="asks to wait 7") as caught:
        ask(Scripted(first(1, RequestError("rate_limited", retry_after=7200.0))), patience=60)
    assert caught.value.code == "no_quota"
    with pytest.raises(RequestError) as caught:
        ask(Scripted(first(1, RequestError("overloaded", retry_after=7200.0))), patience=60)
    assert caught.value.code == "server_down"


def test_a_server_with_only_errors_is_reported_once() -> None:
    """Rows are asked again for the better part of a minute; without a word a run looks as if it hung."""

    async def main() -> list[str]:
        said: list[str] = []
        model = Scripted(lambda _, now: RequestError("server_error", "500: out of memory") if 1 <= now < 20 else None)
        retrying = RetryingModel(model, say=said.append)
        await retrying.ask(request())
        await asyncio.sleep(1)
        await asyncio.gather(*(retrying.ask(request(number)) for number in range(1, 20)))
        return said

    begins, ends = run(main())
    assert begins.startswith("no answer for 1")
    assert begins.endswith(" s: the server had an error (500: out of memory); retrying")
    assert ends == "the server responds again"


def test_an_unreachable_server_is_reported_once_and_all_rows_go_on_when_it_is_back() -> None:
    async def main() -> tuple[list[str], float]:
        said: list[str] = []
        model = Scripted(lambda _, now: RequestError("unreachable", "refused") if 0 < now < 100 else None)
        retrying = RetryingModel(model, max_retries=0, say=said.append)
        await retrying.ask(request())
        await asyncio.sleep(1)
        await asyncio.gather(*(retrying.ask(request(n)) for n in range(40)))
        return said, asyncio.get_running_loop().time()

    said, seconds = run(main())
    assert len(said) == 2
    assert "no connection to the server (refused); retrying for up to 300 s" in said[0]
    assert "back after" in said[1]
    assert 100 <= seconds < 115  # the first to find it back wakes the others


def test_a_server_that_stays_unreachable_stops_the_run_for_every_row() -> None:
    async def main() -> tuple[Counter[str], float, list[RequestError]]:
        stops: list[RequestError] = []
        model = Scripted(lambda _, now: RequestError("unreachable", "refused") if now else None)
        retrying = RetryingModel(model, patience=60, say=lambda _: None, on_stop=stops.append)
        await retrying.ask(request())
        await asyncio.sleep(1)
        rows = [retrying.ask(request(n)) for n in range(20)]
        found = await asyncio.gather(*rows, return_exceptions=True)
        asked = len(model.times)
        with pytest.raises(RequestError):
            await retrying.ask(request(99))
        assert len(model.times) == asked
        return Counter(e.code for e in found if isinstance(e, RequestError)), asyncio.get_running_loop().time(), stops

    words, seconds, stops = run(main())
    assert words == Counter(server_down=20)
    assert 60 <= seconds < 150
    assert [stop.code for stop in stops] == ["server_down"]
    assert "unreachable, refused" in stops[0].detail


@pytest.mark.parametrize("word", ["unreachable", "connection_lost"])
@pytest.mark.parametrize("patience", [300.0, 4.0])
def test_a_server_that_never_responded_is_retried_for_ten_seconds_only(word: str, patience: float) -> None:
    async def main() -> tuple[Counter[str], float, list[RequestError]]:
        stops: list[RequestError] = []
        model = Scripted(lambda _attempt, _now: RequestError(word, "Connection refused (localhost:8000)"))
        retrying = RetryingModel(model, patience=patience, say=lambda _: None, on_stop=stops.append)
        found = await asyncio.gather(*(retrying.ask(request(n)) for n in range(20)), return_exceptions=True)
        return Counter(e.code for e in found if isinstance(e, RequestError)), asyncio.get_running_loop().time(), stops

    words, seconds, [stop] = run(main())
    assert words == Counter(no_server=20)
    assert seconds == pytest.approx(min(10, patience), abs=0.01)
    assert "no server answers at the base URL (no response in" in str(stop)
    assert "Connection refused (localhost:8000)). Start the server first, or correct --base-url" in str(stop)


@pytest.mark.parametrize("word", ["overloaded", "server_error", "timeout"])
def test_a_server_that_loads_its_model_is_retried_within_the_patience(word: str) -> None:
    model = Scripted(lambda _, now: RequestError(word, "Loading model") if now < 60 else None)
    assert ask(model, max_retries=20) == YES


def test_a_server_that_refuses_all_requests_is_reported_and_stops_the_run_after_the_patience() -> None:
    """However few requests a row has sent itself: a limiter may let through one at a time."""

    async def main() -> tuple[list[str], Counter[str], float, RequestError]:
        said: list[str] = []
        stops: list[RequestError] = []
        one = asyncio.Lock()
        scripted = Scripted(lambda _attempt, _now: RequestError("rate_limited", "429: slower", retry_after=1.0))

        class OneByOne:
            async def ask(self, request: Request) -> Reply:
                async with one:
                    await asyncio.sleep(1)
                    return await scripted.ask(request)

        retrying = RetryingModel(OneByOne(), patience=30, say=said.append, on_stop=stops.append)
        found = await asyncio.gather(*(retrying.ask(request(n)) for n in range(100)), return_exceptions=True)
        words = Counter(e.code for e in found if isinstance(e, RequestError))
        return said, words, asyncio.get_running_loop().time(), stops[0]

    said, words, seconds, stop = run(main())
    assert said == ["the server refuses every request (429: slower); retrying for up to 30 s"]
    assert words == Counter(repeated_refusals=100)
    assert 30 <= seconds < 150
    assert "Lower the concurrency" in str(stop)
    assert "429: slower" in str(stop)


@pytest.mark.parametrize("word", ["not_json", "wrong_shape"])
def test_responses_that_no_api_sends_mean_a_wrong_base_url(word: str) -> None:
    with pytest.raises(RequestError, match=r"not a chat API \(<h1>nginx</h1>\)\. Give the part before") as caught:
        ask(Scripted(lambda _attempt, _now: RequestError(word, "<h1>nginx</h1>", status=200)))
    assert caught.value.code == "wrong_url"


class Unlucky(Scripted):
    """Refuses row 0 and answers every other."""

    async def ask(self, request: Request) -> Reply:
        """Refuse or answer."""
        if request.messages[0].text == "row 0":
            raise RequestError("rate_limited", "no")
        return await super().ask(request)


def test_a_row_that_is_always_refused_while_others_are_answered_ends_alone() -> None:
    async def main() -> RequestError:
        retrying = RetryingModel(Unlucky(lambda _, __: None), patience=60)

        async def others() -> None:
            while True:
                await retrying.ask(request(1))
                await asyncio.sleep(1)

        background = asyncio.create_task(others())
        await asyncio.sleep(0)
        try:
            await retrying.ask(request(0))
        except RequestError as failure:
            return failure
        finally:
            background.cancel()
        raise AssertionError

    assert run(main()).code == "rate_limited"


def test_a_fatal_error_ends_waiting_and_later_rows() -> None:
    async def main() -> tuple[float, list[str], int]:
        def fails(_attempt: int, now: float) -> RequestError | None:
            return RequestError("bad_key", status=401) if now >= 5 else RequestError("rate_limited", retry_after=200.0)

        model = Scripted(fails)
        retrying = RetryingModel(model, patience=1000)
        waiting = [asyncio.create_task(retrying.ask(request(n))) for n in range(10)]
        await asyncio.sleep(5)
        late = asyncio.create_task(retrying.ask(request(99)))
        found = await asyncio.gather(*waiting, late, return_exceptions=True)
        return (
            asyncio.get_running_loop().time(),
            [e.code for e in found if isinstance(e, RequestError)],
            len(model.times),
        )

    assert run(main()) == (5.0, ["bad_key"] * 11, 11)


def test_a_request_cancelled_while_waiting_leaves_no_timer() -> None:
    async def main() -> int:
        limiter = Limiter(4)
        model = LimitedModel(Scripted(first(1, RequestError("rate_limited", retry_after=100.0))), limiter)
        retrying = RetryingModel(model)
        tasks = [asyncio.create_task(retrying.ask(request(n))) for n in range(10)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (limiter.in_flight, limiter.waiting) == (0, 0)
        return len(asyncio.all_tasks())

    assert run(main()) == 1


def outcomes(script: ServerScript, transport: str, rows: int, **options: float) -> tuple[Counter[str], dict[str, int]]:
    """Ask rows of a real server; return what became of each, and which faults there were."""

    async def main() -> tuple[Counter[str], dict[str, int]]:
        async with serve_app(ServerApp(script)) as server:
            settings = LLMSettings.from_env({}, base_url=server.url, api_key="any", transport=transport, **options)
            async with open_model(settings) as model:
                found: Sequence[object] = await asyncio.gather(
                    *(model.ask(request(n)) for n in range(rows)), return_exceptions=True
                )
            words = Counter(each.code if isinstance(each, RequestError) else type(each).__name__ for each in found)
            return words, server.stats()["faults"]

    return asyncio.run(main())


FAST = {"retry_after_s": 0.01, "hang_s": 20.0, "drip_s": 8.0}


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_with_every_transient_fault_every_row_is_answered(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairwright.generators.llm.client.retrying.INITIAL_DELAY_S", 0.01)
    kinds = ["429", "429_bare", "500", "503", "reset", "half", "malformed", "wrong_type", "timeout", "drip"]
    script = ServerScript(faults=dict.fromkeys(kinds, 0.02), seed=3, **FAST)
    words, faults = outcomes(script, transport, 300, timeout=1.0, max_concurrency=64)
    assert words == Counter(Reply=300)
    assert set(faults) == set(kinds)


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_rows_with_permanent_errors_end_and_the_others_go_on(transport: str) -> None:
    kinds = {"400": "bad_request", "context_too_long": "context_too_long", "content_filter": "content_filter"}
    script = ServerScript(faults=dict.fromkeys(kinds, 0.1), seed=3)
    words, faults = outcomes(script, transport, 100)
    assert {kinds[kind]: count for kind, count in faults.items()} == {w: c for w, c in words.items() if w != "Reply"}
    assert words["Reply"] == 100 - sum(faults.values()) > 50


@pytest.mark.parametrize("transport", ["direct", "sdk"])
@pytest.mark.parametrize(("kind", "word"), [("401", "bad_key"), ("quota", "no_quota")])
def test_a_wrong_key_or_a_spent_account_stops_after_the_requests_under_way(
    kind: str, word: str, transport: str
) -> None:
    words, faults = outcomes(ServerScript(faults={kind: 1.0}), transport, 200, max_concurrency=4)
    assert words == Counter({word: 200})
    assert faults[kind] <= 4


def test_an_error_keeps_a_fix_of_its_own_when_it_is_copied_or_pickled() -> None:
    failure = RequestError("unknown_model", "404: no", status=404).copy(fix="Name one of: a, b.")
    assert str(failure) == "the server has no such model (404: no). Name one of: a, b."
    assert str(failure.copy()) == str(pickle.loads(pickle.dumps(failure))) == str(failure)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("word", REQUEST_ERROR_CODES)
def test_an_error_is_one_line_with_a_fix_and_survives_pickling(word: str) -> None:
    failure = RequestError(word, "a\nb " + "x" * 1000, status=418, retry_after=2.5)
    assert "\n" not in str(failure)
    assert len(str(failure)) < 600
    assert str(failure).endswith(failure.fix)
    assert not (failure.transient and failure.fatal)
    copy = pickle.loads(pickle.dumps(failure))  # noqa: S301 - our own bytes
    assert (str(copy), copy.code, copy.status, copy.retry_after) == (str(failure), word, 418, 2.5)


@pytest.mark.parametrize(("failing", "code"), [(2, ""), (3, "no_server")])
def test_a_busy_server_is_asked_three_times_though_each_attempt_to_connect_takes_longer_than_the_patience_at_the_start(
    failing: int, code: str
) -> None:
    class Slow(Scripted):
        async def ask(self, request: Request) -> Reply:
            if self.attempts[request.messages[0].text] < failing:
                await asyncio.sleep(12)  # until the attempt to connect is given up
            return await super().ask(request)

    model = Slow(first(failing, RequestError("unreachable")))
    try:
        ended = ask(model).text
    except RequestError as failure:
        ended = failure.code
    assert ended == (code or YES.text)
    assert len(model.times) == 3


def test_a_user_with_less_patience_waits_no_longer_at_the_start() -> None:
    model = Scripted(lambda *_: RequestError("unreachable"))
    with pytest.raises(RequestError):
        ask(model, patience=0.0)
    assert len(model.times) == 1
