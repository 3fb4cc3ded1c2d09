"""Answers on their way into the cache's file, kept where a killed process leaves them.

An answer waits some ms for its commit (`cache_writer`). Meanwhile it stands in a *log* beside the file: one system call,
no flush. What a process has handed to the system stays when the process is killed; what a power cut takes is the last
moment's, as it is without a log. Whoever opens the cache next takes in what dead processes have left.

A process has two logs and fills one of them: while its answers are being committed, new ones go into the other.
It holds a lock on both, which ends with the process, and removes them when it closes the cache.

Where no log can be written (a full disk, no locks), there is none: then a kill costs what waits for its commit.
"""

import contextlib
import fcntl
import os
import secrets
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import orjson

from pairwright.generators.llm.cache.database import AnswerRow, insert_rows, open_database, translate_errors

_MARK = "-log-"
_HEAD = struct.Struct("<III")  # bytes of the values, of the body, and a checksum of both


class Journal:
    """The logs of one process for the cache at ``cache``; made when the first answer comes. The caller's lock guards it."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._files: list[_JournalFile] = []
        self._filling = 0
        self._none = False  # a log could not be written, so there is none

    @property
    def holds(self) -> bool:
        """Whether all that was added and not committed stands in the logs."""
        return not self._none

    def add(self, row: AnswerRow) -> None:
        """Hand a row to the system."""
        if self._none:
            return
        try:
            if not self._files:
                for _ in range(2):
                    self._files.append(_JournalFile(self._cache))
            self._files[self._filling].add(_pack_row(row))
        except OSError:
            self._none = True

    def turn(self) -> None:
        """Say that what was added so far is about to be committed: what comes goes elsewhere, where there is room."""
        if self._files and not self._files[1 - self._filling].size:
            self._filling = 1 - self._filling

    def committed(self, *, all_of_it: bool) -> None:
        """Forget what stood in the logs before the last `turn`; ``all_of_it``: and what came since."""
        with contextlib.suppress(OSError):  # what stays is taken in once more, and known then
            for at, file in enumerate(self._files):
                if file.size and (all_of_it or at != self._filling):
                    file.clear()

    def close(self, *, remove: bool) -> None:
        """Let go of the logs; ``remove`` takes them away, else the next one who opens the cache takes them in."""
        for file in self._files:
            file.close(remove=remove)
        self._files, self._none = [], True


class _JournalFile:
    """One log."""

    def __init__(self, cache: Path) -> None:
        while True:
            self._path = cache.with_name(f"{cache.name}{_MARK}{secrets.token_hex(4)}")
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(self._handle).st_nlink:
                    break
            except BlockingIOError:
                pass
            except OSError:
                self.close(remove=True)
                raise
            os.close(self._handle)  # who took leftovers in had it in hand before it was locked
        self.size = 0

    def add(self, record: bytes) -> None:
        self.size += len(record)
        if os.write(self._handle, record) != len(record):
            raise OSError("a full disk")

    def clear(self) -> None:
        os.ftruncate(self._handle, 0)
        self.size = 0

    def close(self, *, remove: bool) -> None:
        if remove:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        os.close(self._handle)


def open_with_journals(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the cache at ``path`` as `open_database` does, with what killed processes have left beside it taken in.

    Raises:
        StorageError: as `open_database`; or what was left cannot be taken in.
    """
    connection = open_database(path, create=create)
    try:
        with translate_errors(path):
            for left in sorted(each for each in path.parent.iterdir() if each.name.startswith(path.name + _MARK)):
                _replay_journal(left, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _replay_journal(log: Path, connection: sqlite3.Connection) -> None:
    try:
        file = log.open("r+b")
    except (FileNotFoundError, PermissionError):  # another one was faster; another user's
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # of a process that lives and commits it itself
        rows = list(_unpack_rows(file.read()))
        if rows:
            insert_rows(connection, rows)
        log.unlink(missing_ok=True)


def _pack_row(row: AnswerRow) -> bytes:
    key, *values, raw = row
    head = orjson.dumps([key.hex(), *values])
    return b"".join((_HEAD.pack(len(head), len(raw), zlib.crc32(raw, zlib.crc32(head))), head, raw))


def _unpack_rows(data: bytes) -> Iterator[AnswerRow]:
    """Give the rows of a log, up to the first that is not whole."""
    at = 0
    while at + _HEAD.size <= len(data):
        head_size, raw_size, checksum = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        head, raw = data[at : at + head_size], data[at + head_size : at + head_size + raw_size]
        at += head_size + raw_size
        if at > len(data) or zlib.crc32(raw, zlib.crc32(head)) != checksum:
            return
        key, *values = orjson.loads(head)
        yield (bytes.fromhex(key), *values, raw)
