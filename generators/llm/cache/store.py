"""Every paid answer, kept in one SQLite file and never paid for again.

- `Cache`: answers by key. What is put is there at once for this process, and on the disk, for all, within 100 ms: one
  thread commits what has come since its last commit, so that a thousand answers cost one flush of the disk. A process
  that is killed loses nothing that was put; a machine that loses its power, the last 100 ms.
- `CachedModel`: a model that asks another one only what the cache does not hold. Two equal requests at once are one.

Whatever was answered is kept: refusals too, and texts that break off. They were paid for, and would come again.
Failures are not answers and are asked again.

    with Cache.open(Path("llm-cache.sqlite")) as cache:
        model = CachedModel(model, cache, "http://localhost:8000")
        reply = await model.ask(request)

Any number of processes may use the file at once; each sees what the others have committed, and waits for what another
one is asking (`cache_claims`). Reading is done where it is asked for, on the event loop too: some 10 us where the
file is in the system's memory, a disk's access where it is not. A cache does not survive a fork: open it after.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from pairwright.generators.llm.cache.database import (
    SELECT,
    AnswerRow,
    add_refused,
    open_database,
    read_refused,
    reply_from_row,
    storage_error,
    translate_errors,
)
from pairwright.generators.llm.cache.journal import open_with_journals
from pairwright.generators.llm.cache.leases import Leases
from pairwright.generators.llm.cache.presence import PresenceFilter
from pairwright.generators.llm.cache.writer import CacheWriter
from pairwright.generators.llm.client.base_url import server_id
from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage

SECRET_LENGTH = 16  # letters; what is shorter ("EMPTY", "none") is no secret, and may be a word of an answer

POLL_RANGE_S = (0.03, 5.0)  # seconds between two looks for an answer that another process is getting: first, longest
POLL_SHARE = 0.001  # between two looks of all rows that wait for such answers: many look less often, each of them

_MOST_TOKENS = 2**53  # an answer; a server may claim more than the file's numbers hold
_BY_KEY = f"{SELECT} WHERE key = ?"
_MANY = 500
_BY_KEYS = f"{SELECT} WHERE key IN ({', '.join('?' * _MANY)})"


class Cache:
    """The answers in one file. Close it, or use it in a ``with``; what is pending is written then."""

    def __init__(self, reader: sqlite3.Connection, writer: CacheWriter, claims: Leases, path: Path) -> None:
        self._reader, self._writer, self._claims = reader, writer, claims
        self._known = PresenceFilter(reader, claims)
        self.path = path

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open the cache at ``path``; ``create`` makes one, and its folder, where there is none.

        Raises:
            StorageError: when it is missing, no cache, damaged, of a newer pairwright, or cannot be written.
        """
        connection = open_with_journals(path, create=create)
        try:
            claims = Leases(path)
        except OSError as error:
            connection.close()
            raise storage_error(path.with_name(path.name + "-claims"), error) from None
        return cls(open_database(path, create=False), CacheWriter(connection, path, claims), claims, path)

    def get(self, key: str) -> Reply | None:
        """Return the answer to the request with this key, ``cached`` set; None where there is none.

        Raises:
            StorageError: when the file cannot be read.
        """
        binary = bytes.fromhex(key)
        row = self._writer.get(binary)
        if row is None:
            try:
                if self._known.definitely_absent(binary):
                    return None
                row = self._reader.execute(_BY_KEY, (binary,)).fetchone()
            except sqlite3.Error as error:
                raise storage_error(self.path, error) from None
        return None if row is None else reply_from_row(row)

    def get_many(self, keys: Iterable[str]) -> dict[str, Reply]:
        """Return the answers that there are, by key; cheaper than one by one.

        Raises:
            StorageError: when the file cannot be read.
        """
        found: dict[str, Reply] = {}
        rest = iter(keys)
        while chunk := [bytes.fromhex(key) for key in islice(rest, _MANY)]:
            rows = [row for key in chunk if (row := self._writer.get(key)) is not None]
            with translate_errors(self.path):
                rows += self._reader.execute(_BY_KEYS, chunk + [None] * (_MANY - len(chunk))).fetchall()
            found.update((row[0].hex(), reply_from_row(row)) for row in reversed(rows))  # pending ones win
        return found

    def put(self, key: str, reply: Reply, *, asked: str, endpoint: str) -> Reply:
        """Keep an answer; where the key is known, the older answer stays.

        Args:
            key: of the request.
            reply: the answer, with its ``raw`` body.
            asked: the model as the request names it.
            endpoint: identifier of the server (`address.server_id`).

        Returns:
            The answer as it is kept: with its key, half characters (lone surrogates) replaced, token counts up to 2**53.

        Raises:
            StorageError: when the file cannot be written.
        """
        kept = _is_cacheable(reply, key)
        self._known.add(bytes.fromhex(key))
        self._writer.put(_to_row(kept, asked, endpoint))
        return kept

    def claim(self, key: str) -> bool:
        """Say that this process asks for a key now; return False when another one already does, or has just done so.

        The claim ends when the answer is on the disk, or with `unclaim`.

        Raises:
            StorageError: when the file cannot be read.
        """
        binary = bytes.fromhex(key)
        if not self._claims.take(binary):
            return False
        if self._claims.shared and self.get(key) is not None:  # it came since the caller looked
            self._claims.drop(binary)
            return False
        return True

    def release_claim(self, key: str) -> None:
        """Say that there will be no answer to a claimed key."""
        self._claims.drop(bytes.fromhex(key))

    def refused(self, endpoint: str) -> list[tuple[str, str]]:
        """Return pairs of a model at an endpoint and the part of requests that it refuses (`adapting`).

        Raises:
            StorageError: when the file cannot be read.
        """
        with translate_errors(self.path):
            return read_refused(self._reader, endpoint)

    def refuse(self, endpoint: str, model: str, name: str) -> None:
        """Keep that a model at an endpoint refuses a part of requests, for later runs.

        Raises:
            StorageError: when the file cannot be written.
        """
        with translate_errors(self.path):
            add_refused(self._reader, endpoint, model, name)

    def flush(self) -> None:
        """Write what is pending, now.

        Raises:
            StorageError: when that fails.
        """
        self._writer.flush()

    def close(self) -> None:
        """Write what is pending and close the file.

        Raises:
            StorageError: when answers could not be written; it says how many, and whether they are lost.
        """
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class CachedModel:
    """A model that asks ``model`` only what ``cache`` does not hold; of equal requests at once, one is sent.

    Put it outside what retries and paces: an answer that is there has no need to wait for its turn.

    Args:
        model: answers what the cache does not hold.
        cache: read first, then filled.
        endpoint: the server's address, of which scheme, host, port and path count, or the user's name for it.
        secrets: keys and passwords; they are taken out of answers before they are kept, in case a server echoes them.

    Raises:
        UsageError: when ``endpoint`` looks like an address and is none.
    """

    def __init__(self, model: Model, cache: Cache, endpoint: str, *, secrets: Sequence[str] = ()) -> None:
        self._model, self._cache = model, cache
        self._endpoint = server_id(endpoint)
        self._secrets = [secret for secret in secrets if len(secret) >= SECRET_LENGTH]
        self._asking: dict[str, asyncio.Future[Reply]] = {}
        self._elsewhere = 0  # rows that wait for what another process is getting

    async def ask(self, request: Request) -> Reply:
        """Return the answer, with its key; ``cached`` tells that nothing was paid for it.

        Raises:
            Failure: as the model raises it; equal requests that waited for this one get the same.
            StorageError: when the cache's file cannot be read or written.
        """
        key = request.key(self._endpoint)
        wait, longest = POLL_RANGE_S
        while True:
            found = self._cache.get(key)
            if found is not None:
                return found
            sent = self._asking.get(key)
            if sent is None and self._cache.claim(key):
                return await self._send(key, request)
            if sent is None:  # another process asks
                await self._look_later(wait)
                wait = min(1.5 * wait, longest)
                continue
            await asyncio.wait([sent])  # leaves the one who sent it alone when we are cancelled
            if not sent.cancelled():
                return replace(sent.result(), cached=True)

    async def _look_later(self, wait: float) -> None:
        self._elsewhere += 1
        try:
            # A look is some 50 us of CPU: the 50,000 rows of a batch would else keep a core busy with looking.
            await asyncio.sleep(max(wait, self._elsewhere * POLL_SHARE))
        finally:
            self._elsewhere -= 1

    async def _send(self, key: str, request: Request) -> Reply:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asking[key] = answer
        try:
            reply = self._without_secrets(await self._model.ask(request))
            reply = self._cache.put(key, reply, asked=request.model, endpoint=self._endpoint)
        except BaseException as error:
            self._cache.release_claim(key)
            if isinstance(error, Exception):
                answer.set_exception(error)
                answer.exception()  # else asyncio complains when nobody waits for it
            raise
        else:
            answer.set_result(reply)
            return reply
        finally:
            answer.cancel()  # has no effect when it is done: whoever waits asks for itself
            del self._asking[key]

    def _without_secrets(self, reply: Reply) -> Reply:
        for secret in self._secrets:
            if secret in reply.text or secret in reply.refusal or secret.encode() in reply.raw:
                text, refusal = reply.text.replace(secret, "***"), reply.refusal.replace(secret, "***")
                reply = replace(reply, text=text, refusal=refusal, raw=reply.raw.replace(secret.encode(), b"***"))
        return reply


def _is_cacheable(reply: Reply, key: str) -> Reply:
    usage = reply.usage
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    if max(counts) > _MOST_TOKENS:
        usage = Usage(*(min(count, _MOST_TOKENS) for count in counts))
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
    """Return the text with half characters replaced: a server may send them, and no file can hold them."""
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
