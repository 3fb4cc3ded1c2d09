"""An event loop whose clock jumps to whatever is next: hours of waiting pass in no time, and always alike."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """No network: where nothing is left to wait for, it says so instead of hanging."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        look = selector.select

        def select(timeout: float | None = None) -> Any:
            if timeout is None:
                raise RuntimeError("every task waits, and no timer is set")
            self._virtual += max(timeout, 0.0)
            return look(0)

        selector.select = select

    def time(self) -> float:
        """Return seconds since the start, as far as anybody waited for them."""
        return self._virtual


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
