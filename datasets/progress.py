"""Progress reports of long-running work, sent to a listener.

A *step* is a named piece of work with a number of units done and, if known, a total. Code that can take seconds opens
one (`open_step`, `track`); without a listener this costs almost nothing. The command line listens and draws progress bars
(`pairwright.cli.output.progress`). A worker process sends its reports to its parent through a pipe
(`datasets.worker_processes`). A job of a build sets itself as *owner* of its steps (`attribute_steps_to`), so that they
move the bar of its stage.

A step sends at most one report per `INTERVAL` seconds; the first and the last are always sent.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

import orjson

INTERVAL: Final = 0.1

Item = TypeVar("Item")


@dataclass(frozen=True)
class ProgressReport:
    """Progress of a step.

    Attributes:
        id: process and ordinal of the step.
        name: a phrase, such as "counting words".
        done: units done.
        total: units in total; None if unknown.
        unit: what is counted, in the plural.
        owner: stage and part of the build's job that the step belongs to; empty outside a build.
        ended: whether this is the last report of the step.
    """

    id: tuple[int, int]
    name: str
    done: int
    total: int | None
    unit: str
    owner: tuple[str, ...] = ()
    ended: bool = False

    def as_bytes(self) -> bytes:
        """Return the report as JSON."""
        return orjson.dumps(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "ProgressReport":
        """Return the report that `as_bytes` wrote."""
        fields = orjson.loads(data)
        return cls(**{**fields, "id": tuple(fields["id"]), "owner": tuple(fields["owner"])})


Listener = Callable[[ProgressReport], None]

_listeners: list[Listener] = []  # of this process; the last one is active
_owner: ContextVar[tuple[str, ...]] = ContextVar("_owner", default=())
_step_numbers = count()


@contextmanager
def use_listener(listener: Listener) -> Iterator[None]:
    """Send the reports of all threads of this process to ``listener`` inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def set_listener(listener: Listener) -> None:
    """Send the reports of this process to ``listener`` until the process ends."""
    _listeners.append(listener)


def has_listener() -> bool:
    """Return whether this process has a listener."""
    return bool(_listeners)


def send_report(report: ProgressReport) -> None:
    """Send a report, also one of another process, to the listener."""
    if _listeners:
        _listeners[-1](report)


@contextmanager
def report_named_steps(unit: str = "rows") -> Iterator[Callable[[str, int, int], None]]:
    """Provide a function (name, done, total) that reports a sequence of steps; a total of 0 means unknown."""
    open_: list[ProgressStep] = []

    def follow(name: str, done: int, total: int) -> None:
        if open_ and open_[-1].name != name:
            open_.pop().report(ended=True)
        if not open_:
            open_.append(ProgressStep(name, total or None, unit))
        open_[-1].reach(done, total or None)

    try:
        yield follow
    finally:
        for this in open_:
            this.report(ended=True)


@contextmanager
def attribute_steps_to(stage: str, part: str) -> Iterator[None]:
    """Attribute the steps that this thread opens inside the block to a job of a build."""
    token = _owner.set((stage, part))
    try:
        yield
    finally:
        _owner.reset(token)


class ProgressStep:
    """A piece of work that reports its progress; created by `open_step`."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.name, self.total, self.unit, self.done = name, total, unit, 0
        self._id, self._owner, self._sent = (os.getpid(), next(_step_numbers)), _owner.get(), -math.inf

    def advance(self, units: int = 1) -> None:
        """Count units as done."""
        self.done += units
        self._report_at_times()

    def reach(self, done: int, total: int | None = None) -> None:
        """Set how many units are done, and the total once it is known."""
        self.done, self.total = done, self.total if total is None else total
        self._report_at_times()

    def _report_at_times(self) -> None:
        now = time.monotonic()
        if now - self._sent >= INTERVAL:
            self._sent = now
            self.report()

    def report(self, *, ended: bool = False) -> None:
        """Send a report now."""
        send_report(ProgressReport(self._id, self.name, self.done, self.total, self.unit, self._owner, ended))


@contextmanager
def open_step(name: str, total: int | None = None, unit: str = "rows") -> Iterator[ProgressStep]:
    """Open a step for the duration of the block.

    Args:
        name: a phrase, such as "counting words".
        total: units in total; None if unknown.
        unit: what is counted, in the plural.
    """
    this = ProgressStep(name, total, unit)
    this.report()
    try:
        yield this
    finally:
        this.report(ended=True)


def track(items: Iterable[Item], name: str, total: int | None = None, unit: str = "rows") -> Iterator[Item]:
    """Yield items and report how many are done; ``total`` defaults to the length of ``items`` if it has one."""
    known = len(items) if total is None and isinstance(items, Sized) else total
    with open_step(name, known, unit) as this:
        for item in items:
            yield item
            this.advance()
