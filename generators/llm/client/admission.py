"""Queue of callers that wait, in order of arrival, until they are admitted."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from pairwright.generators.llm.client.request_errors import RequestError

A = TypeVar("A")
T = TypeVar("T")


class AdmissionQueue(Generic[A, T]):
    """Admits callers; for one event loop.

    Args:
        admit: takes what a caller needs and returns its ticket; None: there is no room for now.
        release: takes back a ticket, and admits others.
    """

    def __init__(self, admit: Callable[[A], T | None], release: Callable[[T], None]) -> None:
        self._admit, self._release = admit, release
        self._waiting: deque[tuple[asyncio.Future[T], A]] = deque()

    def __len__(self) -> int:
        """Return the number of waiting callers."""
        return len(self._waiting)

    async def enter(self, needed: A) -> T:
        """Wait until the caller is admitted; return its ticket.

        Raises:
            RequestError: as passed to `fail`.
        """
        if not self._waiting and (ticket := self._admit(needed)) is not None:
            return ticket
        place: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, needed))
        self.pump()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._release(place.result())  # admitted at the moment of its cancellation
            else:
                place.cancel()
                self.pump()
            raise

    def pump(self) -> None:
        """Admit the first callers, as far as there is room."""
        while self._waiting:
            place, needed = self._waiting[0]
            if not place.done():  # else it was cancelled
                ticket = self._admit(needed)
                if ticket is None:
                    return
                place.set_result(ticket)
            self._waiting.popleft()

    def fail(self, failure: RequestError) -> None:
        """End all waiting callers in an error."""
        while self._waiting:
            place, _ = self._waiting.popleft()
            if not place.done():
                place.set_exception(failure.copy())
