"""SQLite cache of model responses, and a model that asks only what the cache does not hold.

- `Cache`: responses by request key. `Cache.flush` commits those that were put, so a killed process (``kill -9``) loses
  none of them; a power cut costs at most the last `SYNC_INTERVAL_S` seconds.
- `CachedModel`: wraps a model. Identical concurrent requests are sent once. A response is returned when it is committed;
  those that arrive in one iteration of the event loop share a transaction.

Every response is stored, including refusals and truncated texts: they were billed and would come again. Request errors
are not stored.

    with Cache.open(Path("llm-cache.sqlite")) as cache:
        model = CachedModel(model, cache, "http://localhost:8000")
        reply = await model.ask(request)

Several processes may use one file at once; a key that another process is requesting is waited for (`leases`). A cache
does not survive a fork: open it afterwards.

Durability is SQLite's own: in WAL mode with ``synchronous=NORMAL`` a commit is one ``write`` to the operating system,
which keeps it when the process dies. A thread syncs the WAL to disk. An earlier version grouped commits in a thread and
journalled responses until then, in 220 lines of code more (``benchmarks/own_code.py``, ``benchmarks/llm/cache.py``).
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.cache.database import (
    SELECT,
    AnswerRow,
    add_refused,
    insert_rows,
    open_database,
    read_refused,
    reply_from_row,
    storage_error,
    translate_errors,
)
from pairwright.generators.llm.cache.leases import HEARTBEAT_S, Leases
from pairwright.generators.llm.client.base_url import server_id
from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage

SECRET_LENGTH = 16  # characters; shorter values ("EMPTY", "none") may be words of an answer
SYNC_INTERVAL_S = HEARTBEAT_S  # between two syncs of the WAL to disk

POLL_RANGE_S = (0.03, 5.0)  # first and longest interval between lookups of a key that another process is requesting
POLL_SHARE = 0.001  # seconds between lookups over all waiting rows: with more rows, each is looked up less often

_MAX_TOKENS = 2**53  # of a response; a server may report more than the file's integers hold
_BY_KEY = f"{SELECT} WHERE key = ?"


class Cache:
    """Responses in one SQLite file. Methods may be called from any thread. Close it, or use it in a ``with``."""

    def __init__(self, connection: sqlite3.Connection, leases: Leases, path: Path) -> None:
        self.path = path
        self._connection, self._leases = connection, leases
        self._unwritten: dict[bytes, AnswerRow] = {}  # rows being written, or that could not be
        self._lock = threading.Lock()
        self._unsynced = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="pairwright-cache", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open the cache at ``path``.

        Args:
            path: SQLite file.
            create: create the file and its folder if missing.

        Raises:
            StorageError: the file is missing, not a cache, damaged, from a newer pairwright, or not writable.
        """
        connection = open_database(path, create=create)
        try:
            leases = Leases(path)
        except OSError as error:
            connection.close()
            raise storage_error(path.with_name(path.name + "-claims"), error) from None
        return cls(connection, leases, path)

    def get(self, key: str) -> Reply | None:
        """Return the response to the request with this key, with ``cached`` set, or None.

        Raises:
            StorageError: the file cannot be read.
        """
        binary = bytes.fromhex(key)
        row = self._unwritten.get(binary)
        if row is None:
            try:
                row = self._connection.execute(_BY_KEY, (binary,)).fetchone()
            except sqlite3.Error as error:
                raise storage_error(self.path, error) from None
        return None if row is None else reply_from_row(row)

    def get_many(self, keys: Iterable[str]) -> dict[str, Reply]:
        """Return the stored responses among ``keys``; errors as in `get`."""
        return {key: reply for key in keys if (reply := self.get(key)) is not None}

    def put(self, key: str, reply: Reply, *, asked: str, endpoint: str) -> Reply:
        """Take a response, which `flush` writes; an existing response to the same key stays.

        Args:
            key: of the request.
            reply: with its ``raw`` body.
            asked: model name in the request.
            endpoint: server identifier (`base_url.server_id`).

        Returns:
            The response as stored: with its key, lone surrogates replaced, token counts capped at 2**53.

        """
        stored = _as_stored(reply, key)
        row = _to_row(stored, asked, endpoint)
        with self._lock:
            self._unwritten.setdefault(row[0], row)
        return stored

    def claim(self, key: str) -> bool:
        """Claim a key for this process; return False if another process claims it, or has just stored its response.

        The claim ends when the response is stored, or with `release_claim`.

        Raises:
            StorageError: the file cannot be read.
        """
        binary = bytes.fromhex(key)
        if not self._leases.take(binary):
            return False
        if self._leases.shared and self.get(key) is not None:  # stored since the caller's lookup
            self._leases.drop(binary)
            return False
        return True

    def release_claim(self, key: str) -> None:
        """Release the claim of a key without a response."""
        self._leases.drop(bytes.fromhex(key))

    def refused(self, endpoint: str) -> list[tuple[str, str]]:
        """Return (model, request part) pairs that an endpoint refuses (`request_adaptation`).

        Raises:
            StorageError: the file cannot be read.
        """
        with translate_errors(self.path):
            return read_refused(self._connection, endpoint)

    def refuse(self, endpoint: str, model: str, name: str) -> None:
        """Store that a model at an endpoint refuses a part of requests, for later runs.

        Raises:
            StorageError: the file cannot be written.
        """
        with translate_errors(self.path):
            add_refused(self._connection, endpoint, model, name)

    def flush(self) -> None:
        """Commit the responses that are not written yet, in one transaction.

        Raises:
            StorageError: the file cannot be written. They are kept in memory; the next `flush` and `close` try again.
        """
        with self._lock:
            if not self._unwritten:
                return
            with translate_errors(self.path):
                insert_rows(self._connection, list(self._unwritten.values()))
            self._unsynced = True
            for key in self._unwritten:
                self._leases.drop(key)
            self._unwritten.clear()

    def close(self) -> None:
        """Write what is not written yet and close the file.

        Raises:
            StorageError: responses could not be written; the message gives their number.
        """
        self._closing.set()
        self._thread.join()
        try:
            self.flush()
        except StorageError as error:
            raise StorageError(f"{error} Lost: {count_phrase(len(self._unwritten), 'answer')}.") from None
        finally:
            self._connection.close()
            self._leases.close()

    def _keep_alive(self) -> None:
        """Renew the leases and sync the WAL until the cache is closed."""
        log = self.path.with_name(self.path.name + "-wal")
        while not self._closing.wait(HEARTBEAT_S):
            self._leases.beat()
            if self._unsynced:
                self._unsynced = False
                with contextlib.suppress(OSError):  # a failing disk is reported by the next write
                    handle = os.open(log, os.O_RDWR)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class CachedModel:
    """Model that sends only requests whose response is not in ``cache``; identical concurrent requests are sent once.

    Wrap retries and rate limits with it, so that cached responses do not wait for them.

    Args:
        model: wrapped model.
        cache: read first, then filled.
        endpoint: server URL, of which scheme, host, port and path count, or the user's name for it.
        secrets: keys and passwords, redacted in responses before they are stored, in case a server echoes them.
        prepare: returns a request as it is looked up and sent; None: as it is.

    Raises:
        UsageError: ``endpoint`` is a malformed URL.
    """

    def __init__(
        self,
        model: Model,
        cache: Cache,
        endpoint: str,
        *,
        secrets: Sequence[str] = (),
        prepare: Callable[[Request], Request] | None = None,
    ) -> None:
        self._model, self._cache, self._prepare = model, cache, prepare
        self._endpoint = server_id(endpoint)
        self._secrets = [secret for secret in secrets if len(secret) >= SECRET_LENGTH]
        self._asking: dict[str, asyncio.Future[Reply]] = {}
        self._storing: list[asyncio.Future[None]] = []  # of responses that are written together
        self._waiting = 0  # rows that wait for another process

    async def ask(self, request: Request) -> Reply:
        """Return the response with its key; ``cached`` if it was not billed.

        Raises:
            RequestError: as the model raises it; identical requests that waited get the same error.
            StorageError: the cache file cannot be read or written.
        """
        if self._prepare is not None:
            request = self._prepare(request)
        key = request.key(self._endpoint)
        wait, longest = POLL_RANGE_S
        while True:
            found = self._cache.get(key)
            if found is not None:
                return found
            sent = self._asking.get(key)
            if sent is None and self._cache.claim(key):
                return await self._send(key, request)
            if sent is None:  # another process sends it
                await self._sleep_before_lookup(wait)
                wait = min(1.5 * wait, longest)
                continue
            await asyncio.wait([sent])  # does not cancel the sender when we are cancelled
            if not sent.cancelled():
                return replace(sent.result(), cached=True)

    async def _sleep_before_lookup(self, wait: float) -> None:
        self._waiting += 1
        try:
            # A lookup takes some 50 us of CPU: those of a batch's 50,000 rows would keep a core busy.
            await asyncio.sleep(max(wait, self._waiting * POLL_SHARE))
        finally:
            self._waiting -= 1

    async def _send(self, key: str, request: Request) -> Reply:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asking[key] = answer
        try:
            reply = self._without_secrets(await self._model.ask(request))
            reply = self._cache.put(key, reply, asked=request.model, endpoint=self._endpoint)
            await self._stored()
        except BaseException as error:
            self._cache.release_claim(key)
            if isinstance(error, Exception):
                answer.set_exception(error)
                answer.exception()  # mark as retrieved, in case no row waits
            raise
        else:
            answer.set_result(reply)
            return reply
        finally:
            answer.cancel()  # unless it is done: waiting rows then send their own request
            del self._asking[key]

    async def _stored(self) -> None:
        """Wait until the response that was added is written, with all others of this iteration of the event loop."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._storing.append(stored)
        if len(self._storing) == 1:
            loop.call_soon(self._flush)
        await stored

    def _flush(self) -> None:
        storing, self._storing = self._storing, []
        failure: Exception | None = None
        try:
            self._cache.flush()
        except Exception as error:  # noqa: BLE001 - raised where the responses are waited for
            failure = error
        for stored in storing:
            if stored.done():  # cancelled
                continue
            if failure is None:
                stored.set_result(None)
            else:
                stored.set_exception(failure)

    def _without_secrets(self, reply: Reply) -> Reply:
        for secret in self._secrets:
            if secret in reply.text or secret in reply.refusal or secret.encode() in reply.raw:
                text, refusal = reply.text.replace(secret, "***"), reply.refusal.replace(secret, "***")
                reply = replace(reply, text=text, refusal=refusal, raw=reply.raw.replace(secret.encode(), b"***"))
        return reply


def _as_stored(reply: Reply, key: str) -> Reply:
    usage = reply.usage
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    if max(counts) > _MAX_TOKENS:
        usage = Usage(*(min(count, _MAX_TOKENS) for count in counts))
    return Reply(
        _replace_surrogates(reply.text),
        _replace_surrogates(reply.finish_reason),
        _replace_surrogates(reply.refusal),
        usage,
        _replace_surrogates(reply.model),
        key,
        raw=reply.raw,
    )


def _replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced: servers may send them, but UTF-8 cannot encode them."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _to_row(reply: Reply, asked: str, endpoint: str) -> AnswerRow:
    return (
        bytes.fromhex(reply.key),
        endpoint,
        asked,
        reply.model,
        time.time_ns() // 1_000_000,
        reply.finish_reason,
        reply.refusal,
        reply.usage.prompt_tokens,
        reply.usage.completion_tokens,
        reply.usage.cached_tokens,
        reply.text,
        reply.raw,
    )
