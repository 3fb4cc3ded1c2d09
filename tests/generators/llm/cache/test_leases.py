"""Leases: one process requests a key at a time, and dead processes block no key."""

import asyncio
import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.cache import leases
from pairwright.generators.llm.cache.leases import Leases
from pairwright.generators.llm.cache.store import POLL_SHARE, Cache, CachedModel
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from tests.generators.llm.client.virtual_time import run

KEY = bytes(range(16))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def test_a_claimed_key_is_refused_to_others_until_it_is_dropped(path: Path) -> None:
    one, other = Leases(path), Leases(path)
    assert one.take(KEY)
    assert not other.take(KEY)
    assert one.take(KEY)
    one.drop(KEY)
    assert other.take(KEY)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room on a disk")
def test_the_table_is_allocated_on_disk(path: Path) -> None:
    """Written to where the disk has no room left, a map of a file with holes ends the process (SIGBUS)."""
    claims = Leases(path)
    found = path.with_name(path.name + "-claims").stat()
    assert found.st_blocks * 512 >= found.st_size > 0
    claims.close()


def test_a_full_disk_is_reported_on_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "truncate", full)
    with pytest.raises(StorageError, match="sqlite-claims: the disk is full"):
        Cache.open(path)


def test_only_the_claimant_can_drop_a_claim(path: Path) -> None:
    one, other = Leases(path), Leases(path)
    one.take(KEY)
    other.drop(KEY)
    assert not other.take(KEY)


def test_leases_of_a_silent_process_expire(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Leases(path), Leases(path)
    one.take(KEY)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + leases.LEASE_TIMEOUT_S + 0.1)
    assert other.take(KEY)


def test_leases_of_a_process_that_has_left_expire(path: Path) -> None:
    one, other = Leases(path), Leases(path)
    one.take(KEY)
    one.close()
    assert other.take(KEY)


def test_the_last_process_removes_the_table(path: Path) -> None:
    one, other = Leases(path), Leases(path)
    one.close()
    assert [each.name for each in path.parent.iterdir()] == ["cache.sqlite-claims"]
    other.close()
    assert list(path.parent.iterdir()) == []


@given(st.sets(st.binary(min_size=16, max_size=16), max_size=200))
def test_no_two_processes_hold_a_key_while_few_are_under_way(keys: set[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        one, other = Leases(Path(folder) / "c"), Leases(Path(folder) / "c")
        taken = [key for number, key in enumerate(sorted(keys)) if (one if number % 2 else other).take(key)]
        again = [key for number, key in enumerate(sorted(keys)) if (other if number % 2 else one).take(key)]
        # Rare collisions: the first eight bytes are equal, or a bucket is full.
        assert len(taken) + len(again) <= len(keys) + 2


# Through the cache, with two caches in one process for two processes.

REPLY = Reply("yes", "stop", "", Usage(1, 1), "m")
REQUEST = Request((Message("user", "hello"),), "m")


class Slow:
    """Answers, or fails, after `go` is set."""

    def __init__(self, failure: RequestError | None = None) -> None:
        self.asked, self.failure, self.go = 0, failure, asyncio.Event()

    async def ask(self, request: Request) -> Reply:  # noqa: ARG002 - the seam's
        """Answer."""
        self.asked += 1
        await self.go.wait()
        if self.failure:
            raise self.failure
        return REPLY


def asked_by_two(path: Path, first: Slow, second: Slow, *, cancel: bool = False) -> object:
    async def both(one: Cache, other: Cache) -> object:
        asking = asyncio.create_task(CachedModel(first, one, "here").ask(REQUEST))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(CachedModel(second, other, "here").ask(REQUEST))
        await asyncio.sleep(0.1)
        assert (first.asked, second.asked) == (1, 0)
        second.go.set()
        first.go.set()
        if cancel:
            asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return await asyncio.wait_for(waiting, 120)

    with Cache.open(path) as one, Cache.open(path) as other:
        return asyncio.run(both(one, other))


def test_a_process_waits_for_the_answer_that_another_is_getting(path: Path) -> None:
    second = Slow()
    reply = asked_by_two(path, Slow(), second)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cached, second.asked) == ("yes", True, 0)


@pytest.mark.parametrize("cancel", [False, True])
def test_a_process_asks_for_itself_when_the_other_fails_or_gives_up(path: Path, cancel: bool) -> None:  # noqa: FBT001 - a case
    second = Slow()
    reply = asked_by_two(path, Slow(None if cancel else RequestError("timeout")), second, cancel=cancel)
    assert isinstance(reply, Reply)
    assert (reply.cached, second.asked) == (False, 1)


def test_many_rows_that_wait_for_another_process_poll_no_more_often_than_a_few(path: Path) -> None:
    rows, seconds, looks = 500, 5.0, 0

    async def wait(one: Cache, other: Cache) -> None:
        requests = [Request((Message("user", f"hello {n}"),), "m") for n in range(rows)]
        asking, waiting = CachedModel(Slow(), one, "here"), CachedModel(Slow(), other, "here")
        held = [asyncio.ensure_future(asking.ask(each)) for each in requests]
        await asyncio.sleep(0)
        held += [asyncio.ensure_future(waiting.ask(each)) for each in requests]
        await asyncio.sleep(seconds)
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)

    with Cache.open(path) as one, Cache.open(path) as other:
        look = other.get

        def counted(key: str) -> Reply | None:
            nonlocal looks
            looks += 1
            return look(key)

        other.get = counted  # type: ignore[method-assign]  # to count
        run(wait(one, other))
    assert rows <= looks <= rows + 1.2 * seconds / POLL_SHARE


def test_answers_of_another_process_are_found_by_one_that_was_alone(path: Path) -> None:
    key, later = "0" * 31 + "1", "0" * 31 + "2"
    with Cache.open(path) as one:
        assert one.get(key) is None
        with Cache.open(path) as other:
            other.put(key, REPLY, asked="m", endpoint="here")
        assert one.get(key) is not None
        assert one.get(later) is None
    with Cache.open(path) as one:
        assert one.get(key) is not None
        assert one.get(later) is None
        one.put(later, REPLY, asked="m", endpoint="here")
        one.flush()
        assert one.get(later) is not None
