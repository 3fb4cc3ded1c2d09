"""From settings to results, in plain code: opens cache, client and event loop, and runs rows through them.

    with Session(settings, cache=Path("llm-cache.sqlite")) as session:
        for done in session.run(Row(pair.key, partial(describe, pair)) for pair in pairs):
            ...

The layers from the outside in: ``outside`` (what changes requests before they are looked up), the cache, ``inside``
(what counts or changes those that are sent: budget, schema form), the client. They live as long as the session, so a
second run goes on at the pace that the first has found.

The event loop runs while `run` waits for rows, and stands still while the caller works on them: what is answered
meanwhile is read afterwards, and nothing more is asked. So a process that is killed then loses the answers to what it
had under way, ``max_concurrency`` at most, however long ago they were sent.

Ctrl-C and SIGTERM: no further request leaves, those under way have `SHUTDOWN_GRACE_S` seconds to be answered, all that is done
is given to the caller, then KeyboardInterrupt is raised. A second Ctrl-C ends at once. What was answered is in the
cache either way, so the same run started again asks for the rest only.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypeVar

from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Model
from pairwright.generators.llm.client.request_adaptation import RefusedParts
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.runner import LLMRow, LLMRun, RequestTotals, RowResult, RunMeter

T = TypeVar("T")

SHUTDOWN_GRACE_S = 5.0  # seconds that requests under way have when the user wants to stop
TICK_S = 0.05  # for which rows are gathered, so that the loop is not started for each
RESULT_BATCH = 256  # rows that are worth starting it for
WATCH_S = 0.25  # between two snapshots
RATE_S = 15.0  # seconds back that a rate looks

ModelWrapper = Callable[[Model], Model]
_log = logging.getLogger(__name__)


class StoppableModel(Model, Protocol):
    """The innermost model of a session."""

    def stop(self, failure: RequestError) -> None:
        """Let no request leave any more: those that wait end in ``failure``, those under way may be answered."""
        ...


ClientOpener = Callable[[LLMSettings, Cache], AbstractAsyncContextManager[StoppableModel]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far a run is.

    Attributes:
        rows: done.
        of: how many there are; 0: unknown.
        spent: by the whole session, and ``cost`` in USD, None where the price is unknown.
        seconds: since the run began.
        rate: rows a second, of the last `RATE_S` seconds.
        eta: seconds to go at this rate; None: unknown.
        failed: rows of the whole session with a request that got no answer, or an error of their own.
    """

    rows: int
    of: int
    spent: RequestTotals
    cost: float | None
    seconds: float
    rate: float
    eta: float | None
    failed: int = 0


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """What a session has done: rows, requests and tokens, USD (None: unknown price), and seconds of its runs."""

    rows: int
    spent: RequestTotals
    cost: float | None
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds if self.seconds else 0.0


class Session:
    """Cache, client and loop, for as long as a ``with`` lasts. One thread's alone."""

    def __init__(  # noqa: PLR0913 - keywords, each told of below
        self,
        settings: LLMSettings,
        *,
        cache: Path,
        outside: Sequence[ModelWrapper] = (),
        inside: Sequence[ModelWrapper] = (),
        refusals: RefusedParts | None = None,
        opened: ClientOpener | None = None,
        in_flight: int = 0,
        cost: Callable[[], float | None] = lambda: None,
        watch: Callable[[Snapshot], None] | None = None,
        say: Callable[[str], None] = _log.warning,
        stop: threading.Event | None = None,
    ) -> None:
        """Prepare.

        Args:
            settings: of the client.
            cache: file of answers; made when missing.
            outside: wrappers around the cache, innermost first.
            inside: wrappers between client and cache, innermost first.
            refusals: what models refuse, where a wrapper adapts to it; kept in the cache.
            opened: opens the client, in place of `open_model`; see `batch.in_batches`.
            in_flight: talks at once; 0: twice as many as requests at once and 16 more, since a row that waits to be
                asked again holds its talk but no place in the line.
            cost: tells what has been spent so far, in USD.
            watch: told how far a run is, at most every `WATCH_S` seconds.
            say: told in one line when the server is away or back, or the run is being stopped.
            stop: ends a run as Ctrl-C does, once it is set; for who runs a session in another thread.
        """
        self._settings, self._path, self._cost, self._watch, self._say = settings, cache, cost, watch, say
        self._outside, self._inside, self._refusals = outside, inside, refusals
        self._opened: ClientOpener = opened or (lambda settings, _: open_model(settings, say=say))
        self._in_flight = in_flight or 2 * settings.max_concurrency + 16
        self._stop = stop or threading.Event()
        self._meter = RunMeter()
        self._seconds = 0.0
        self._runs: list[ExitStack] = []  # what the runs that are under way have open
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open everything.

        Raises:
            StorageError: the cache cannot be opened.
            UsageError: the settings cannot work.
        """
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner(loop_factory=new_event_loop))
            cache = stack.enter_context(Cache.open(self._path))
            opening = self._opened(self._settings, cache)
            self._client = self._wait(opening.__aenter__())
            stack.callback(lambda: self._wait(opening.__aexit__(None, None, None)))
            self._model = self._layers(cache)
            stack.callback(self._give_up)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close everything.

        Raises:
            StorageError: answers could not be written.
        """
        self._stack.close()

    def run(self, rows: Iterable[LLMRow[T]], *, of: int = 0) -> Iterator[RowResult[T]]:
        """Give the rows as they end, in their order; see `runner.run_rows`, which names the errors, too.

        Args:
            rows: read as there is room for them; they must not come out of this same session.
            of: how many there are, where that is known, for the watcher.

        Raises:
            KeyboardInterrupt: after Ctrl-C or SIGTERM, when all that is done has been given. As after any error that
                ends a run, this session then asks nothing more.
        """
        run = LLMRun(rows, self._model, in_flight=self._in_flight, meter=self._meter)
        pace, before = _Pace(self._meter.rows, of), self._seconds
        hurry, hurried = threading.Event(), False
        with ExitStack() as stack:
            self._runs.append(stack)
            stack.callback(lambda: self._runs.remove(stack))
            stack.enter_context(_signals(self._stop, hurry, self._say))
            stack.callback(lambda: self._wait(run.close()))
            halted = self._stop.is_set()
            if halted:  # before anything is sent
                self._wait(self._halt(run))
            while not run.over:
                if hurry.is_set() and not hurried:
                    hurried = True
                    self._wait(self._halt(run, 0.0))
                batch = self._wait(run.ready(TICK_S, enough=RESULT_BATCH))
                self._seconds = before + pace.seconds()
                if self._watch is not None and pace.due():
                    self._watch(pace.snapshot(self._meter, self._cost()))
                if run.ending and not halted:
                    halted = True
                    self._wait(self._halt())
                yield from batch
                if self._stop.is_set() and not halted:
                    halted = True
                    self._wait(self._halt(run))
        if self._watch is not None:
            self._watch(pace.snapshot(self._meter, self._cost()))
        run.check()

    def totals(self) -> SessionTotals:
        """Return what the session has done so far."""
        return SessionTotals(self._meter.rows, self._meter.spent, self._cost(), self._seconds)

    def _give_up(self) -> None:
        # An exception in the caller's loop leaves the generator hanging until after the session's end.
        for stack in list(self._runs):
            stack.close()

    async def _halt(self, run: LLMRun[Any] | None = None, grace: float = SHUTDOWN_GRACE_S) -> None:
        """Let no request leave any more; a run that has not ended by itself ends in KeyboardInterrupt."""
        if run is not None:
            run.stop(KeyboardInterrupt(), grace)
        self._client.stop(RequestError("interrupted"))

    def _layers(self, cache: Cache) -> Model:
        model: Model = self._client
        settings = self._settings
        if self._refusals is not None:
            self._refusals.persist_in(cache, settings.cache_endpoint)
        for wrap in self._inside:
            model = wrap(model)
        model = CachedModel(model, cache, settings.cache_endpoint, secrets=settings.secrets())
        for wrap in self._outside:
            model = wrap(model)
        return model

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)


class _Pace:
    """Rows a second, and when to tell of it."""

    def __init__(self, before: int, of: int) -> None:
        self._before, self._of = before, of
        self._began = time.monotonic()
        self._told = 0.0
        self._seen: deque[tuple[float, int]] = deque([(self._began, 0)])

    def seconds(self) -> float:
        """Return the time since the run began."""
        return time.monotonic() - self._began

    def due(self) -> bool:
        """Return whether it is time for a snapshot."""
        return time.monotonic() - self._told >= WATCH_S

    def snapshot(self, meter: RunMeter, cost: float | None) -> Snapshot:
        """Return how far the run is."""
        now, rows = time.monotonic(), meter.rows - self._before
        self._told = now
        self._seen.append((now, rows))
        while len(self._seen) > 2 and now - self._seen[1][0] > RATE_S:
            self._seen.popleft()
        then, had = self._seen[0]
        rate = (rows - had) / (now - then) if now > then else 0.0
        eta = max(0, self._of - rows) / rate if self._of and rate else None
        return Snapshot(rows, self._of, meter.spent, cost, now - self._began, rate, eta, meter.failed)


@contextlib.contextmanager
def _signals(stop: threading.Event, hurry: threading.Event, say: Callable[[str], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set an event, and a second one of either another.

    Where somebody else handles them already, or in any other thread than the main one, they are left alone.
    """

    def heard(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signals are handed over
        if stop.is_set():
            hurry.set()
            return
        stop.set()
        say("stopping: what is under way has a moment to end. Once more ends at once")

    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    for number in ours:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, usual[number])
