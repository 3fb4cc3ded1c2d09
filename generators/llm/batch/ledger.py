"""What was handed to the server in batches, kept in one SQLite file, so that nothing is handed over twice.

A batch is *claimed* before it is uploaded, *sent* once the server has named it, *ended* when its lines are merged. A
process that dies leaves what it was at; the next one finds the batch at the server by the token in its metadata.

- Submitting and merging are done by one process at a time (`Ledger.turn`, a lock that dies with its holder). So a claimed
  batch that is met by who holds the turn is one whose maker has died.
- Answers are kept here, too, from the merging until whoever asked has them safe (`Ledger.forget`): those that nobody
  waits for yet are found by the next run.

Each batch belongs to an endpoint; keys hold theirs. What nobody came for in 30 days is removed.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, Self

from pairwright.datasets.errors import StorageError
from pairwright.datasets.file_locks import acquire_lock
from pairwright.generators.llm.batch.lines import LineResult
from pairwright.generators.llm.cache.database import BUSY_SECONDS, transaction, translate_errors

SUFFIX = ".batches"
RETENTION_DAYS = 30  # as long as OpenAI keeps the files of a batch
LOCK_POLL_S = 0.2  # seconds between two tries for the turn

State = Literal["claimed", "sent", "ended"]

_APPLICATION_ID = 0x70776C62  # "pwlb"
_VERSION = 1
_MANY = 500
_TABLES = """
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
CREATE INDEX lines_of_batch ON lines (batch, line);
"""
_BATCH = "SELECT number, token, endpoint, model, id, state, lines, made FROM batches"


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """A batch as the ledger knows it. ``made``: seconds since 1970; ``id``: the server's, empty while claimed."""

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
    """What the ledger holds of a key: its batch, that batch's state, and what became of the line, once it is merged."""

    batch: int
    state: State
    outcome: LineResult | None


def ledger_path(cache: Path) -> Path:
    """Return where the ledger of a cache lies."""
    return cache.with_name(cache.name + SUFFIX)


class BatchLedger:
    """The batches of one file. Close it, or use it in a ``with``."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self.path = connection, path
        self._turn = asyncio.Lock()

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open the ledger at ``path``; ``create`` makes one where there is none.

        Raises:
            StorageError: when it is missing, no ledger, of a newer pairwright, or cannot be written.
        """
        if not create and not path.exists():
            raise StorageError(f"{path}: no batch was ever sent from here. Check the path of the cache.")
        with translate_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                _make_ready(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Use it in a ``with``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def upload_path(self) -> Path:
        """Where the input of a batch is written before it is uploaded, by who holds the turn."""
        return self.path.with_name(self.path.name + ".upload")

    @asynccontextmanager
    async def turn(self, pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[None]:
        """Hold the turn to submit and to merge; one process, and one task of it, has it at a time."""
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
        """Return what is known of keys.

        Raises:
            StorageError: here as in every method, when the file cannot be read or written.
        """
        found: dict[str, LedgerLine] = {}
        rest = iter(keys)
        marks = ", ".join("?" * _MANY)
        query = (
            "SELECT key, batch, state, word, data FROM lines JOIN batches ON number = batch"  # noqa: S608 - marks only
            f" WHERE key IN ({marks})"
        )
        while chunk := [bytes.fromhex(key) for key in islice(rest, _MANY)]:
            with translate_errors(self.path):
                rows = self._connection.execute(query, chunk + [None] * (_MANY - len(chunk))).fetchall()
            for key, batch, state, word, data in rows:
                outcome = None if word is None else LineResult(key.hex(), word, data)
                found[key.hex()] = LedgerLine(batch, state, outcome)
        return found

    def entry(self, number: int) -> LedgerBatch | None:
        """Return a batch."""
        with translate_errors(self.path):
            row = self._connection.execute(f"{_BATCH} WHERE number = ?", (number,)).fetchone()
        return LedgerBatch(*row) if row else None

    def entries(self, endpoint: str, state: State) -> list[LedgerBatch]:
        """Return the batches of an endpoint that are in a state, the oldest first."""
        query = f"{_BATCH} WHERE endpoint = ? AND state = ? ORDER BY number"
        with translate_errors(self.path):
            return [LedgerBatch(*row) for row in self._connection.execute(query, (endpoint, state))]

    def claim(self, token: str, endpoint: str, model: str, keys: Sequence[str]) -> LedgerBatch:
        """Note a batch that is about to be made; ``keys`` in the order of its lines."""
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
        """Note the name that the server gave."""
        self._change("UPDATE batches SET id = ?, state = 'sent' WHERE number = ?", (identity, number))

    def drop(self, number: int) -> None:
        """Take a batch out that was never worked on; its keys are free."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.execute("DELETE FROM lines WHERE batch = ?", (number,))
            self._connection.execute("DELETE FROM batches WHERE number = ?", (number,))

    def store(self, number: int, outcomes: Sequence[LineResult]) -> set[str]:
        """Keep what became of lines, the first of several for one line; return the keys that are of the batch and new."""
        new: set[str] = set()
        query = "UPDATE lines SET word = ?, data = ? WHERE key = ? AND batch = ? AND word IS NULL"
        with translate_errors(self.path), transaction(self._connection):
            for each in outcomes:
                values = (each.code, each.data, bytes.fromhex(each.key), number)
                if self._connection.execute(query, values).rowcount:
                    new.add(each.key)
        return new

    def end(self, number: int) -> None:
        """Note that a batch is merged; keys of lines that did not come back are free."""
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
        """Take answers out that are safe elsewhere, and ended batches of which nothing is left."""
        with translate_errors(self.path), transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM lines WHERE key = ? AND word = ''", ((bytes.fromhex(key),) for key in keys)
            )
            self._connection.execute(
                "DELETE FROM batches WHERE state = 'ended' AND NOT EXISTS (SELECT 1 FROM lines WHERE batch = number)"
            )

    def _change(self, query: str, values: tuple[object, ...]) -> None:
        with translate_errors(self.path):
            self._connection.execute(query, values)


def _make_ready(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    with transaction(connection):
        if not next(_pragmas(connection, "application_id")):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise StorageError(f"{path}: a database, but no ledger of batches. Give another path.")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        found = [*_pragmas(connection, "application_id", "user_version")]
        if found[0] != _APPLICATION_ID:
            raise StorageError(f"{path}: a database, but no ledger of batches. Give another path.")
        if found[1] > _VERSION:
            raise StorageError(f"{path}: written by a newer pairwright. Upgrade pairwright, or give another path.")
        old = (time.time() - RETENTION_DAYS * 24 * 3600,)
        connection.execute(
            "DELETE FROM lines WHERE batch IN (SELECT number FROM batches WHERE state = 'ended' AND made < ?)", old
        )
        connection.execute("DELETE FROM batches WHERE state = 'ended' AND made < ?", old)


def _pragmas(connection: sqlite3.Connection, *names: str) -> Iterator[int]:
    for name in names:
        yield int(connection.execute(f"PRAGMA {name}").fetchone()[0])
