"""Counts of received requests and their replies, to prove that nothing was billed twice.

A body is *answered* when a chat completion was delivered whole with status 200 and in the right form, whatever its
content: what a provider would have billed and a client could have kept. Resets, partial bodies, errors and malformed
bodies do not count. Keys and prompts are not kept, only digests of bodies.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class BodyCounts:
    """Counts of one request body: received, admitted, answered, and time of the last answer in seconds."""

    came: int = 0
    passed: int = 0
    answered: int = 0
    last: float = 0.0


@dataclass(slots=True)
class ServerStats:
    """Counts since the start or the last reset."""

    started: float = field(default_factory=time.monotonic)
    endpoints: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)
    bodies: dict[int, BodyCounts] = field(default_factory=dict)
    connections: int = 0
    in_flight: int = 0
    in_flight_max: int = 0
    broken_off: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def body(self, key: int) -> BodyCounts:
        """Return the counts of a received body, and count it."""
        found = self.bodies.get(key)
        if found is None:
            found = self.bodies[key] = BodyCounts()
        found.came += 1
        return found

    def enter(self) -> None:
        """Count a request in flight."""
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)

    def answered(self, body: BodyCounts, tokens: tuple[int, int]) -> None:
        """Count a completion delivered whole, with its prompt and completion tokens."""
        body.answered += 1
        body.last = time.monotonic() - self.started
        self.prompt_tokens += tokens[0]
        self.completion_tokens += tokens[1]

    def ended(self, status: int, *, whole: bool, meant: bool) -> None:
        """Count the end of a reply; not ``whole``: it broke off because of a fault (``meant``) or because the client left."""
        self.in_flight -= 1
        self.statuses[str(status) if whole else "none"] += 1
        self.broken_off += not (whole or meant)

    def fresh(self) -> "ServerStats":
        """Return new counts that continue with the requests in flight."""
        return ServerStats(in_flight=self.in_flight, in_flight_max=self.in_flight)

    def report(self, *, each: bool = False) -> dict[str, Any]:
        """Return the counts as JSON; ``each`` adds received, answered and last answer of every body."""
        bodies = self.bodies.values()
        counts: dict[str, Any] = {
            "distinct": len(self.bodies),
            "repeated": sum(body.came - 1 for body in bodies),
            "most": max((body.came for body in bodies), default=0),
            "answered": sum(body.answered > 0 for body in bodies),
            "answered_again": sum(max(0, body.answered - 1) for body in bodies),
        }
        if each:
            rows = self.bodies.items()
            counts["each"] = {f"{key:016x}": [b.came, b.answered, round(b.last, 6)] for key, b in rows}
        return {
            "seconds": round(time.monotonic() - self.started, 6),
            "requests": sum(self.endpoints.values()) - self.endpoints["batch_line"],
            "endpoints": dict(self.endpoints),
            "statuses": dict(self.statuses),
            "faults": dict(self.faults),
            "limited": dict(self.limited),
            "bodies": counts,
            "broken_off": self.broken_off,
            "connections": self.connections,
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
        }
