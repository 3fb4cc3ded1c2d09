"""Leases on request keys among the processes that share a cache, so that no response is billed twice.

A memory-mapped table in a file next to the cache: a process enters a key before sending the request and removes it when
the response is stored. Another process that finds the key waits for the response. Leases of a process without a
heartbeat for `LEASE_TIMEOUT_S` are ignored.

There are no locks, and a full bucket evicts its oldest leases: a race or collision costs a response that is billed twice,
never a wrong or lost one.
"""

import contextlib
import mmap
import os
import secrets
import struct
import time
from pathlib import Path

HEARTBEAT_S = 0.25
LEASE_TIMEOUT_S = 2.0  # without heartbeat, until a process counts as dead

_OWNERS, _SLOTS, _NEAR = 64, 2**14, 4  # processes, leases, slots of a bucket
_OWNER, _PAIR = struct.Struct("=Qd"), struct.Struct("=QQ")
_BOTH = struct.Struct("=QQQQQQQQ")  # a bucket
_TABLE = _OWNERS * _OWNER.size
_SIZE = _TABLE + (_SLOTS + _NEAR) * _PAIR.size


class Leases:
    """Leases on the keys of one cache. Close it when the process sends no more requests."""

    def __init__(self, cache: Path) -> None:
        """Open the table of the cache at ``cache``, created if missing.

        Raises:
            OSError: the table cannot be created.
        """
        self._path = cache.with_name(cache.name + "-claims")
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(handle).st_size < _SIZE:
                os.truncate(handle, _SIZE)
            if hasattr(os, "posix_fallocate"):  # with holes, a full disk would end the process (SIGBUS)
                os.posix_fallocate(handle, 0, _SIZE)
            self._map = mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)
        self._me = secrets.randbits(64) | 1
        self._place = -1
        self._alive: set[int] = set()
        self.beat()

    @property
    def shared(self) -> bool:
        """Whether another process uses the cache; up to `HEARTBEAT_S` old."""
        return len(self._alive) > 1

    def beat(self) -> None:
        """Write a heartbeat, and read those of other processes."""
        now = time.time()
        owners = [_OWNER.unpack_from(self._map, place * _OWNER.size) for place in range(_OWNERS)]
        if self._place < 0 or owners[self._place][0] != self._me:  # at first, or when two processes took the same place
            free = [place for place, (_, at) in enumerate(owners) if abs(now - at) > LEASE_TIMEOUT_S]
            self._place = secrets.choice(free) if free else 0
        _OWNER.pack_into(self._map, self._place * _OWNER.size, self._me, now)
        self._alive = {owner for owner, at in owners if abs(now - at) <= LEASE_TIMEOUT_S} | {self._me}

    def take(self, key: bytes) -> bool:
        """Take the lease on a key; return False if another living process holds it."""
        word, at = _slot_of(key)
        found = _BOTH.unpack_from(self._map, at)
        free = 0
        for near in range(0, 2 * _NEAR, 2):
            if found[near] == word:
                owner = found[near + 1]
                if owner != self._me and owner in self._living():
                    return False
                free = near
                break
            if found[near] == 0:
                free = near
        _PAIR.pack_into(self._map, at + free * 8, word, self._me)
        return True

    def drop(self, key: bytes) -> None:
        """Release our lease on a key."""
        word, at = _slot_of(key)
        found = _BOTH.unpack_from(self._map, at)
        for near in range(0, 2 * _NEAR, 2):
            if found[near] == word and found[near + 1] == self._me:
                _PAIR.pack_into(self._map, at + near * 8, 0, 0)

    def close(self) -> None:
        """Leave; the last process removes the table."""
        if self._map.closed:
            return
        self.beat()
        _OWNER.pack_into(self._map, self._place * _OWNER.size, 0, 0.0)
        self._map.close()
        if not self.shared:
            with contextlib.suppress(OSError):  # open in another process on Windows
                self._path.unlink(missing_ok=True)

    def _living(self) -> set[int]:
        # The other process may have started after our last heartbeat.
        self.beat()
        return self._alive


def _slot_of(key: bytes) -> tuple[int, int]:
    word = int.from_bytes(key[:8], "little") | 1  # 0 is an empty slot
    return word, _TABLE + (word >> 1) % _SLOTS * _PAIR.size
