"""Runner of LLM steps: many rows concurrently, with results in the order of the rows.

Rows are read from an iterator as there is room: ``in_flight`` rows run at a time, and at most `LOOK_AHEAD` more have
finished and wait for an older one. So a row that is retried for half a minute does not delay the others, and a million
rows are never in memory.

Outcome of a row:
- The result of its step. A `RequestError` is one of the outcomes that a step receives, and does not end it.
- `RowResult.error` when its step raises an error of this row alone (`InputError`, a `RequestError`).

A run ends early when no other row could succeed: after a fatal request error, when the cache cannot be written, rows
cannot be read, a step has a bug, or nearly all rows fail alike. Then no row is started; rows in flight have some seconds
to finish, since their answers are billed. All finished rows are returned before the error is raised.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Generic, TypeVar

from pairwright.datasets.errors import MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.generators.llm.client.chat_completions import parse_reasoning
from pairwright.generators.llm.client.messages import Model, Reply, Request
from pairwright.generators.llm.client.parameter_overrides import as_resampled
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome

T = TypeVar("T")
U = TypeVar("U")

LOOK_AHEAD = 8192  # finished rows that may wait for an older one
GRACE_S = 30.0  # seconds for requests in flight when a run ends early
MAX_SAID_CHARS = 2000  # characters of a row's last answer in the file of failed rows

# A run ends when this share of the latest rows, and at least so many, fail alike.
MIN_FAILING_ROWS, FAILURE_WINDOW, FAILING_SHARE = 50, 200, 0.9

_YIELD_EVERY = 32  # rows after which a worker yields to the others: answers from the cache never wait


@dataclass(frozen=True, slots=True)
class LLMRow(Generic[T]):
    """A row to run a step for.

    Attributes:
        name: unique name, used in messages and in the file of failed rows.
        step: returns a new step for an attempt.
        attempt: from 0; a higher one bypasses the cached answers of the attempts before.
        size: rows that it counts as in progress, for a step about several.
    """

    name: str
    step: Callable[[int], LLMStep[T]]
    attempt: int = 0
    size: int = 1


@dataclass(slots=True)
class RequestTotals:
    """Requests and tokens of a row or a run.

    Attributes:
        requests: billed requests.
        cached: requests answered by the cache, or by an equal request of another row in flight.
        prompt_tokens, completion_tokens: tokens of the billed requests.
        cached_tokens: prompt tokens among them that the server bills at the lower price of its own cache.
        kept_prompt_tokens, kept_completion_tokens: tokens of the answers from the cache, billed earlier.
        shared: requests among all of these whose answer another row of the run uses, too (equal captions); its tokens
            count once. Exact in the sum over a run; a single row may count tokens that another one subtracts.
        alone: requests among all of these about an item whose part of a shared answer was missing or unusable.
    """

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    kept_prompt_tokens: int = 0
    kept_completion_tokens: int = 0
    shared: int = 0
    alone: int = 0

    @property
    def answers(self) -> int:
        """Distinct answers that the rows use."""
        return self.requests + self.cached - self.shared

    def __add__(self, other: "RequestTotals") -> "RequestTotals":
        return RequestTotals(  # written out: every row is added
            self.requests + other.requests,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.kept_prompt_tokens + other.kept_prompt_tokens,
            self.kept_completion_tokens + other.kept_completion_tokens,
            self.shared + other.shared,
            self.alone + other.alone,
        )

    def since(self, before: "RequestTotals") -> "RequestTotals":
        """Return the difference to an earlier state of the same totals."""
        mine, earlier = astuple(self), astuple(before)
        return RequestTotals(*(now - then for now, then in zip(mine, earlier, strict=True)))


@dataclass(slots=True)
class RowRequests:
    """Requests of a row, or of one of its items, and how they ended.

    Attributes:
        seen_keys: hashes of the cache keys of all answers of the run so far.
        spent: requests and tokens.
        unanswered: requests without an answer.
        keys: cache keys of the answers.
        said: beginning of the last answer or refusal, at most `MAX_SAID_CHARS` characters.
        failure: error of the last request without an answer; None if all were answered.
        reasoning: share of reasoning in the tokens of the last answer, if it has no text or was cut off.
    """

    seen_keys: set[int] = field(default_factory=set, repr=False)
    spent: RequestTotals = field(default_factory=RequestTotals)
    unanswered: int = 0
    keys: list[str] = field(default_factory=list)
    said: str = ""
    failure: RequestError | None = None
    reasoning: str = ""

    @property
    def detail(self) -> str:
        """The server's message about the last request without an answer, else the share of reasoning; or empty."""
        return (self.failure.detail if self.failure is not None else "") or self.reasoning

    def count(self, requests: Sequence[Request], outcomes: Sequence[RequestOutcome]) -> None:
        """Count the requests of one round and their outcomes.

        Raises:
            RequestError: a fatal one.
        """
        for outcome in outcomes:
            if isinstance(outcome, Reply):
                self._add(outcome)
            else:
                self.unanswered += 1
                self.failure = outcome.with_traceback(None)  # which would keep every frame of the request
        if self.failure is not None:
            for outcome in outcomes:
                if isinstance(outcome, RequestError) and outcome.fatal:
                    raise outcome
        self.spent.alone += sum(request.is_alone for request in requests)

    def _add(self, reply: Reply) -> None:
        self.said = (reply.text or reply.refusal)[:MAX_SAID_CHARS]
        cut = not self.said or reply.finish_reason == "length"
        self.reasoning = parse_reasoning(reply.raw).share if cut else ""
        if reply.cached and reply.key and reply.key in self.keys:
            return  # an equal request of the same row: one answer, billed once
        self.keys.append(reply.key)
        usage, spent, shared = reply.usage, self.spent, self._is_shared(reply.key)
        spent.shared += shared
        if reply.cached:
            spent.cached += 1
            if not shared:
                spent.kept_prompt_tokens += usage.prompt_tokens
                spent.kept_completion_tokens += usage.completion_tokens
            return
        if shared:  # a row that waited for this answer finished first, and counted it as a cached one
            spent.kept_prompt_tokens -= usage.prompt_tokens
            spent.kept_completion_tokens -= usage.completion_tokens
        spent.requests += 1
        spent.prompt_tokens += usage.prompt_tokens
        spent.completion_tokens += usage.completion_tokens
        spent.cached_tokens += usage.cached_tokens

    def _is_shared(self, key: str) -> bool:
        """Return whether another row uses the answer with this cache key, too, and remember the key."""
        if not key:
            return False
        digest = hash(key)
        if digest in self.seen_keys:
            return True
        self.seen_keys.add(digest)
        return False


@dataclass(frozen=True, slots=True)
class RowResult(Generic[T]):
    """A finished row, or one of its items.

    Attributes:
        row: its name; empty until the run, or the row of an item, gives it one.
        result: return value of its step; None if it raised.
        error: that the step raised; None if it returned.
        requests: of the step.
        attempt: from 0.
    """

    row: str
    result: T | None
    error: PairwrightError | None
    requests: RowRequests
    attempt: int = 0

    @property
    def error_code(self) -> str:
        """The reason code of `error`; empty if there is none."""
        if self.error is None:
            return ""
        return self.error.code if isinstance(self.error, RequestError) else "bad_row"

    def with_result(self, result: U, *, row: str, attempt: int) -> "RowResult[U]":
        """Return this row with another result, name and attempt: a third of the time of `dataclasses.replace`."""
        return RowResult(row, result, self.error, self.requests, attempt)


def run_item(
    step: LLMStep[T], requests: RowRequests | None = None, *, row: str = "", attempt: int = 0
) -> LLMStep[RowResult[T]]:
    """Run a step and return its result; an error that concerns this row or item alone is part of it.

    Args:
        step: of a row, or of one of several items of a row.
        requests: counts the requests; None: new counts.
        row: its name; empty: the caller names it.
        attempt: of the row.
    """
    requests = requests or RowRequests()
    result, error = None, None
    try:
        asked = next(step)
        while True:
            outcomes = yield asked
            requests.count(asked, outcomes)
            asked = step.send(outcomes)
    except StopIteration as end:
        result = end.value
    except PairwrightError as raised:
        if concerns_all_rows(raised):
            raise
        error = raised
    return RowResult(row, result, error, requests, attempt)


def concerns_all_rows(error: PairwrightError) -> bool:
    """Return whether an error of a step ends the run, since no other row could succeed."""
    of_all = isinstance(error, UsageError | StorageError | MissingResourceError | BrokenStepError | MostlyFailingError)
    return of_all or (isinstance(error, RequestError) and error.fatal)


class MostlyFailingError(PairwrightError):
    """Nearly all rows fail alike, so that the cause is not in the rows."""


class BrokenStepError(PairwrightError):
    """A step raised an exception that no row can cause: a bug. `__cause__` is the exception."""


@dataclass(slots=True)
class RunMeter:
    """Progress of a run; ``failed`` counts rows with an error or a request without an answer."""

    rows: int = 0
    failed: int = 0
    spent: RequestTotals = field(default_factory=RequestTotals)


class LLMRun(Generic[T]):
    """A run of rows, whose results are collected by `ready`; `check` raises what ended the run early.

    Args:
        rows: read on the event loop, as there is room.
        model: answers the requests.
        in_flight: concurrent steps. An eighth more than concurrent requests keeps the client busy.
        look_ahead: finished rows that may wait for an older one.
        meter: counts the rows, for callers that watch.
    """

    def __init__(
        self,
        rows: Iterable[LLMRow[T]],
        model: Model,
        *,
        in_flight: int,
        look_ahead: int = LOOK_AHEAD,
        meter: RunMeter | None = None,
    ) -> None:
        self._rows, self._model = iter(rows), model
        self._in_flight, self._max_unread = in_flight, in_flight + look_ahead
        self.meter = meter or RunMeter()
        self._begun = self._whole = self._given = 0  # rows: started, finished without a gap before them, returned
        self._ended: dict[int, RowResult[T]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._started = False
        self._error: BaseException | None = None
        self._until = 0.0
        self._failing = _FailureDetector()
        self._seen_keys: set[int] = set()  # hashes of the cache keys of all answers so far
        self._room, self._wake = asyncio.Event(), asyncio.Event()
        self._enough = 1

    @property
    def over(self) -> bool:
        """Whether all results are returned."""
        return self._started and not self._workers and not self._ended

    @property
    def ending(self) -> bool:
        """Whether the run ends early."""
        return self._error is not None

    def check(self) -> None:
        """Raise the error that ended the run, if there is one.

        Raises:
            RequestError: a fatal one.
            MostlyFailingError: nearly all rows fail alike.
            BrokenStepError: a step has a bug.
            PairwrightError: rows cannot be read, or answers cannot be stored.
        """
        if self._error is not None:
            raise self._error

    async def ready(self, within: float, *, enough: int) -> list[RowResult[T]]:
        """Return the next finished rows in order, as soon as there are ``enough`` or all, or after ``within`` seconds."""
        if not self._started:
            self._start()
        self._enough = min(enough, self._max_unread)
        if self._workers and self._whole - self._given < self._enough:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._wake.wait()
        if self._error is not None and self._workers and asyncio.get_running_loop().time() >= self._until:
            await self.close()
        return self._take()

    async def nothing(self, within: float) -> list[RowResult[T]]:
        """Run for some seconds and return no results, for a caller that cannot take any."""
        if not self._started:
            self._start()
        await asyncio.sleep(within)
        return []

    def stop(self, error: BaseException, grace: float = GRACE_S) -> None:
        """End the run with an error (the first one counts); rows in flight have ``grace`` seconds to finish."""
        until = asyncio.get_running_loop().time() + grace
        self._until = min(self._until, until) if self._error is not None else until
        self._error = self._error or error
        self._room.set()
        self._wake.set()

    def _start(self) -> None:
        self._started = True
        loop = asyncio.get_running_loop()
        self._workers = {loop.create_task(self._work()) for _ in range(self._in_flight)}
        for worker in self._workers:
            worker.add_done_callback(self._gone)

    def _gone(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not self._workers:
            self._error = self._error or self._failing.at_end()
            self._wake.set()

    async def close(self) -> None:
        """Cancel the rows in flight."""
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._workers.clear()

    def _take(self) -> list[RowResult[T]]:
        ended = self._ended
        if self._workers:
            given = [ended.pop(number) for number in range(self._given, self._whole)]
            self._given = self._whole
        else:  # the run is over: gaps are cancelled rows
            given = [ended[number] for number in sorted(ended)]
            ended.clear()
        if given:
            self._room.set()
        return given

    async def _work(self) -> None:
        try:
            while self._error is None:
                if self._begun - self._given >= self._max_unread:
                    self._room.clear()
                    await self._room.wait()
                    continue
                row = next(self._rows, None)
                if row is None:
                    return
                number = self._begun
                self._begun = number + 1
                done = await self._run_step(row)
                self._end(number, done, row.size)
                if number % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001 - any error ends the run, and `check` raises it
            self.stop(error)

    def _end(self, number: int, done: RowResult[T], size: int) -> None:
        self.meter.rows += size
        self.meter.failed += size * bool(done.requests.unanswered or done.error)
        ended = self._ended
        ended[number] = done
        if number == self._whole:
            number += 1
            while number in ended:
                number += 1
            self._whole = number
            if number - self._given >= self._enough:
                self._wake.set()

    async def _run_step(self, row: LLMRow[T]) -> RowResult[T]:
        requests = RowRequests(self._seen_keys)
        step = run_item(_named_step(row), requests, row=row.name, attempt=row.attempt)
        try:
            asked = next(step)
            while True:
                if row.attempt:
                    asked = [*map(as_resampled, asked)]
                asked = step.send(await self._ask_all(asked))
        except StopIteration as end:
            done: RowResult[T] = end.value
        finally:
            self.meter.spent += requests.spent  # billed even if the row does not finish
        self._failing.note(requests, row.size)
        return done

    async def _ask_all(self, requests: Sequence[Request]) -> list[RequestOutcome]:
        if len(requests) == 1:
            return [await self._ask(requests[0])]
        asking = [asyncio.ensure_future(self._ask(request)) for request in requests]
        try:
            return await asyncio.gather(*asking)
        except BaseException:
            for task in asking:
                task.cancel()
            raise

    async def _ask(self, request: Request) -> RequestOutcome:
        try:
            return await self._model.ask(request)
        except RequestError as failure:
            return failure


def _named_step(row: LLMRow[T]) -> LLMStep[T]:
    """Run the step of a row; name the row in the error for a bug of the step."""
    try:
        return (yield from row.step(row.attempt))
    except PairwrightError:
        raise
    except Exception as error:
        raise BrokenStepError(
            f"row {row.name}: the generator raised {type(error).__name__}: {error}. This is a bug in the generator."
        ) from error


class _FailureDetector:
    """Detects that nearly all rows fail alike without an answer, or that no row of a short run got one."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=FAILURE_WINDOW)
        self._counts: Counter[str] = Counter()
        self._unanswered = 0
        self._some_can_succeed = False  # a row got an answer, or the cause was in the row
        self._latest: RequestError | None = None

    def note(self, requests: RowRequests, size: int) -> None:
        """Count a step, which is about ``size`` rows.

        Raises:
            MostlyFailingError: too many of the latest rows failed alike.
        """
        if not requests.keys and requests.failure is None:
            return  # no requests
        failure = requests.failure if not requests.keys else None
        self._some_can_succeed |= failure is None or not failure.transient
        if len(self._last) == FAILURE_WINDOW and self._last[0]:
            self._counts[self._last[0]] -= 1
        self._last.append(failure.code if failure is not None else "")
        if failure is None:
            return
        self._unanswered, self._latest = self._unanswered + size, failure
        self._counts[failure.code] += 1
        if self._counts[failure.code] >= max(MIN_FAILING_ROWS, FAILING_SHARE * len(self._last)):
            raise MostlyFailingError(
                f"{self._counts[failure.code]} of the last {len(self._last)} rows failed alike. Last error: {failure}"
                " Finished rows are kept."
            )

    def at_end(self) -> MostlyFailingError | None:
        """Return the error of a run in which no row got an answer for a reason that is not in the rows, if it is one."""
        if self._some_can_succeed or self._latest is None:
            return None
        return MostlyFailingError(f"none of {self._unanswered} rows got an answer. Last error: {self._latest}")
