"""The cache's file: opening it, its one table, and what goes wrong with files said in one line.

A row is what was answered, never what was asked: the key alone stands for the request, so that no prompt, no address
beyond scheme, host, port and path, and nothing that authorises is in the file.

SQLite in WAL mode (https://www.sqlite.org/wal.html): readers never wait, writers of several processes take turns.
WAL needs memory that the processes share, so the file has to lie on a disk of this machine.
"""

import errno
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.client.messages import Reply, Usage

SCHEMA_VERSION = 1
APPLICATION_ID = 0x70776C63  # "pwlc": tells our file from any other that SQLite can open
_FULL = "the disk is full. Make room and run again: the answers in the file are kept."
BUSY_SECONDS = 60.0  # for which a writer waits for its turn

COLUMNS = (
    "key",
    "endpoint",
    "asked",
    "model",
    "answered",
    "finish_reason",
    "refusal",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "text",
    "raw",
)
AnswerRow = tuple[bytes, str, str, str, int, str, str, int, int, int, str, bytes]
SELECT = f"SELECT {', '.join(COLUMNS)} FROM answers"  # noqa: S608 - our own names
INSERT = f"INSERT OR IGNORE INTO answers ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
BYTES = "length(CAST(text AS BLOB)) + length(CAST(refusal AS BLOB)) + length(raw)"

# The long columns come last: what counts and sums must not read through them.
_TABLE = """
CREATE TABLE answers (
    key BLOB NOT NULL PRIMARY KEY,
    endpoint TEXT NOT NULL,
    asked TEXT NOT NULL,
    model TEXT NOT NULL,
    answered INTEGER NOT NULL,
    finish_reason TEXT NOT NULL,
    refusal TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    text TEXT NOT NULL,
    raw BLOB NOT NULL
)
"""


# Made when the first refusal is kept: older files have none.
_REFUSED = """
CREATE TABLE IF NOT EXISTS refused (
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (endpoint, model, name)
) WITHOUT ROWID
"""


def read_refused(connection: sqlite3.Connection, endpoint: str) -> list[tuple[str, str]]:
    """Return pairs of a model at an endpoint and the part of requests that it refuses (`adapting`), in order."""
    if not _has_refused(connection):
        return []
    return connection.execute(
        "SELECT model, name FROM refused WHERE endpoint = ? ORDER BY 1, 2", (endpoint,)
    ).fetchall()


def add_refused(connection: sqlite3.Connection, endpoint: str, model: str, name: str) -> None:
    """Keep that a model at an endpoint refuses a part of requests."""
    connection.execute(_REFUSED)
    connection.execute("INSERT OR IGNORE INTO refused VALUES (?, ?, ?)", (endpoint, model, name))


def drop_refused(connection: sqlite3.Connection, model: str) -> None:
    """Forget what a model refuses, at any endpoint."""
    if _has_refused(connection):
        with transaction(connection):
            connection.execute("DELETE FROM refused WHERE model = ?", (model,))


def _has_refused(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'refused'").fetchone() is not None


def reply_from_row(row: AnswerRow) -> Reply:
    """Return the answer that a row of the table holds."""
    key, _, _, model, _, finish_reason, refusal, prompt, completion, cached, text, raw = row
    return Reply(text, finish_reason, refusal, Usage(prompt, completion, cached), model, key.hex(), True, raw)


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the cache at ``path``, in autocommit mode, for use from any thread.

    Raises:
        StorageError: when it is missing (and not to be made), no cache, damaged, of a newer pairwright, or where
            nothing can be written.
    """
    if not create and not path.exists():
        raise StorageError(f"{path}: there is no cache. Check the path.")
    if not create and path.is_file() and not path.stat().st_size:
        raise StorageError(f"{path}: an empty file, no cache of answers. Check the path; nothing was written to it.")
    with translate_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _check(connection, path, create=create)
            _create_tables(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _check(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    with transaction(connection, "BEGIN"):  # one view of the file: another process may be making it meanwhile
        version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (application or version or tables or not create):
        raise StorageError(f"{path}: a database, but no cache of answers. Give another path.")
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path}: written by a newer pairwright (version {version} of the file, this one knows {SCHEMA_VERSION})."
            " Upgrade pairwright, or give another path."
        )


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    for pragma in (
        "cache_size = -16000",
        "synchronous = NORMAL",
        "auto_vacuum = INCREMENTAL",
    ):
        connection.execute(f"PRAGMA {pragma}")
    if _enable_wal(connection) != "wal":
        raise StorageError(
            f"{path}: the file system cannot share a database between processes. Keep it on a local disk."
        )
    if _pragma(connection, "user_version"):
        return
    with transaction(connection):
        if not _pragma(connection, "user_version"):  # another process may have been first
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _enable_wal(connection: sqlite3.Connection) -> str:
    """Switch to WAL. SQLite does not wait for its turn here, so this does."""
    ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > ends:
                raise
            time.sleep(0.01)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Write all of a block or nothing; other writers wait. A plain ``BEGIN`` reads all of it from one state."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back when the disk is full
            connection.execute("ROLLBACK")
        raise


def insert_rows(connection: sqlite3.Connection, rows: Sequence[AnswerRow]) -> int:
    """Add rows in one transaction and return the number of new ones; existing rows stay."""
    before = connection.total_changes
    with transaction(connection):
        connection.executemany(INSERT, rows)
    return connection.total_changes - before


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise what SQLite and the system say about the file at ``path`` as a `StorageError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from None


def storage_error(path: Path, error: sqlite3.Error | OSError) -> StorageError:
    """Return what SQLite or the system said about the file at ``path``, with what to do about it."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StorageError(f"{path}: {_FULL}")
    if isinstance(error, OSError):
        return StorageError(f"{path}: cannot be opened ({error.strerror or error}). Give a path that can be written.")
    return StorageError(f"{path}: {_sqlite_message(error)}")


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _sqlite_message(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if _is_busy(error):
        return f"another process has been writing for {BUSY_SECONDS:.0f} s. Wait for it and run again."
    if code == sqlite3.SQLITE_FULL:
        return _FULL
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return f"cannot be written ({error}). Give a file in a folder that can be written."
    if code == sqlite3.SQLITE_NOTADB:
        return "not a cache of answers. Give another path."
    if code == sqlite3.SQLITE_CORRUPT:
        return "damaged. Move it away; `pairwright cache import` brings back what was exported."
    return f"cannot be read or written ({error}). Check the disk and run again."
