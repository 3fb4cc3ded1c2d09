"""State that the parts of batch mode share, and retries of their calls."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pairwright.generators.llm.batch.ledger import BatchLedger
from pairwright.generators.llm.batch.queue import RequestQueue
from pairwright.generators.llm.batch.service import BatchService
from pairwright.generators.llm.client.messages import Reply
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.retrying import CONNECTION_ERRORS, UNREACHABLE_START_S

INITIAL_DELAY_S, MAX_DELAY_S = 1.0, 60.0
NOTICE_AFTER_S = 5.0  # shorter waits are not reported

Pause = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")
CacheLookup = Callable[[Iterable[str]], Mapping[str, Reply]]  # stored responses by key


@dataclass(slots=True)
class BatchRetry:
    """Retries of calls while the server is unreachable or refuses. A batch continues whether or not it is polled.

    Attributes:
        seconds: retry time for one call, once the server has responded; before, `retrying.UNREACHABLE_START_S`.
        pause: sleeps.
        say: called once when retries take long.
        heard: whether the server has responded, even with an error.
    """

    seconds: float
    pause: Pause
    say: Callable[[str], None]
    heard: bool = False

    async def call_with_retries(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat a call until it succeeds.

        Raises:
            RequestError: not transient; ``server_down`` or ``no_server`` after the retry time.
        """
        waited, wait, reported = 0.0, INITIAL_DELAY_S, False
        while True:
            try:
                result = await call()
            except RequestError as failure:
                met = failure
            else:
                self.heard = True
                return result
            self.heard |= met.code not in CONNECTION_ERRORS
            if not met.transient:
                raise met
            most = self.seconds if self.heard else min(UNREACHABLE_START_S, self.seconds)
            if waited >= most and not self.heard:
                raise RequestError("no_server", f"no response in {waited:.0f} s; last: {met.detail or met.code}")
            if waited >= most:
                raise RequestError("server_down", f"only errors for {waited:.0f} s; last: {met.code}, {met.detail}")
            if waited >= NOTICE_AFTER_S and not reported:
                reported = True
                self.say(f"the server does not accept batch calls ({met.code}, {met.detail}); retrying")
            wait = met.retry_after if met.retry_after is not None else wait
            wait = wait if self.heard else min(wait, most - waited)
            await self.pause(max(0.05, wait))
            waited, wait = waited + max(0.05, wait), min(2 * max(wait, INITIAL_DELAY_S), MAX_DELAY_S)


@dataclass(frozen=True, slots=True)
class BatchContext:
    """One run's batches.

    Attributes:
        rows: waiting requests.
        ledger: submitted batches.
        service: the server.
        retry: of calls.
        endpoint: server identifier in keys and ledger.
        hide: redacts secrets in the server's messages.
        kept: returns responses that other runs have stored; the ledger may have removed them.
    """

    rows: RequestQueue
    ledger: BatchLedger
    service: BatchService
    retry: BatchRetry
    endpoint: str
    hide: Callable[[str], str]
    kept: CacheLookup
