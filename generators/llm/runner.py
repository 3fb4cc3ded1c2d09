"""Holds many talks at once and gives their results in the order of the rows, however many there are.

Rows come from an iterator that is read only as far as there is room: `in_flight` rows are held at once, and at most
`LOOK_AHEAD` more are finished and wait for an older one, so that a row that is asked again for half a minute does not
hold up the others, and a million rows are never in memory.

What becomes of a row:
- Its talk ends: its result. A `Failure` is one of the outcomes that a talk is given, and no end.
- Its talk raises what concerns this row alone (`InputError`, a `Failure`): `Done.error`.

What ends the run, for no other row could fare better: a fatal failure, a cache that cannot be written, rows that
cannot be read, a talk with a bug in it, nearly all rows failing alike. No row is begun then; those under way may end,
for some seconds, since their answers are being paid for. All that is finished is given before the error is raised.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Generic, TypeVar

from pairwright.datasets.errors import MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.generators.llm.client.chat_completions import parse_reasoning
from pairwright.generators.llm.client.messages import Model, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome
from pairwright.generators.llm.seen_keys import SeenCacheKeys

T = TypeVar("T")

LOOK_AHEAD = 8192  # rows that are finished and wait for an older one, at most
GRACE_S = 30.0  # seconds that requests under way have to end when the run has ended
MAX_SAID_CHARS = 2000  # letters of a row's last answer that are kept for who looks into failed rows

MIN_FAILING_ROWS, FAILURE_WINDOW, FAILING_SHARE = (
    50,
    200,
    0.9,
)  # rows that must be seen, are looked at, and the share that ends the run

_TURN = 32  # rows that a worker may finish before others have their turn: answers from the cache never wait


@dataclass(frozen=True, slots=True)
class LLMRow(Generic[T]):
    """A row to hold a talk about.

    Attributes:
        name: in messages, and in the file of failed rows; one row's alone.
        talk: gives a fresh talk for an attempt.
        attempt: from 0; a higher one asks anew what was answered before.
    """

    name: str
    talk: Callable[[int], LLMStep[T]]
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """What was asked and paid for.

    Attributes:
        requests: that were answered and paid for.
        cached: that the cache answered, or an equal request of another row at the same moment.
        prompt_tokens, completion_tokens: of the paid ones.
        cached_tokens: of those prompt tokens that the server bills for less.
        kept_prompt_tokens, kept_completion_tokens: of the answers that the cache gave, paid for some time before.
        shared: of the requests above, those whose answer another row of the run rests on, too (equal captions): there
            are so many fewer answers than requests, and its tokens are counted once. A sum over all rows of a run; a
            single row may tell tokens that another one has to give back.
    """

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    kept_prompt_tokens: int = 0
    kept_completion_tokens: int = 0
    shared: int = 0

    @property
    def answers(self) -> int:
        """Different answers that the rows rest on."""
        return self.requests + self.cached - self.shared

    def __add__(self, other: "RequestTotals") -> "RequestTotals":
        return RequestTotals(
            self.requests + other.requests,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.kept_prompt_tokens + other.kept_prompt_tokens,
            self.kept_completion_tokens + other.kept_completion_tokens,
            self.shared + other.shared,
        )

    def since(self, before: "RequestTotals") -> "RequestTotals":
        """Return what was spent after ``before``."""
        mine, earlier = astuple(self), astuple(before)
        return RequestTotals(*(now - then for now, then in zip(mine, earlier, strict=True)))


@dataclass(frozen=True, slots=True)
class RowResult(Generic[T]):
    """A row that has ended.

    Attributes:
        row: its name.
        result: what its talk returned; None when it raised.
        error: what its talk raised; None when it returned.
        spent: on this row.
        attempt: the row's.
        unanswered: requests that ended in a failure.
        keys: of the answers, in the cache.
        said: the beginning of the last answer, `MAX_SAID_CHARS` letters at most, or of the refusal.
        failure: the last of those failures, in words of the server; empty where every request was answered.
        reasoning: which part of the last answer's tokens was reasoning, where it has no text or was cut off.
    """

    row: str
    result: T | None
    error: PairwrightError | None
    spent: RequestTotals
    attempt: int = 0
    unanswered: int = 0
    keys: tuple[str, ...] = ()
    said: str = ""
    failure: str = ""
    reasoning: str = ""

    @property
    def error_code(self) -> str:
        """The reason code of `error`; empty if there is none."""
        if self.error is None:
            return ""
        return self.error.word if isinstance(self.error, RequestError) else "bad_row"


class MostlyFailingError(PairwrightError):
    """Nearly all rows end in the same failure, so that the cause is none of the rows'."""


class BrokenStepError(PairwrightError):
    """A talk raised what no row can cause: it has a bug. The cause is the exception."""


@dataclass(slots=True)
class RunMeter:
    """What a run has done so far; ``failed`` are rows with a request that got no answer, or an error of their own."""

    rows: int = 0
    failed: int = 0
    spent: RequestTotals = field(default_factory=RequestTotals)

    def add(self, spent: RequestTotals) -> None:
        """Count what a row has cost, be it finished or not."""
        self.spent += spent


async def run_rows(
    rows: Iterable[LLMRow[T]], model: Model, *, in_flight: int, look_ahead: int = LOOK_AHEAD
) -> AsyncGenerator[RowResult[T], None]:
    """Hold the talks of all rows; give them as they end, in the order of the rows.

    Args:
        rows: read on the event loop, as there is room for them.
        model: asked.
        in_flight: talks at once. An eighth more than requests may leave at once keeps the line full.
        look_ahead: rows that may be finished and wait for an older one.

    Raises:
        Failure: a fatal one.
        MostlyFailing: see there.
        BrokenTalk: see there.
        PairwrightError: rows cannot be read, or answers not be kept.
    """
    run = LLMRun(rows, model, in_flight=in_flight, look_ahead=look_ahead)
    try:
        while not run.over:
            for done in await run.ready(1.0, enough=1):
                yield done
    finally:
        await run.close()
    run.check()


class LLMRun(Generic[T]):
    """The rows under way. `run_rows` for who cannot sit in the event loop; see `session`."""

    def __init__(
        self,
        rows: Iterable[LLMRow[T]],
        model: Model,
        *,
        in_flight: int,
        look_ahead: int = LOOK_AHEAD,
        meter: RunMeter | None = None,
    ) -> None:
        """Prepare; inside or outside of the event loop. For the arguments see `run_rows`."""
        self._rows, self._model = iter(rows), model
        self._in_flight, self._most = in_flight, in_flight + look_ahead
        self.meter = meter or RunMeter()
        self._begun = self._whole = self._given = 0  # rows: begun, ended without a gap before them, given away
        self._ended: dict[int, RowResult[T]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._started = False
        self._error: BaseException | None = None
        self._until = 0.0
        self._failing, self._met = _FailureDetector(), SeenCacheKeys()
        self._room = asyncio.Event()
        self._wake: asyncio.Future[None] | None = None
        self._enough = 1

    @property
    def over(self) -> bool:
        """Whether every row is given away that will be."""
        return self._started and not self._workers and not self._ended

    @property
    def ending(self) -> bool:
        """Whether something has ended the run."""
        return self._error is not None

    def check(self) -> None:
        """Raise what has ended the run, if something has."""
        if self._error is not None:
            raise self._error

    async def ready(self, within: float, *, enough: int) -> list[RowResult[T]]:
        """Return finished rows, the next in order: as soon as there are ``enough`` or all, else after ``within`` s."""
        if not self._started:
            self._start()
        self._enough = min(enough, self._most)
        if self._workers and self._whole - self._given < self._enough:
            await self._wait(within)
        if self._error is not None and self._workers and asyncio.get_running_loop().time() >= self._until:
            await self._cancel()
        return self._take()

    def stop(self, error: BaseException, grace: float = GRACE_S) -> None:
        """End the run: begin no row, and leave those under way ``grace`` seconds. The first error is the one."""
        until = asyncio.get_running_loop().time() + grace
        self._until = min(self._until, until) if self._error is not None else until
        self._error = self._error or error
        self._room.set()
        self._rouse()

    async def close(self) -> None:
        """Give up what is under way."""
        await self._cancel()

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
            self._rouse()

    async def _wait(self, within: float) -> None:
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        timer = loop.call_later(within, self._rouse)
        try:
            await self._wake
        finally:
            timer.cancel()
            self._wake = None

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _cancel(self) -> None:
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
        else:  # nothing more will come: gaps are rows that were given up
            given = [ended[number] for number in sorted(ended)]
            ended.clear()
        if given:
            self._room.set()
        return given

    async def _work(self) -> None:
        try:
            while self._error is None:
                if self._begun - self._given >= self._most:
                    self._room.clear()
                    await self._room.wait()
                    continue
                row = next(self._rows, None)
                if row is None:
                    return
                number = self._begun
                self._begun = number + 1
                done = await self._hold(row)
                self._end(number, done)
                if number % _TURN == 0:
                    await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001 - whatever it is ends the run, and is raised by `check`
            self.stop(error)

    def _end(self, number: int, done: RowResult[T]) -> None:
        self.meter.rows += 1
        self.meter.failed += bool(done.unanswered or done.error)
        ended = self._ended
        ended[number] = done
        if number == self._whole:
            number += 1
            while number in ended:
                number += 1
            self._whole = number
            if number - self._given >= self._enough:
                self._rouse()

    async def _hold(self, row: LLMRow[T]) -> RowResult[T]:
        tally = _RowTotals(self._met)
        try:
            stage = _start_step(row)
            while isinstance(stage, _WaitingStep):
                requests = stage.requests
                if row.attempt:
                    requests = [replace(request, anew=True) for request in requests]
                outcomes = await self._round(requests)
                tally.count(outcomes)
                stage = _resume_step(row, stage.talk, outcomes)
        finally:
            spent = tally.spent()
            self.meter.add(spent)  # what was paid for counts, though the row may never end
        self._failing.note(tally)
        return RowResult(
            row.name,
            stage.result,
            stage.error,
            spent,
            row.attempt,
            tally.unanswered,
            tuple(tally.keys),
            tally.said,
            tally.failure.detail if tally.failure is not None else "",
            tally.reasoning,
        )

    async def _round(self, requests: Sequence[Request]) -> list[RequestOutcome]:
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


@dataclass(slots=True)
class _WaitingStep(Generic[T]):
    """A talk that waits for outcomes."""

    talk: LLMStep[T]
    requests: Sequence[Request]


@dataclass(slots=True)
class _FinishedStep(Generic[T]):
    """What a talk came to."""

    result: T | None = None
    error: PairwrightError | None = None


def _start_step(row: LLMRow[T]) -> _WaitingStep[T] | _FinishedStep[T]:
    try:
        talk = row.talk(row.attempt)
    except Exception as error:  # noqa: BLE001 - sorted there
        return _FinishedStep(error=_row_error(row, error))
    return _resume_step(row, talk, None)


def _resume_step(
    row: LLMRow[T], talk: LLMStep[T], outcomes: Sequence[RequestOutcome] | None
) -> _WaitingStep[T] | _FinishedStep[T]:
    try:
        return _WaitingStep(talk, next(talk) if outcomes is None else talk.send(outcomes))
    except StopIteration as end:
        return _FinishedStep(end.value)
    except Exception as error:  # noqa: BLE001 - sorted there
        return _FinishedStep(error=_row_error(row, error))


def _row_error(row: LLMRow[T], error: Exception) -> PairwrightError:
    """Return an error that concerns this row alone; raise any other."""
    if not isinstance(error, PairwrightError):
        raise BrokenStepError(
            f"row {row.name}: the maker broke ({type(error).__name__}: {error}). This is a bug of the maker's."
        ) from error
    of_all = isinstance(error, UsageError | StorageError | MissingResourceError | BrokenStepError | MostlyFailingError)
    if of_all or (isinstance(error, RequestError) and error.fatal):
        raise error
    return error


@dataclass(slots=True)
class _RowTotals:
    """What one row has cost, and how its requests ended."""

    met: SeenCacheKeys  # answers of all rows of the run
    requests: int = 0
    cached: int = 0
    prompt: int = 0
    completion: int = 0
    prompt_cached: int = 0
    prompt_kept: int = 0
    completion_kept: int = 0
    shared: int = 0
    unanswered: int = 0
    keys: list[str] = field(default_factory=list)
    said: str = ""
    failure: RequestError | None = None  # the last one
    reasoning: str = ""

    def count(self, outcomes: Sequence[RequestOutcome]) -> None:
        """Count a round.

        Raises:
            Failure: a fatal one.
        """
        for outcome in outcomes:
            if isinstance(outcome, Reply):
                self._answered(outcome)
            else:
                self.unanswered += 1
                self.failure = outcome
        if self.failure is not None:
            for outcome in outcomes:
                if isinstance(outcome, RequestError) and outcome.fatal:
                    raise outcome

    def _answered(self, reply: Reply) -> None:
        self.said = (reply.text or reply.refusal)[:MAX_SAID_CHARS]
        cut = not self.said or reply.finish_reason == "length"
        self.reasoning = parse_reasoning(reply.raw).share if cut else ""
        if reply.cached and reply.key and reply.key in self.keys:
            return  # the row asked so before: it rests on one answer, which was paid once
        self.keys.append(reply.key)
        usage, again = reply.usage, bool(reply.key) and not self.met.add(reply.key)
        self.shared += again
        if reply.cached:
            self.cached += 1
            if not again:
                self.prompt_kept += usage.prompt_tokens
                self.completion_kept += usage.completion_tokens
            return
        if again:  # a row that waited for this answer was done first, and took it for one that was kept
            self.prompt_kept -= usage.prompt_tokens
            self.completion_kept -= usage.completion_tokens
        self.requests += 1
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        self.prompt_cached += usage.cached_tokens

    def spent(self) -> RequestTotals:
        """Return the row's part of the bill."""
        return RequestTotals(
            self.requests,
            self.cached,
            self.prompt,
            self.completion,
            self.prompt_cached,
            self.prompt_kept,
            self.completion_kept,
            self.shared,
        )


class _FailureDetector:
    """Sees when nearly all rows get the same failure and no answer, or when no row of a short run got any."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=FAILURE_WINDOW)
        self._counts: Counter[str] = Counter()
        self._unanswered = 0
        self._spares_the_rest = False  # a row got an answer, or was itself at fault
        self._latest: RequestError | None = None

    def note(self, tally: _RowTotals) -> None:
        """Take note of a row.

        Raises:
            MostlyFailing: this one makes them too many.
        """
        if not tally.keys and tally.failure is None:
            return  # it asked nothing
        failure = tally.failure if not tally.keys else None
        self._spares_the_rest |= failure is None or not failure.transient
        if len(self._last) == FAILURE_WINDOW and self._last[0]:
            self._counts[self._last[0]] -= 1
        self._last.append(failure.word if failure is not None else "")
        if failure is None:
            return
        self._unanswered, self._latest = self._unanswered + 1, failure
        self._counts[failure.word] += 1
        if self._counts[failure.word] >= max(MIN_FAILING_ROWS, FAILING_SHARE * len(self._last)):
            raise MostlyFailingError(
                f"{self._counts[failure.word]} of the last {len(self._last)} rows ended alike. The last one: {failure}"
                " What is done is kept."
            )

    def at_end(self) -> MostlyFailingError | None:
        """Return what is wrong with a run in which no row got an answer, though nothing was wrong with the rows."""
        if self._spares_the_rest or self._latest is None:
            return None
        return MostlyFailingError(
            f"no row got an answer, of {self._unanswered} that asked. The last one: {self._latest}"
        )
