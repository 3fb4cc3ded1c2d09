"""Contents of a response cache, and pruning it.

The age of a response counts from its arrival; lookups leave no trace in the file. Pruning works in small transactions, so
that other processes can write in between, and returns free space to the file system.
"""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.generators.llm.cache.database import BYTES, drop_refused, open_database, transaction, translate_errors

_STEP = 1000  # responses removed, or pages freed, per transaction


_TOTALS = ("answers", "prompt_tokens", "completion_tokens", "bytes")  # of a model, and of all
_OF_MODEL = ("endpoint", "model", *_TOTALS, "first", "last")


def summarize_cache(path: Path) -> dict[str, Any]:
    """Return the contents of the cache at ``path`` as JSON values.

    Returns:
        ``answers``, ``prompt_tokens`` and ``completion_tokens`` (as counted by the servers; 0 if they do not), ``bytes`` of
        texts and raw bodies; ``file_bytes``; and ``models``: by ``endpoint`` (`base_url.server_id`) and ``model`` (name in
        the requests), in alphabetical order, the same and the arrival of the ``first`` and ``last`` answer in seconds since
        1970.

    Raises:
        StorageError: the cache is missing or cannot be read.
    """
    with closing(open_database(path, create=False)) as connection, translate_errors(path):
        rows = connection.execute(
            "SELECT endpoint, asked, count(*), sum(prompt_tokens), sum(completion_tokens),"  # noqa: S608 - our own names
            f" sum({BYTES}), min(answered) / 1000.0, max(answered) / 1000.0"
            " FROM answers GROUP BY endpoint, asked ORDER BY endpoint, asked"
        ).fetchall()
        files = [path, path.with_name(path.name + "-wal")]
        file_bytes = sum(file.stat().st_size for file in files if file.exists())
    models = [dict(zip(_OF_MODEL, row, strict=True)) for row in rows]
    return {
        **{name: sum(model[name] for model in models) for name in _TOTALS},
        "file_bytes": file_bytes,
        "models": models,
    }


def count_at_other_endpoints(path: Path, endpoint: str, model: str) -> dict[str, int]:
    """Return the answers of a model by endpoint, if the cache at ``path`` has some, and none of ``endpoint``.

    Raises:
        StorageError: the cache is missing or cannot be read.
    """
    with closing(open_database(path, create=False)) as connection, translate_errors(path):
        own = "SELECT 1 FROM answers WHERE endpoint = ? AND asked = ? LIMIT 1"
        if connection.execute(own, (endpoint, model)).fetchone():
            return {}
        others = "SELECT endpoint, count(*) FROM answers WHERE asked = ? GROUP BY endpoint ORDER BY 2 DESC, 1"
        return dict(connection.execute(others, (model,)).fetchall())


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """Which responses to remove: those that match all given conditions; then the oldest while the rest is too large.

    Attributes:
        model: name in the request or the response; empty: all.
        older_than: seconds since arrival; None: any age.
        most_bytes: maximum size of the rest, texts and raw bodies; None: unlimited.
    """

    model: str = ""
    older_than: float | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PruneResult:
    """Number and bytes of the responses that were (or would be) removed, and number of those kept."""

    dropped: int
    bytes: int
    kept: int


def prune_cache(path: Path, pruning: PruneOptions, *, dry_run: bool = False) -> PruneResult:
    """Remove responses from the cache at ``path``; ``dry_run`` only counts them.

    Raises:
        StorageError: the cache is missing or cannot be written.
    """
    with closing(open_database(path, create=False)) as connection, translate_errors(path):
        _choose(connection, pruning)
        dropped, size = connection.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM chosen").fetchone()
        total = connection.execute("SELECT count(*) FROM answers").fetchone()[0]
        if not dry_run:
            _drop(connection)
            if pruning.model and pruning.older_than is None:
                drop_refused(connection, pruning.model)
        return PruneResult(dropped, size, total - dropped)


def _choose(connection: sqlite3.Connection, pruning: PruneOptions) -> None:
    """Create the temporary table ``chosen`` of the responses to remove."""
    connection.execute("CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY, bytes INTEGER)")
    conditions: list[str] = []
    values: list[str | int] = []
    if pruning.model:
        conditions.append("(asked = ? OR model = ?)")
        values += [pruning.model, pruning.model]
    if pruning.older_than is not None:
        conditions.append("answered < ?")
        values.append(int((time.time() - pruning.older_than) * 1000))
    if conditions:
        connection.execute(
            f"INSERT INTO chosen SELECT rowid, {BYTES} FROM answers WHERE {' AND '.join(conditions)}",  # noqa: S608 - values are bound
            values,
        )
    if pruning.most_bytes is not None:
        # Newest first; ties are broken by key.
        connection.execute(
            "INSERT INTO chosen SELECT id, bytes FROM ("  # noqa: S608 - our own names
            f" SELECT rowid AS id, {BYTES} AS bytes, sum({BYTES}) OVER (ORDER BY answered DESC, key) AS upto"
            " FROM answers WHERE rowid NOT IN (SELECT id FROM chosen)) WHERE upto > ?",
            (pruning.most_bytes,),
        )


def _drop(connection: sqlite3.Connection) -> None:
    while True:
        ids = connection.execute("SELECT id FROM chosen LIMIT ?", (_STEP,)).fetchall()
        if not ids:
            break
        with transaction(connection):
            connection.executemany("DELETE FROM answers WHERE rowid = ?", ids)
        connection.executemany("DELETE FROM chosen WHERE id = ?", ids)
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    for _ in range(-(-free // _STEP)):
        connection.executescript(f"PRAGMA incremental_vacuum({_STEP})")  # `execute` stops after the first page
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
