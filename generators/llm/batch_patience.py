"""Calls about a batch, made again while what fails may pass: a batch goes on whether anybody looks or not."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pairwright.generators.llm.failures import Failure

FIRST_S, LONGEST_S = 1.0, 60.0
NOTICED_S = 5.0  # of waiting, before it is worth a word

Pause = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server that is away, or refuses, is waited for.

    Attributes:
        seconds: in all, for one call.
        pause: waits.
        say: told once that the server is waited for.
    """

    seconds: float
    pause: Pause
    say: Callable[[str], None]

    async def steadily(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Make a call until it succeeds.

        Raises:
            Failure: what will not pass; ``server_down`` when patience is at its end.
        """
        waited, wait, told = 0.0, FIRST_S, False
        while True:
            try:
                return await call()
            except Failure as failure:
                met = failure
            if not met.transient:
                raise met
            if waited >= self.seconds:
                raise Failure("server_down", f"no use for {waited:.0f} s; last: {met.word}, {met.detail}")
            if waited >= NOTICED_S and not told:
                told = True
                self.say(f"the server does not serve batches now ({met.word}, {met.detail}); waiting for it")
            wait = met.retry_after if met.retry_after is not None else wait
            await self.pause(max(0.05, wait))
            waited, wait = waited + max(0.05, wait), min(2 * max(wait, FIRST_S), LONGEST_S)
