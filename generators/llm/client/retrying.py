"""Retries with exponential backoff, and the end of a run whose server is down.

- Errors of one response (a reset, half a body, invalid JSON, a 500, a timeout) are retried ``max_retries`` times. The
  delay doubles each time; its jitter depends on seed, request key and attempt.
- Refusals (429, 503) and an unreachable server do not count as attempts. They are retried, after Retry-After if given,
  for ``patience`` seconds in all. A server that has answered no request in that time is down, and the run
  stops; it can be resumed, since responses are cached.
- A server that has never responded, not even with an error, is retried for `UNREACHABLE_START_S` seconds only, and each
  request at least `START_ATTEMPTS` times: wrong address, or not running. (A single attempt to connect to a busy server
  may take longer than that; a slow response to an accepted request, its whole timeout.)
- Responses that no chat API sends (a page), after all retries and before any valid response, mean a wrong base URL.
- A fatal error stops the run: waiting rows end in it, and nothing more is sent.

A waiting row holds no place in the limiter, so others continue.

tenacity (9.2) was tried with this module's tests: the policy above remains as its callbacks, the loop of 8 lines becomes
17, waking all rows when the server is back needs a sleep that knows the error, and a successful call costs 24 µs of CPU
instead of 0.6 (``benchmarks/own_code.py``).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Model, Reply, Request
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError

INITIAL_DELAY_S, MAX_DELAY_S = 0.5, 30.0  # delays before jitter
JITTER = 0.1  # share added to Retry-After, so that requests spread
NOTICE_AFTER_S = 1.0  # shorter outages are not reported
UNREACHABLE_START_S = 10.0  # retries of a server that has never responded
START_ATTEMPTS = 3  # of a request to it, at least
REFUSED_S = 10.0  # shorter series of refusals are not reported: servers throttle by them

_REFUSALS = {"rate_limited", "overloaded"}
_WAITED_OUT = {*_REFUSALS, "unreachable"}
_NO_API = {"not_json", "wrong_shape"}
CONNECTION_ERRORS = {"unreachable", "connection_lost"}  # no sign of a server
_log = logging.getLogger(__name__)


class RetryingModel:
    """Model with retries."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        model: Model,
        *,
        max_retries: int = 6,
        patience: float = 300.0,
        seed: int = 0,
        say: Callable[[str], None] = _log.warning,
        on_stop: Callable[[RequestError], None] | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: asked in each attempt.
            max_retries: retries per row for its own errors.
            patience: seconds to retry refusals and an unreachable server, once it has responded.
            seed: of the jitter.
            say: called with one line when the server becomes unreachable, refuses all requests or only fails, and when it
                responds again.
            on_stop: called once with the fatal error that stops the run.
        """
        self._model, self._max_retries, self._most_patience, self._seed = model, max_retries, patience, seed
        self._say, self._on_stop = say, on_stop
        self._stopped: RequestError | None = None
        self._over, self._back = asyncio.Event(), asyncio.Event()  # the run is stopped; so, or the server is back
        self._answered_at: float | None = None  # last reply to any row; at first, time of the first request
        self._answered = False
        self._heard = False  # whether the server has responded, even with an error
        self._away_since: float | None = None  # first refusal since the last reply
        self._said = False
        self._said_failing = False

    async def ask(self, request: Request) -> Reply:
        """Ask until there is a reply or no retry is left.

        Raises:
            RequestError: of the row, after the last retry; or of the run.
        """
        loop = asyncio.get_running_loop()
        if self._answered_at is None:
            self._answered_at = loop.time()
        tries = refusals = 0
        waited = 0.0  # for refusals, without time in the limiter's queue
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
            refused = met.code in _WAITED_OUT
            tries, refusals = tries + (not refused), refusals + refused
            starting = self._starts(tries + refusals)
            if not starting and not self._heard and loop.time() - self._answered_at >= self._patience:
                raise self._gone(met, loop.time()) or met
            away = self._away(met, loop.time()) if refused else self._failing(met, loop.time())
            if tries > self._max_retries or (not starting and max(waited, away) > self._patience):
                raise self._gone(met, loop.time()) or met
            wait = self._pause(request, tries + refusals, met)
            if met.retry_after is not None and wait > self._patience:
                raise self._stop(_too_long(met, wait))
            wait = wait if starting else min(wait, self._left(loop.time()))
            waited += wait * refused
            await self._sleep(wait, until_back=met.code == "unreachable")

    def _starts(self, attempts: int) -> bool:
        """Whether a server that has never responded may have had too few attempts, unless the user wants to wait less."""
        return not self._heard and attempts < START_ATTEMPTS and self._most_patience >= UNREACHABLE_START_S

    def _left(self, now: float) -> float:
        """Return the longest wait: a server that has never responded is not waited for after the patience."""
        assert self._answered_at is not None
        return self._patience - (0.0 if self._heard else now - self._answered_at)

    @property
    def _patience(self) -> float:
        return self._most_patience if self._heard else min(UNREACHABLE_START_S, self._most_patience)

    def stop(self, failure: RequestError) -> None:
        """Send nothing more: waiting requests end in ``failure``, those in flight may still be answered."""
        self._stop(failure)

    def _pause(self, request: Request, attempt: int, failure: RequestError) -> float:
        jitter = make_rng(self._seed, "retry", request.key(""), attempt).random()
        if failure.retry_after is not None:
            return failure.retry_after * (1 + JITTER * jitter) + 0.05 * jitter
        backoff: float = min(INITIAL_DELAY_S * 2.0 ** (min(attempt, 30) - 1), MAX_DELAY_S)
        return backoff * (0.5 + jitter)

    def _alive(self, now: float) -> None:
        self._answered_at, self._answered, self._heard = now, True, True
        if self._said_failing:
            self._said_failing = False
            self._say("the server responds again")
        if self._away_since is None:
            return
        if self._said:
            self._say(f"the server is back after {now - self._away_since:.0f} s")
        self._away_since, self._said = None, False
        self._back.set()

    def _away(self, failure: RequestError, now: float) -> float:
        """Return the seconds since the first refusal without a response to any row; report it once."""
        if self._away_since is None:
            self._away_since = now
            self._back.clear()
        away = now - self._away_since
        refuses = failure.code in _REFUSALS
        if not self._said and away >= (REFUSED_S if refuses else NOTICE_AFTER_S):
            self._said = True
            what = "the server refuses every request" if refuses else "no connection to the server"
            self._say(f"{what} ({failure.detail}); retrying for up to {self._patience:.0f} s")
        return away

    def _failing(self, failure: RequestError, now: float) -> float:
        """Report once that no row has been answered for a while. Retries of a row's own errors are bounded by their number."""
        assert self._answered_at is not None
        silent = now - self._answered_at
        if silent >= REFUSED_S and not self._said_failing:
            self._said_failing = True
            detail = f" ({failure.detail})" if failure.detail else ""
            self._say(f"no answer for {silent:.0f} s: {REQUEST_ERROR_CODES[failure.code].means}{detail}; retrying")
        return 0.0

    def _ended(self, failure: RequestError, now: float) -> RequestError:
        """Return the error that ends a row whose error is not transient."""
        if failure.fatal:
            return self._stop(failure)
        if failure.status:
            self._alive(now)
        return failure

    def _gone(self, failure: RequestError, now: float) -> RequestError | None:
        """Return the error that ends the run: no response to any row within the patience, or not a chat API. None: go on."""
        assert self._answered_at is not None
        if failure.code in _NO_API and not self._answered:
            own = "" if failure.fix == REQUEST_ERROR_CODES[failure.code].fix else failure.fix
            return self._stop(RequestError("wrong_url", failure.detail, status=failure.status, fix=own))
        silent = now - self._answered_at
        if not self._heard and silent >= self._patience:
            detail = f"no response in {silent:.0f} s; last: {failure.detail or failure.code}"
            return self._stop(RequestError("no_server", detail))
        if silent <= self._patience:
            return None
        code = "repeated_refusals" if failure.code in _REFUSALS else "server_down"
        return self._stop(RequestError(code, f"no answer for {silent:.0f} s; last: {failure.code}, {failure.detail}"))

    def _stop(self, failure: RequestError) -> RequestError:
        if self._stopped is None:
            self._stopped = failure
            if self._on_stop:
                self._on_stop(failure)
            self._over.set()
            self._back.set()
        return self._stopped.copy()

    async def _sleep(self, seconds: float, *, until_back: bool) -> None:
        """Sleep, at most until the run is stopped or, with ``until_back``, the server is back."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (self._back if until_back else self._over).wait()


def _too_long(failure: RequestError, wait: float) -> RequestError:
    code = "no_quota" if failure.code == "rate_limited" else "server_down"
    return RequestError(code, f"the server asks to wait {wait:.0f} s: {failure.detail}", status=failure.status)
