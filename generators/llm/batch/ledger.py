"""SQLite ledger of submitted batches, so that nothing is submitted twice.

A batch is *claimed* before the upload, *sent* once the server has assigned an id, *ended* when its lines are merged. If a
process dies, the next one finds its batch at the server by the token in the batch's metadata.

- One process at a time submits and merges (`BatchLedger.turn`, a lock that is released when its holder dies). A claimed
  batch found by the holder of the turn is therefore one whose process has died.
- Responses stay in the ledger from merging until they are stored in the cache (`BatchLedger.forget`), so that the next run
  finds those that no row waits for yet.

Batches belong to an endpoint; keys include theirs. Batches and responses that no run asks for within 30 days are removed.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pairwright.datasets.errors import StorageError
from pairwright.datasets.file_locks import acquire_lock
from pairwright.generators.llm.batch.lines import LineResult
from pairwright.generators.llm.cache.database import FileFormat, open_file, transaction, translate_errors

SUFFIX = ".batches"
RETENTION_DAYS = 30  # as long as OpenAI keeps the files of a batch
LOCK_POLL_S = 0.2  # seconds between attempts to take the turn

State = Literal["claimed", "sent", "ended"]

_FORMAT = FileFormat(
    "ledger of batches",
    0x70776C62,  # "pwlb"
    1,
    """
CREATE TABLE batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    id TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'claimed',
    lines INTEGER NOT NULL,
    made REAL NOT NULL
);
CREATE TABLE lines (
    key BLOB NOT NULL PRIMARY KEY,
    batch INTEGER NOT NULL,
    line INTEGER NOT NULL,
    word TEXT,
    data BLOB
);
CREATE INDEX lines_of_batch ON lines (batch, line)
""",
    ("synchronous = FULL",),
)
_LINE = "SELECT batch, state, word, data FROM lines JOIN batches ON number = batch WHERE key = ?"
_BATCH = "SELECT number, token, endpoint, model, id, state, lines, made FROM batches"


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """Batch in the ledger. ``made``: seconds since 1970; ``id``: the server's, empty while claimed."""

    number: int
    token: str
    endpoint: str
    model: str
    id: str
    state: State
    lines: int
    made: float


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Line of a key in the ledger: its batch, the batch's state, and the result once merged."""

    batch: int
    state: State
    outcome: LineResult | None


def ledger_path(cache: Path) -> Path:
    """Return the path of a cache's ledger."""
    return cache.with_name(cache.name + SUFFIX)


class BatchLedger:
    """Batches in one file. Close it, or use it in a ``with``."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self.path = connection, path
        self._turn = asyncio.Lock()

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open the ledger at ``path``; ``create`` creates a missing one.

        Raises:
            StorageError: the file is missing, not a ledger, from a newer pairwright, or not writable.
        """
        if not create and not path.exists():
            raise StorageError(f"{path}: no batch was sent from this cache. Check its path.")
        connection = open_file(path, _FORMAT)
        old = (time.time() - RETENTION_DAYS * 24 * 3600,)
        with translate_errors(path), transaction(connection):
            connection.execute(
                "DELETE FROM lines WHERE batch IN (SELECT number FROM batches WHERE state = 'ended' AND made < ?)", old
            )
            connection.execute("DELETE FROM batches WHERE state = 'ended' AND made < ?", old)
        return cls(connection, path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    @property
    def upload_path(self) -> Path:
        """Path of the input file before its upload, written by the holder of the turn."""
        return self.path.with_name(self.path.name + ".upload")

    @asynccontextmanager
    async def turn(self, pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[None]:
        """Hold the turn to submit and merge; one task of one process has it at a time."""
        path = self.path.with_name(self.path.name + ".lock")
        async with self._turn:
            with path.open("ab") as handle:
                while True:
                    try:
                        acquire_lock(handle, path)
                        break
                    except BlockingIOError:
                        await pause(LOCK_POLL_S)
                yield

    def find(self, keys: Iterable[str]) -> dict[str, LedgerLine]:
        """Return the known lines of keys.

        Raises:
            StorageError: here as in every method, the file cannot be read or written.
        """
        found: dict[str, LedgerLine] = {}
        with translate_errors(self.path), transaction(self._connection, "BEGIN"):
            for key in keys:
                row = self._connection.execute(_LINE, (bytes.fromhex(key),)).fetchone()
                if row is not None:
                    batch, state, code, data = row
                    found[key] = LedgerLine(batch, state, None if code is None else LineResult(key, code, data))
        return found

    def entry(self, number: int) -> LedgerBatch | None:
        """Return a batch, or None."""
        with translate_errors(self.path):
            row = self._connection.execute(f"{_BATCH} WHERE number = ?", (number,)).fetchone()
        return LedgerBatch(*row) if row else None

    def entries(self, endpoint: str, state: State) -> list[LedgerBatch]:
        """Return the batches of an endpoint in a state, oldest first."""
        query = f"{_BATCH} WHERE endpoint = ? AND state = ? ORDER BY number"
        with translate_errors(self.path):
            return [LedgerBatch(*row) for row in self._connection.execute(query, (endpoint, state))]

    def claim(self, token: str, endpoint: str, model: str, keys: Sequence[str]) -> LedgerBatch:
        """Record a batch before its submission; ``keys`` in line order."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.execute(
                "INSERT INTO batches (token, endpoint, model, lines, made) VALUES (?, ?, ?, ?, ?)",
                (token, endpoint, model, len(keys), time.time()),
            )
            row = self._connection.execute(f"{_BATCH} WHERE token = ?", (token,)).fetchone()
            self._connection.executemany(
                "INSERT OR REPLACE INTO lines (key, batch, line) VALUES (?, ?, ?)",
                ((bytes.fromhex(key), row[0], line) for line, key in enumerate(keys, start=1)),
            )
        return LedgerBatch(*row)

    def sent(self, number: int, identity: str) -> None:
        """Record the id that the server assigned."""
        with translate_errors(self.path):
            self._connection.execute("UPDATE batches SET id = ?, state = 'sent' WHERE number = ?", (identity, number))

    def drop(self, number: int) -> None:
        """Remove a batch that was never processed; its keys are free."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.execute("DELETE FROM lines WHERE batch = ?", (number,))
            self._connection.execute("DELETE FROM batches WHERE number = ?", (number,))

    def store(self, number: int, outcomes: Sequence[LineResult]) -> set[str]:
        """Store results of lines, the first one per line; return the keys of the batch that are new."""
        new: set[str] = set()
        query = "UPDATE lines SET word = ?, data = ? WHERE key = ? AND batch = ? AND word IS NULL"
        with translate_errors(self.path), transaction(self._connection):
            for each in outcomes:
                values = (each.code, each.data, bytes.fromhex(each.key), number)
                if self._connection.execute(query, values).rowcount:
                    new.add(each.key)
        return new

    def end(self, number: int) -> None:
        """Record that a batch is merged; keys of missing lines are free."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.execute("DELETE FROM lines WHERE batch = ? AND word IS NULL", (number,))
            self._connection.execute("UPDATE batches SET state = 'ended' WHERE number = ?", (number,))

    def key_at(self, number: int, line: int) -> str | None:
        """Return the key of a line, counted from 1."""
        query = "SELECT key FROM lines WHERE batch = ? AND line = ?"
        with translate_errors(self.path):
            row = self._connection.execute(query, (number, line)).fetchone()
        return row[0].hex() if row else None

    def forget(self, keys: Iterable[str]) -> None:
        """Remove responses that are stored elsewhere, and ended batches without lines."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM lines WHERE key = ? AND word = ''", ((bytes.fromhex(key),) for key in keys)
            )
            self._connection.execute(
                "DELETE FROM batches WHERE state = 'ended' AND NOT EXISTS (SELECT 1 FROM lines WHERE batch = number)"
            )
