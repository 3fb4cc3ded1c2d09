"""Sessions: cache, client and event loop, and rows that run through them, for synchronous callers.

    with Session(settings, cache=Path("llm-cache.sqlite")) as session:
        for done in session.run(LLMRow(pair.key, partial(describe, pair)) for pair in pairs):
            ...

Layers from the outside in: the cache (of requests changed by ``prepare``), ``inside`` (wrappers that count or change sent
requests: budget, response format), the client. They live as long as the session, so that a second run continues at the
pace of the first.

The event loop runs while `Session.run` waits for rows, and pauses while the caller processes them: answers are read
afterwards, and no request is sent meanwhile. A caller that passes results on to other processes says when these are
``busy``, instead of waiting for them. A process that is killed then loses the answers in flight, at most
``max_concurrency``.

Ctrl-C and SIGTERM: no further request is sent, those in flight have `SHUTDOWN_GRACE_S` seconds, all finished rows are
returned, then KeyboardInterrupt is raised. A second Ctrl-C ends at once. Answers are in the cache either way, so that the
same run requests only the rest when it is started again.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypeVar

from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.event_loop import new_event_loop
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Model, Request
from pairwright.generators.llm.client.request_adaptation import RefusedParts
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.runner import LLMRow, LLMRun, RequestTotals, RowResult, RunMeter

T = TypeVar("T")

SHUTDOWN_GRACE_S = 5.0  # seconds for requests in flight after Ctrl-C
TICK_S = 0.05  # seconds to collect rows, so that the loop is not started for each
RESULT_BATCH = 256  # rows that end the collection early
WATCH_S = 0.25  # seconds between two snapshots
RATE_S = 15.0  # seconds over which a rate is measured

ModelWrapper = Callable[[Model], Model]
_log = logging.getLogger(__name__)


class StoppableModel(Model, Protocol):
    """The innermost model of a session."""

    def stop(self, failure: RequestError) -> None:
        """Send no further request: waiting ones end in ``failure``, those in flight may be answered."""
        ...


ClientOpener = Callable[[LLMSettings, Cache | None], AbstractAsyncContextManager[StoppableModel]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Progress of a run, or the totals of a session.

    Attributes:
        rows: finished rows.
        of: number of all rows; 0: unknown.
        spent: requests and tokens of the session.
        cost: USD of the session; None if a price is unknown.
        seconds: time since the start of the run, or of all runs of the session.
        rate: rows per second, of a run over the last `RATE_S` seconds.
        failed: rows of the session with an error or a request without an answer.
    """

    rows: int
    of: int
    spent: RequestTotals
    cost: float | None
    seconds: float
    rate: float
    failed: int = 0


class Session:
    """Cache, client and event loop within a ``with``; not thread-safe."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        settings: LLMSettings,
        *,
        cache: Path | None,
        prepare: Callable[[Request], Request] | None = None,
        inside: Sequence[ModelWrapper] = (),
        refusals: RefusedParts | None = None,
        opened: ClientOpener | None = None,
        in_flight: int = 0,
        cost: Callable[[], float | None] = lambda: None,
        watch: Callable[[Snapshot], None] | None = None,
        say: Callable[[str], None] = _log.warning,
        stop: threading.Event | None = None,
    ) -> None:
        """Prepare a session.

        Args:
            settings: settings of the client.
            cache: file of the response cache; created if missing. None: the client has one, and prepares the requests.
            prepare: returns a request as it is sent, which the cache is asked for; None: as it is.
            inside: wrappers between client and cache, innermost first.
            refusals: parts of requests that models refuse, for a wrapper that adapts to them; stored in the cache.
            opened: opens the client in place of `open_model`; see `batch.model`.
            in_flight: concurrent steps; 0: 16 more than twice the concurrent requests, since a row that waits for a retry
                occupies a step but no request.
            cost: returns the USD spent so far.
            watch: receives snapshots, at most every `WATCH_S` seconds.
            say: receives messages when the server is unreachable or back, or the run is stopped.
            stop: stops a run like Ctrl-C when it is set, for sessions in another thread.
        """
        self._settings, self._path, self._cost, self._watch, self._say = settings, cache, cost, watch, say
        self._prepare, self._inside, self._refusals = prepare, inside, refusals
        self._opened: ClientOpener = opened or (lambda settings, _: open_model(settings, say=say))
        self._in_flight = in_flight or 2 * settings.max_concurrency + 16
        self._stop = stop or threading.Event()
        self._meter = RunMeter()
        self._seconds = 0.0
        self._runs: list[ExitStack] = []  # open resources of running runs
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open everything.

        Raises:
            StorageError: the cache cannot be opened.
            UsageError: the settings cannot work.
        """
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner(loop_factory=new_event_loop))
            cache = stack.enter_context(Cache.open(self._path)) if self._path is not None else None
            self._client = self._enter(self._opened(self._settings, cache), stack)
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

    def _enter(self, opening: AbstractAsyncContextManager[StoppableModel], stack: ExitStack) -> StoppableModel:
        # Ctrl-C can cancel the task in its last step, when the client is open: it is closed then, too.
        closing = AsyncExitStack()
        stack.callback(lambda: self._wait(closing.aclose()))
        return self._wait(closing.enter_async_context(opening))

    def serve(self, main: Callable[[Model], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function with the model, for callers that answer the requests of other processes."""
        return self._wait(main(self._model))

    def stop_sending(self) -> None:
        """Send no further request; those in flight may be answered. Called on the event loop."""
        self._client.stop(RequestError("interrupted"))

    def run(
        self, rows: Iterable[LLMRow[T]], *, of: int = 0, busy: Callable[[], bool] | None = None
    ) -> Iterator[RowResult[T]]:
        """Yield the results of rows in order; errors as in `LLMRun.check`.

        Args:
            rows: read as there is room; they must not depend on this session.
            of: number of rows, for progress; 0: unknown.
            busy: returns whether the caller cannot process further results yet; the event loop runs meanwhile.

        Raises:
            KeyboardInterrupt: after Ctrl-C or SIGTERM, when all finished rows are returned. As after any error that ends a
                run, the session sends no further requests.
        """
        run = LLMRun(rows, self._model, in_flight=self._in_flight, meter=self._meter)
        pace, seconds_before, rows_before = Pace(), self._seconds, self._meter.rows

        def show() -> None:
            if self._watch is not None:
                rows = self._meter.rows - rows_before
                self._watch(pace.snapshot(rows, of, self._meter.spent, self._cost(), self._meter.failed))

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
                if busy is not None and busy() and not halted:
                    batch = self._wait(run.nothing(TICK_S))
                else:
                    batch = self._wait(run.ready(TICK_S, enough=RESULT_BATCH))
                self._seconds = seconds_before + pace.seconds()
                if pace.due():
                    show()
                if run.ending and not halted:
                    halted = True
                    self._wait(self._halt())
                yield from batch
                if self._stop.is_set() and not halted:
                    halted = True
                    self._wait(self._halt(run))
        show()
        run.check()

    def totals(self) -> Snapshot:
        """Return the totals so far."""
        meter, seconds = self._meter, self._seconds
        rate = meter.rows / seconds if seconds else 0.0
        return Snapshot(meter.rows, 0, meter.spent, self._cost(), seconds, rate, meter.failed)

    def _give_up(self) -> None:
        # An exception in the caller's loop leaves the generator of `run` open until after the session's end.
        for stack in list(self._runs):
            stack.close()

    async def _halt(self, run: LLMRun[Any] | None = None, grace: float = SHUTDOWN_GRACE_S) -> None:
        """Send no further request; a run that has not ended on its own ends in KeyboardInterrupt."""
        if run is not None:
            run.stop(KeyboardInterrupt(), grace)
        self.stop_sending()

    def _layers(self, cache: Cache | None) -> Model:
        model: Model = self._client
        for wrap in self._inside:
            model = wrap(model)
        if cache is None:
            return model
        settings, endpoint = self._settings, self._settings.cache_endpoint
        if self._refusals is not None:
            self._refusals.persist(cache.refused(endpoint), partial(cache.refuse, endpoint))
        return CachedModel(model, cache, endpoint, secrets=settings.secrets(), prepare=self._prepare)

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)


class Pace:
    """Time and rate of a run from now on, and when the next snapshot is due."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last_snapshot = 0.0
        self._seen: deque[tuple[float, int]] = deque([(self._began, 0)])

    def seconds(self) -> float:
        """Return the time since the run began."""
        return time.monotonic() - self._began

    def due(self) -> bool:
        """Return whether it is time for a snapshot."""
        return time.monotonic() - self._last_snapshot >= WATCH_S

    def snapshot(self, rows: int, of: int, spent: RequestTotals, cost: float | None, failed: int) -> Snapshot:
        """Return a snapshot of the run."""
        self._last_snapshot = now = time.monotonic()
        self._seen.append((now, rows))
        while len(self._seen) > 2 and now - self._seen[1][0] > RATE_S:
            self._seen.popleft()
        then, had = self._seen[0]
        rate = (rows - had) / (now - then) if now > then else 0.0
        return Snapshot(rows, of, spent, cost, now - self._began, rate, failed)


@contextlib.contextmanager
def _signals(stop: threading.Event, hurry: threading.Event, say: Callable[[str], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set ``stop``, and a second signal ``hurry``.

    Signals with a custom handler, and all signals outside of the main thread, keep their handlers.
    """

    def heard(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signature of signal handlers
        if stop.is_set():
            hurry.set()
            return
        stop.set()
        say("stopping: requests in flight may still finish. Interrupt again to stop immediately")

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
