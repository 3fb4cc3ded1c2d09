"""Who is asking what, among the processes that share a cache, so that an answer on its way is not paid for twice.

A table in memory that they share, a file beside the cache: a process puts a key there before it asks, and takes it
away when the answer is on the disk. Another one that finds the key waits for the answer. The claims of a process that
has gone silent for `LEASE_TIMEOUT_S` count no more.

Nothing here is locked, and a full corner of the table forgets its oldest claims: what a race or a collision costs is
that an answer is paid for twice, never a wrong one and never a lost one.
"""

import contextlib
import mmap
import os
import secrets
import struct
import time
from pathlib import Path

HEARTBEAT_S = 0.25  # between two signs of life
LEASE_TIMEOUT_S = 2.0  # without one, after which a process counts as dead

_OWNERS, _SLOTS, _NEAR = 64, 2**14, 4  # processes; keys under way; places where a key may stand
_OWNER, _PAIR = struct.Struct("=Qd"), struct.Struct("=QQ")
_BOTH = struct.Struct("=QQQQQQQQ")  # of all places where a key may stand
_TABLE = _OWNERS * _OWNER.size
_SIZE = _TABLE + (_SLOTS + _NEAR) * _PAIR.size


class Leases:
    """The claims on one cache's keys. Close it, when its process claims no more."""

    def __init__(self, cache: Path) -> None:
        """Open the table of the cache at ``cache``; make it when missing.

        Raises:
            OSError: it cannot be.
        """
        self._path = cache.with_name(cache.name + "-claims")
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(handle).st_size < _SIZE:
                os.truncate(handle, _SIZE)
            if hasattr(os, "posix_fallocate"):  # a map of a file with holes ends the process where the disk is full
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
        """Whether another process uses the cache, too; up to `HEARTBEAT_S` old."""
        return len(self._alive) > 1

    def beat(self) -> None:
        """Give a sign of life, and see who else lives."""
        now = time.time()
        owners = [_OWNER.unpack_from(self._map, place * _OWNER.size) for place in range(_OWNERS)]
        if self._place < 0 or owners[self._place][0] != self._me:  # at first, or when two came at the same moment
            free = [place for place, (_, at) in enumerate(owners) if abs(now - at) > LEASE_TIMEOUT_S]
            self._place = secrets.choice(free) if free else 0
        _OWNER.pack_into(self._map, self._place * _OWNER.size, self._me, now)
        self._alive = {owner for owner, at in owners if abs(now - at) <= LEASE_TIMEOUT_S} | {self._me}

    def take(self, key: bytes) -> bool:
        """Claim a key; return whether it is ours, and not another living process's."""
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
        """Take our claim on a key away."""
        word, at = _slot_of(key)
        found = _BOTH.unpack_from(self._map, at)
        for near in range(0, 2 * _NEAR, 2):
            if found[near] == word and found[near + 1] == self._me:
                _PAIR.pack_into(self._map, at + near * 8, 0, 0)

    def close(self) -> None:
        """Leave; the last one takes the table away."""
        if self._map.closed:
            return
        self.beat()
        _OWNER.pack_into(self._map, self._place * _OWNER.size, 0, 0.0)
        self._map.close()
        if not self.shared:
            with contextlib.suppress(OSError):  # another process may have it open, where that matters (Windows)
                self._path.unlink(missing_ok=True)

    def _living(self) -> set[int]:
        # Asked only about a claim that stands in the way: one that came after our last beat is no dead one.
        self.beat()
        return self._alive


def _slot_of(key: bytes) -> tuple[int, int]:
    word = int.from_bytes(key[:8], "little") | 1  # 0 is a free place
    return word, _TABLE + (word >> 1) % _SLOTS * _PAIR.size
