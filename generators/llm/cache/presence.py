"""What a cache surely does not hold, told without looking into the file.

A look-up that finds nothing costs SQLite some system calls and, with a writer at work, rereading of pages: 30 us of
CPU, a fifth of what a row costs in all. So the first bits of all keys are kept as marks in a table of fixed size. A
mark that is missing is a key that is missing; a mark that is there says nothing.

Good for as long as this process is the only one that writes (`Claims.only`); after that every look-up goes to the file.
"""

import sqlite3

from pairwright.generators.llm.cache.leases import Leases

FILTER_SIZE = 2**22  # bytes, one a mark
MAX_KEYS = 2 * FILTER_SIZE  # answers; with more, a mark would nearly always be there

_BYTES = 3  # of a key; its first 22 bits, as MARKS asks


class PresenceFilter:
    """The marks of one cache's keys; set up when first asked."""

    def __init__(self, reader: sqlite3.Connection, claims: Leases) -> None:
        self._reader, self._claims = reader, claims
        self._marks: bytearray | None = None
        self._useless = False

    def add(self, key: bytes) -> None:
        """Mark a key, before it is written."""
        if self._marks is not None:
            self._marks[_mark(key)] = 1

    def definitely_absent(self, key: bytes) -> bool:
        """Return whether the file surely does not hold the key.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        if self._useless:
            return False
        if not self._claims.only:
            self._useless, self._marks = True, None
            return False
        if self._marks is None:
            self._marks = self._read()
        return not self._useless and not self._marks[_mark(key)]

    def _read(self) -> bytearray:
        marks = bytearray(FILTER_SIZE)
        self._useless = (self._reader.execute("SELECT max(rowid) FROM answers").fetchone()[0] or 0) > MAX_KEYS
        if not self._useless:
            for (key,) in self._reader.execute("SELECT key FROM answers"):
                marks[_mark(key)] = 1
        return marks


def _mark(key: bytes) -> int:
    return int.from_bytes(key[:_BYTES], "big") >> 2
