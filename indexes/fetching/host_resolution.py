"""Addresses of many hosts, asked at once: a thread a host, each host once, none waited for longer than a limit.

The system's resolver knows no time limit: a name server that does not answer holds its caller for half a minute. So each
question has a thread of its own that nobody has to wait for; at most `MAX_THREADS` are waited for at a time.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable

from pairwright.datasets.rejects import RejectError
from pairwright.indexes.fetching.url_safety import find_address_problem

MAX_THREADS = 64

AddressLookup = Callable[[str], Iterable[str]]


def resolve_addresses(host: str) -> list[str]:
    """Return the addresses of a host as the system resolves it, sorted; it may take long.

    Raises:
        OSError: when it does not resolve.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that IDNA does not take
        raise OSError(str(error)) from None
    return sorted({str(info[4][0]) for info in found})


def check_hosts(
    hosts: Iterable[str], *, allow_loopback: bool, seconds: float, lookup: AddressLookup = resolve_addresses
) -> dict[str, RejectError | None]:
    """Say for each host whether it may be asked: None, or why not.

    Args:
        hosts: names or addresses, each judged once.
        allow_loopback: take loopback addresses.
        seconds: a host without an answer after that is given up.
        lookup: gives a host's addresses.

    Returns:
        Host to None, or to a `Refused` of unknown_host or blocked_address.
    """
    waiting = list(dict.fromkeys(hosts))[::-1]
    answers: queue.SimpleQueue[tuple[str, RejectError | None]] = queue.SimpleQueue()
    judged: dict[str, RejectError | None] = {}
    running: dict[str, float] = {}  # host to when it is given up; in the order of these times

    def ask(host: str) -> None:
        answers.put((host, _check_host(host, lookup, allow_loopback=allow_loopback)))

    while waiting or running:
        while waiting and len(running) < MAX_THREADS:
            host = waiting.pop()
            running[host] = time.monotonic() + seconds
            threading.Thread(target=ask, args=(host,), daemon=True).start()
        earliest = next(iter(running))
        try:
            host, judgement = answers.get(timeout=max(0.0, running[earliest] - time.monotonic()))
        except queue.Empty:
            host, judgement = earliest, RejectError("unknown_host", f"{earliest}: no answer in {seconds:g} s")
        if running.pop(host, None) is not None:  # else it was given up before
            judged[host] = judgement
    return judged


def _check_host(host: str, lookup: AddressLookup, *, allow_loopback: bool) -> RejectError | None:
    try:
        addresses = list(lookup(host))
    except OSError as error:
        return RejectError("unknown_host", f"{host}: {error.strerror or error}")
    if not addresses:
        return RejectError("unknown_host", f"{host}: has no address")
    problems = (find_address_problem(address, allow_loopback=allow_loopback) for address in addresses)
    problem = next(filter(None, problems), "")
    return RejectError("blocked_address", f"{host}: {problem}") if problem else None
