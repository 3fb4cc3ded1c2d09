"""Builds as flows that end by SIGTERM at five moments, for `test_signals.py`: prints what is said of each.

In a process of its own: the signal is the whole process's, and whoever has run a flow cannot fork any more.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import PairwrightError
from pairwright.flows import build as building
from pairwright.flows.config.build import parse_config
from pairwright.flows.progress import BuildProgress


def now() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def from_the_loop() -> None:
    asyncio.get_running_loop().call_soon(now)


class Told(BuildProgress):
    """A progress that acts as a stage begins, or has ended."""

    def __init__(self, begin: Callable[[], None] | None = None, end: Callable[[], None] | None = None) -> None:
        self._begin, self._end = begin, end

    def begin(self, stage: str, jobs: int) -> None:  # noqa: ARG002, D102 - as the protocol says
        if self._begin:
            self._begin()

    def end(self, stage: str, summary: str) -> None:  # noqa: ARG002, D102 - as the protocol says
        if self._end:
            self._end()


def ended(folder: Path, moment: str, progress: BuildProgress, hook: Callable[[], None] = lambda: None) -> None:
    """Build with a progress that ends it, or with a hook called once Prefect has its own handler of the signal."""
    engine: Any = import_module("prefect.flow_engine")  # types do not know of what is not its own
    capture = engine.capture_sigterm

    @contextmanager
    def captured() -> Iterator[None]:
        with capture():
            hook()
            yield

    engine.capture_sigterm = captured
    config = {"name": "t", "input": {"path": str(folder / "in.jsonl")}, "workers": 1}
    try:
        building.build(parse_config(config, where="test"), folder / moment.replace(" ", "-"), progress)
    except PairwrightError as error:
        print(moment, "-", error, flush=True)  # noqa: T201 - what the test reads
    finally:
        engine.capture_sigterm = capture
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


if __name__ == "__main__":
    given = Path(sys.argv[1])
    ended(given, "a stage begins", Told(begin=now))
    ended(given, "a stage has ended", Told(end=now))
    ended(given, "the loop has it", Told(begin=from_the_loop))
    ended(given, "the flow starts", Told(), now)
    ended(given, "the flow starts and the loop has it", Told(), from_the_loop)
