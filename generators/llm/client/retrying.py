"""Asking again: what may pass by itself is waited out, what may not ends the row or the run.

- A fault of one answer (a reset, half a body, an answer that is no JSON, a 500, a timeout) is asked again so many times,
  each wait twice as long, and jittered by a chance that the request's key and the attempt fix.
- A refusal for now (429, 503) and a server that cannot be reached say nothing about the row. They use up no tries: they
  are waited out, as long as Retry-After says where it says anything, for `Retries.patience` seconds in all. A server that has
  answered nobody in that time is down, and the run stops; it can be taken up again, since answers are kept.
- A server that has never answered anything, not even with an error, is waited for `UNREACHABLE_START_S` seconds: the address is wrong
  or nothing runs there. (A request that a server takes and is slow to answer may still take its whole timeout.)
- What no chat API would say (a page), as often as a row is asked and before anybody got an answer, is a wrong address.
- A fatal failure (`Failure.fatal`) stops all at once: rows that wait end in it, and nothing more is sent.

A row that waits holds no place of the limiter's, so others go on: retries are mixed into the flow.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Model, Reply, Request
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError

INITIAL_DELAY_S, MAX_DELAY_S = 0.5, 30.0  # waits, before jitter
JITTER = 0.1  # of what Retry-After says, added so that not all come back at once
NOTICE_AFTER_S = 1.0  # a server away for less is not worth a word
UNREACHABLE_START_S = 10.0  # seconds that a server is waited for that has not answered anything since the start
REFUSED_S = 10.0  # nor is one that refuses everybody for less: that is how servers slow their callers

_REFUSALS = {"rate_limited", "overloaded"}
_WAITED_OUT = {*_REFUSALS, "unreachable"}
_NO_API = {"not_json", "wrong_shape"}
CONNECTION_ERRORS = {"unreachable", "connection_lost"}  # without a sign that there is a server
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a run goes on hoping.

    Attributes:
        most: how often a row's own faults are met by asking again.
        patience: seconds that refusals and an unreachable server are waited out, once it has answered anything.
        seed: of the jitter.
    """

    most: int = 6
    patience: float = 300.0
    seed: int = 0


class RetryingModel:
    """A model that is asked again."""

    def __init__(
        self,
        model: Model,
        retries: RetryPolicy,
        *,
        say: Callable[[str], None] = _log.warning,
        on_stop: Callable[[RequestError], None] | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: asked; each attempt anew.
            retries: how often and how long.
            say: told, in one line, that the server is away, refuses everybody or has only faults, and that it is back.
            on_stop: told the fatal failure that stops the run, once.
        """
        self._model, self._retries = model, retries
        self._say, self._on_stop = say, on_stop
        self._stopped: RequestError | None = None
        self._sleepers: dict[asyncio.Future[None], bool] = {}  # whether the server's return ends the sleep
        self._answered_at: float | None = None  # when the server last answered anybody; at first, when first asked
        self._answered = False
        self._heard = False  # whether the server has answered anything, be it an error
        self._away_since: float | None = None  # when it was first away, or refused, since it last answered anybody
        self._said = False
        self._said_failing = False

    async def ask(self, request: Request) -> Reply:
        """Ask until there is an answer, or no hope for one.

        Raises:
            Failure: the row's, after the last retry; or the run's.
        """
        loop = asyncio.get_running_loop()
        if self._answered_at is None:
            self._answered_at = loop.time()
        tries = refusals = 0
        waited = 0.0  # for refusals; time in the limiter's queue is not the server's doing
        while True:
            if self._stopped is not None:
                raise self._stopped.copy()
            try:
                reply = await self._model.ask(request)
            except RequestError as failure:
                met = failure
            else:
                self._alive(loop.time())
                return reply
            self._heard |= met.code not in CONNECTION_ERRORS
            if not met.transient:
                raise self._ended(met, loop.time())
            if not self._heard and loop.time() - self._answered_at >= self._patience:
                raise self._gone(met, loop.time()) or met
            refused = met.code in _WAITED_OUT
            tries, refusals = tries + (not refused), refusals + refused
            away = self._away(met, loop.time()) if refused else self._failing(met, loop.time())
            if tries > self._retries.most or max(waited, away) > self._patience:
                raise self._gone(met, loop.time()) or met
            wait = self._pause(request, tries + refusals, met)
            if met.retry_after is not None and wait > self._patience:
                raise self._stop(_too_long(met, wait))
            wait = min(wait, self._patience - (0.0 if self._heard else loop.time() - self._answered_at))
            waited += wait * refused
            await self._sleep(wait, until_back=met.code == "unreachable")

    @property
    def _patience(self) -> float:
        return self._retries.patience if self._heard else min(UNREACHABLE_START_S, self._retries.patience)

    def stop(self, failure: RequestError) -> None:
        """Send nothing more: requests that wait end in ``failure``, those under way may still be answered."""
        self._stop(failure)

    def _pause(self, request: Request, attempt: int, failure: RequestError) -> float:
        chance = make_rng(self._retries.seed, "retry", request.key(""), attempt).random()
        if failure.retry_after is not None:
            return failure.retry_after * (1 + JITTER * chance) + 0.05 * chance
        backoff: float = min(INITIAL_DELAY_S * 2.0 ** (min(attempt, 30) - 1), MAX_DELAY_S)
        return backoff * (0.5 + chance)

    def _alive(self, now: float) -> None:
        self._answered_at, self._answered, self._heard = now, True, True
        if self._said_failing:
            self._said_failing = False
            self._say("the server answers again")
        if self._away_since is None:
            return
        if self._said:
            self._say(f"the server is back after {now - self._away_since:.0f} s")
        self._away_since, self._said = None, False
        for sleeper, until_back in self._sleepers.items():
            if until_back and not sleeper.done():
                sleeper.set_result(None)

    def _away(self, failure: RequestError, now: float) -> float:
        """Return for how long nobody has been answered, counted from the first refusal; say so once."""
        if self._away_since is None:
            self._away_since = now
        away = now - self._away_since
        refuses = failure.code in _REFUSALS
        if not self._said and away >= (REFUSED_S if refuses else NOTICE_AFTER_S):
            self._said = True
            what = "the server refuses every request" if refuses else "no connection to the server"
            self._say(f"{what} ({failure.detail}); waiting up to {self._patience:.0f} s for it")
        return away

    def _failing(self, failure: RequestError, now: float) -> float:
        """Say once that nobody has been answered for a while; what a row may wait for faults of its own its tries bound."""
        assert self._answered_at is not None
        silent = now - self._answered_at
        if silent >= REFUSED_S and not self._said_failing:
            self._said_failing = True
            detail = f" ({failure.detail})" if failure.detail else ""
            self._say(f"no answer for {silent:.0f} s: {REQUEST_ERROR_CODES[failure.code].means}{detail}; asking again")
        return 0.0

    def _ended(self, failure: RequestError, now: float) -> RequestError:
        """Return what a row ends in that nothing can help."""
        if failure.fatal:
            return self._stop(failure)
        if failure.status:
            self._alive(now)
        return failure

    def _gone(self, failure: RequestError, now: float) -> RequestError | None:
        """Return the end of the run, when the server has answered nobody for as long as patience lasts, or is no server."""
        assert self._answered_at is not None
        if failure.code in _NO_API and not self._answered:
            return self._stop(RequestError("wrong_url", failure.detail, status=failure.status))
        silent = now - self._answered_at
        if not self._heard and silent >= self._patience:
            detail = f"nothing was reached in {silent:.0f} s; last: {failure.detail or failure.code}"
            return self._stop(RequestError("no_server", detail))
        if silent <= self._patience:
            return None
        word = "repeated_refusals" if failure.code in _REFUSALS else "server_down"
        return self._stop(RequestError(word, f"no answer for {silent:.0f} s; last: {failure.code}, {failure.detail}"))

    def _stop(self, failure: RequestError) -> RequestError:
        if self._stopped is None:
            self._stopped = failure
            if self._on_stop:
                self._on_stop(failure)
            for sleeper in self._sleepers:
                if not sleeper.done():
                    sleeper.set_exception(failure.copy())
        return self._stopped.copy()

    async def _sleep(self, seconds: float, *, until_back: bool) -> None:
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake_sleeper, sleeper)
        self._sleepers[sleeper] = until_back
        try:
            await sleeper
        finally:
            timer.cancel()
            del self._sleepers[sleeper]


def _wake_sleeper(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _too_long(failure: RequestError, wait: float) -> RequestError:
    word = "no_quota" if failure.code == "rate_limited" else "server_down"
    return RequestError(word, f"the server asks to wait {wait:.0f} s: {failure.detail}", status=failure.status)
