"""Group commit: one thread writes what has come since its last commit, within 100 ms of its coming.

Commits cost a flush of the disk each, some milliseconds; a flush for every answer would be what a run waits for. So
an answer waits up to `COMMIT_DELAY_S` seconds for others, and all go in one transaction. Until then it is *pending*: in
memory, where readers of this process find it, and in a log, where a kill of the process leaves it (`cache_log`).

Nothing is forgotten when writing fails: the answers stay pending, whoever puts the next one gets the error, and
`Writer.close` tries once more.
"""

import sqlite3
import threading
import time
from pathlib import Path

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.cache.database import AnswerRow, insert_rows, translate_errors
from pairwright.generators.llm.cache.journal import Journal
from pairwright.generators.llm.cache.leases import HEARTBEAT_S, Leases

COMMIT_DELAY_S = 0.04  # seconds; the rest of the 100 ms is for the commit itself, and for the interpreter lock
MAX_PENDING_BYTES = 64 * 2**20  # bytes of answers; from there on, whoever puts one waits for the disk


class CacheWriter:
    """Writes rows to one cache file. ``put`` may be called from any thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path, claims: Leases) -> None:
        self._connection, self._path, self._claims = connection, path, claims
        self._pending: dict[bytes, AnswerRow] = {}
        self._log = Journal(path)
        self._bytes = 0
        self._failed: Exception | None = None
        self._changing, self._writing = threading.Lock(), threading.Lock()
        self._come, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="pairwright-cache", daemon=True)
        self._thread.start()

    def get(self, key: bytes) -> AnswerRow | None:
        """Return the pending row of this key."""
        return self._pending.get(key)

    def put(self, row: AnswerRow) -> None:
        """Take a row to write; a kill from here on does not lose it.

        Raises:
            StorageError: when the file cannot be written. The row is kept for `close`, which tries again.
        """
        with self._changing:
            if row[0] not in self._pending:  # the first answer stays, as in the file
                self._pending[row[0]] = row
                self._bytes += _size(row)
                self._log.add(row)
        if self._failed is not None:
            raise self._failed
        if not self._come.is_set():
            self._come.set()
        if self._bytes > MAX_PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is pending, now.

        Raises:
            StorageError: when that fails; what was pending still is.
        """
        with self._writing:
            with self._changing:
                rows = list(self._pending.values())
                if not rows:
                    return
                self._log.turn()
            with translate_errors(self._path):
                insert_rows(self._connection, rows)
            with self._changing:
                for row in rows:
                    del self._pending[row[0]]
                    self._bytes -= _size(row)
                    self._claims.drop(row[0])
                self._log.committed(all_of_it=not self._pending)

    def close(self) -> None:
        """Write what is pending and close the connection.

        Raises:
            StorageError: when answers could not be written; it says how many, and whether they are lost.
        """
        self._closing.set()
        self._come.set()
        self._thread.join()
        try:
            self.flush()
        except StorageError as error:
            raise StorageError(f"{error} {self._left()}") from None
        finally:
            self._log.close(remove=not self._pending)
            self._connection.close()
            self._claims.close()

    def _left(self) -> str:
        if self._log.holds:
            return f"{len(self._pending)} answers wait beside it, and the next run takes them in."
        return f"Lost: {len(self._pending)} answers."

    def _work(self) -> None:
        took = 0.0
        while not self._closing.is_set():
            self._claims.beat()
            if not self._come.wait(HEARTBEAT_S):
                continue
            self._closing.wait(
                max(0.0, COMMIT_DELAY_S - took)
            )  # those who came during a long commit have waited enough
            self._come.clear()
            started = time.monotonic()
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever puts the next answer hears of it
                self._failed = error
                return
            took = time.monotonic() - started


def _size(row: AnswerRow) -> int:
    return len(row[-2]) + len(row[-1])
