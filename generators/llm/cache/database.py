"""SQLite file of the response cache: schema, opening, and error messages; the opening also of other files.

A row holds the response and the request's key, but no prompt, no URL beyond scheme, host, port and path, and no
credentials.

The file is in WAL mode (https://www.sqlite.org/wal.html): readers never wait, writers of several processes take turns.
WAL requires shared memory, so the file has to be on a local disk. With ``synchronous=NORMAL`` a commit survives the death
of the process, and a power cut once the WAL is synced (`store.Cache` does so in the background).
"""

import errno
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.client.messages import Reply, Usage

_FULL = "the disk is full. Free space and run again: the answers in the file are kept."
BUSY_SECONDS = 60.0  # for which a writer waits for others

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


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of a SQLite file.

    Attributes:
        name: in errors.
        application_id: distinguishes it from other SQLite files.
        version: of the tables.
        tables: statements that create them.
        pragmas: of each connection.
        wal: whether it is in WAL mode.
    """

    name: str
    application_id: int
    version: int
    tables: str
    pragmas: tuple[str, ...]
    wal: bool = False


CACHE_FORMAT = FileFormat(
    "cache of answers",
    0x70776C63,  # "pwlc"
    1,
    # Long columns last: aggregates need not read them.
    """
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
""",
    ("cache_size = -16000", "synchronous = NORMAL", "auto_vacuum = INCREMENTAL"),
    wal=True,
)

# Created with the first refusal.
_REFUSED = """
CREATE TABLE IF NOT EXISTS refused (
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (endpoint, model, name)
) WITHOUT ROWID
"""


def read_refused(connection: sqlite3.Connection, endpoint: str) -> list[tuple[str, str]]:
    """Return (model, request part) pairs that an endpoint refuses (`request_adaptation`), sorted."""
    if not _has_refused(connection):
        return []
    return connection.execute(
        "SELECT model, name FROM refused WHERE endpoint = ? ORDER BY 1, 2", (endpoint,)
    ).fetchall()


def add_refused(connection: sqlite3.Connection, endpoint: str, model: str, name: str) -> None:
    """Store that a model at an endpoint refuses a part of requests."""
    connection.execute(_REFUSED)
    connection.execute("INSERT OR IGNORE INTO refused VALUES (?, ?, ?)", (endpoint, model, name))


def drop_refused(connection: sqlite3.Connection, model: str) -> None:
    """Remove the refusals of a model at all endpoints."""
    if _has_refused(connection):
        with transaction(connection):
            connection.execute("DELETE FROM refused WHERE model = ?", (model,))


def _has_refused(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'refused'").fetchone() is not None


def reply_from_row(row: AnswerRow) -> Reply:
    """Return the response in a row."""
    key, _, _, model, _, finish_reason, refusal, prompt, completion, cached, text, raw = row
    return Reply(text, finish_reason, refusal, Usage(prompt, completion, cached), model, key.hex(), True, raw)


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the cache at ``path`` in autocommit mode, for use from any thread.

    Raises:
        StorageError: the file is missing (without ``create``), not a cache, damaged, from a newer pairwright, or not writable.
    """
    if not create and not path.exists():
        raise StorageError(f"{path}: there is no cache at this path.")
    if not create and path.is_file() and not path.stat().st_size:
        raise StorageError(f"{path}: an empty file, not a cache of answers. Check the path; nothing was written.")
    return open_file(path, CACHE_FORMAT, create=create)


def open_file(path: Path, form: FileFormat, *, create: bool = True) -> sqlite3.Connection:
    """Open a file of a format in autocommit mode, for use from any thread; ``create`` creates its tables.

    Raises:
        StorageError: the file is of another format, damaged, from a newer pairwright, or not writable.
    """
    with translate_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _check(connection, path, form, create=create)
            _create_tables(connection, path, form)
        except BaseException:
            connection.close()
            raise
        return connection


def _check(connection: sqlite3.Connection, path: Path, form: FileFormat, *, create: bool) -> None:
    with transaction(connection, "BEGIN"):  # one view: another process may be creating the file
        version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != form.application_id and (application or version or tables or not create):
        raise StorageError(f"{path}: a database, but not a {form.name}. Use another path.")
    if version > form.version:
        raise StorageError(
            f"{path}: written by a newer pairwright (file version {version}, this one supports {form.version})."
            " Upgrade pairwright, or use another path."
        )


def _create_tables(connection: sqlite3.Connection, path: Path, form: FileFormat) -> None:
    for pragma in form.pragmas:
        connection.execute(f"PRAGMA {pragma}")
    if form.wal and _enable_wal(connection) != "wal":
        raise StorageError(
            f"{path}: the file system cannot share a database between processes. Keep it on a local disk."
        )
    if _pragma(connection, "user_version"):
        return
    with transaction(connection):
        if not _pragma(connection, "user_version"):  # unless another process was faster
            for statement in form.tables.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {form.application_id}")
            connection.execute(f"PRAGMA user_version = {form.version}")


def _enable_wal(connection: sqlite3.Connection) -> str:
    """Switch to WAL mode, waiting for other writers, which SQLite does not do here."""
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
    """Commit the block, or roll back on any exception. ``BEGIN`` gives one consistent view for reading."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back itself when the disk is full
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
    """Raise errors of SQLite and the operating system as `StorageError` about ``path``."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from None


def storage_error(path: Path, error: sqlite3.Error | OSError) -> StorageError:
    """Return the message for an error of SQLite or the operating system, with what to do about it."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StorageError(f"{path}: {_FULL}")
    if isinstance(error, OSError):
        return StorageError(f"{path}: cannot be opened ({error.strerror or error}). Use a writable path.")
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
        return f"cannot be written ({error}). Use a file in a writable folder."
    if code == sqlite3.SQLITE_NOTADB:
        return "not a cache of answers. Use another path."
    if code == sqlite3.SQLITE_CORRUPT:
        return "damaged. Move the file away; `pairwright cache import` restores an export."
    return f"cannot be read or written ({error}). Check the disk and run again."
