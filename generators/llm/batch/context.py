"""What the parts of batch mode share."""

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
NOTICE_AFTER_S = 5.0  # of waiting, before it is worth a word

Pause = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")
CacheLookup = Callable[[Iterable[str]], Mapping[str, Reply]]  # answers that are safe, of keys


@dataclass(slots=True)
class BatchRetry:
    """How long a server that is away, or refuses, is waited for.

    Attributes:
        seconds: in all, for one call, once the server has answered anything; else `retrying.NEVER_S`.
        pause: waits.
        say: told once that the server is waited for.
        heard: whether the server has answered anything, be it an error.
    """

    seconds: float
    pause: Pause
    say: Callable[[str], None]
    heard: bool = False

    async def call_with_retries(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Make a call until it succeeds.

        Raises:
            Failure: what will not pass; ``server_down`` or ``no_server`` when patience is at its end.
        """
        waited, wait, told = 0.0, INITIAL_DELAY_S, False
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
                raise RequestError(
                    "no_server", f"nothing was reached in {waited:.0f} s; last: {met.detail or met.code}"
                )
            if waited >= most:
                raise RequestError("server_down", f"no use for {waited:.0f} s; last: {met.code}, {met.detail}")
            if waited >= NOTICE_AFTER_S and not told:
                told = True
                self.say(f"the server does not serve batches now ({met.code}, {met.detail}); waiting for it")
            wait = met.retry_after if met.retry_after is not None else wait
            wait = wait if self.heard else min(wait, most - waited)
            await self.pause(max(0.05, wait))
            waited, wait = waited + max(0.05, wait), min(2 * max(wait, INITIAL_DELAY_S), MAX_DELAY_S)


@dataclass(frozen=True, slots=True)
class BatchContext:
    """One run's batches.

    Attributes:
        rows: that wait.
        ledger: what was handed over.
        service: the server.
        patience: for a server that is away.
        endpoint: what stands for the server in keys and in the ledger.
        hide: takes secrets out of what the server says.
        kept: gives the answers that other runs have made safe; the ledger may have let go of them.
    """

    rows: RequestQueue
    ledger: BatchLedger
    service: BatchService
    patience: BatchRetry
    endpoint: str
    hide: Callable[[str], str]
    kept: CacheLookup
