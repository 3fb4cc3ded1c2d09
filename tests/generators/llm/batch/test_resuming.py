"""Resuming batch mode: after a kill at any point, and with two concurrent processes, nothing is billed twice."""

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pairwright.generators.llm.batch.ledger import BatchLedger
from pairwright.generators.llm.batch.model import BatchLimits, BatchModel, open_batch_model
from pairwright.generators.llm.cache.leases import Leases
from pairwright.generators.llm.cache.store import Cache, CachedModel
from pairwright.generators.llm.client.messages import Reply
from pairwright.generators.llm.testing import http_messages
from pairwright.generators.llm.testing.serving import Server
from tests.generators.llm.batch import killed_runs
from tests.generators.llm.batch.batch_fixtures import Bench, ask_all, listed, request, requests, said, serving, texts
from tests.generators.llm.batch.killed_runs import POINTS, Killer

ROWS = 6


@dataclass
class Killed:
    """A server at which one run was killed at each point."""

    server: Server
    ledger: Path


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with killed_runs.killer() as kill:
        yield kill


@pytest.fixture(scope="module")
def killed(killer: Killer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """Kill one run at each point, in processes of their own."""
    with serving() as server:
        ledger = tmp_path_factory.mktemp("killed") / "ledger"
        assert killer(server.url, ledger, ROWS, [*POINTS]) == [signal.SIGKILL] * len(POINTS)
        yield Killed(server, ledger)


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_at_any_point_is_resumed_and_pays_for_nothing_twice(killed: Killed, point: str) -> None:
    path = Path(f"{killed.ledger}.{point}")
    bench = Bench(killed.server, path)
    with Cache.open(path.with_name(path.name + ".answers")) as cache:

        async def work(model: BatchModel) -> list[str]:
            asked = [request(f"{point} {n}") for n in range(ROWS)]
            return texts(await ask_all(CachedModel(model, cache, bench.settings.cache_endpoint), asked))

        assert bench.run(work, safe=cache.flush, kept=cache.get_many) == [f"You said: {point} {n}" for n in range(ROWS)]
    assert killed.server.stats()["bodies"]["answered_again"] == 0
    with BatchLedger.open(path) as ledger:
        endpoint = bench.settings.cache_endpoint
        assert not ledger.entries(endpoint, "claimed")
        assert not ledger.entries(endpoint, "sent")
    if point in {"after-create", "after-noted", "at-work", "merging", "before-end"}:
        assert len(bench.said) > 0  # that a batch is taken up
        assert not any("sent" in line and "before" not in line for line in bench.said)


def test_an_upload_without_a_batch_is_deleted(killer: Killer, tmp_path: Path) -> None:
    with serving() as server:
        assert killer(server.url, tmp_path / "l", 3, ["before-create"]) == [signal.SIGKILL]
        assert len(listed(server, "files")) == 1
        assert texts(Bench(server, tmp_path / "l.before-create").ask(requests(2))) == said(2)
        assert listed(server, "files") == []
        assert len(listed(server, "batches")) == 1


def test_a_batch_is_found_among_many_newer_ones(
    killer: Killer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pairwright.generators.llm.batch.service.PAGE_SIZE", 3)
    with serving() as server:
        assert killer(server.url, tmp_path / "l", 3, ["after-create"]) == [signal.SIGKILL]
        others = Bench(server, tmp_path / "others")
        others.limits = type(others.limits)(lines=1)
        others.ask([request(f"other {n}") for n in range(7)])
        bench = Bench(server, tmp_path / "l.after-create")
        assert texts(bench.ask([request(f"after-create {n}") for n in range(3)])) == [
            f"You said: after-create {n}" for n in range(3)
        ]
        assert len(listed(server, "batches")) == 8
        assert any("killed" in line for line in bench.said)


def test_a_server_that_does_not_list_batches_is_reported(killer: Killer, tmp_path: Path) -> None:
    def mute(asked: http_messages.HTTPRequest, handle: Any) -> http_messages.HTTPReply:
        if (asked.method, asked.path) == ("GET", "/v1/batches") and "limit=100" in asked.query:
            return http_messages.HTTPReply(405, b'{"error": {"message": "no"}}', tag=())
        found: http_messages.HTTPReply = handle(asked)
        return found

    with serving(mute) as server:
        assert killer(server.url, tmp_path / "l", 3, ["before-create"]) == [signal.SIGKILL]
        bench = Bench(server, tmp_path / "l.before-create")
        assert texts(bench.ask(requests(3))) == said(3)
    assert any("does not list batches" in line for line in bench.said)


@dataclass
class ConcurrentRun:
    """A run that shares ledger and cache with another one, and whose waits can be held until the other is ready."""

    bench: Bench
    rows: int
    attached: asyncio.Event = field(default_factory=asyncio.Event)  # it has sent a batch, or waits for one
    paused: asyncio.Event = field(default_factory=asyncio.Event)  # where it is held
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # and has let go of its answers in the ledger
    held: dict[float, asyncio.Event] = field(default_factory=dict)  # a wait of so many seconds, until when

    async def run(self, after: asyncio.Event | None = None) -> list[str]:
        """Ask through a second `Cache` on the shared file, as another process would."""
        if after:
            await after.wait()
        with Cache.open(self.bench.ledger.with_name("answers.sqlite")) as cache:
            safe: Any = {"safe": cache.flush, "kept": cache.get_many}
            opened = open_batch_model(self.bench.settings, self.bench.ledger, **safe, pause=self._pause, say=self._say)
            async with opened as model:
                cached = CachedModel(model, cache, self.bench.settings.cache_endpoint)
                found = texts(await ask_all(cached, requests(self.rows)))
        self.ended.set()
        return found

    async def _pause(self, seconds: float) -> None:
        await self.bench.pause(seconds)
        if seconds in self.held:
            self.paused.set()
            await self.held[seconds].wait()

    def _say(self, line: str) -> None:
        self.bench.said.append(line)
        self.attached.set()


IDLE, LOOK = BatchLimits().idle, BatchLimits().first_look


@pytest.fixture
def overflown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache know of no claims, as when a batch has more rows than its table has room for."""
    monkeypatch.setattr(Leases, "take", lambda *_: True)


@pytest.mark.usefixtures("overflown")
def test_two_runs_at_once_send_each_request_once_and_both_have_all_answers(tmp_path: Path) -> None:
    with serving(batch_polls=4) as server:
        bench = Bench(server, tmp_path / "ledger")
        one, other = ConcurrentRun(bench, 10), ConcurrentRun(bench, 14)
        one.held[LOOK], other.held[LOOK] = other.attached, one.attached  # no batch ends before both wait for it

        async def both() -> tuple[list[str], list[str]]:
            return await asyncio.gather(one.run(), other.run())

        assert [*asyncio.run(both())] == [said(10), said(14)]
        assert bench.lines == 14
        assert server.stats()["bodies"]["answered_again"] == 0


@pytest.mark.usefixtures("overflown")
def test_errors_found_by_one_run_reach_the_other_that_waits_for_the_batch(tmp_path: Path) -> None:
    rules = [{"contains": "row 1", "fault": "400"}]
    with serving(rules=rules, batch_polls=4) as server:
        bench = Bench(server, tmp_path / "ledger")
        one, other = ConcurrentRun(bench, 3), ConcurrentRun(bench, 3)
        one.held[LOOK], other.held[LOOK] = other.attached, one.attached

        async def both() -> tuple[list[str], list[str]]:
            return await asyncio.gather(one.run(), other.run())

        want = ["You said: row 0", "bad_request", "You said: row 2"]
        assert [*asyncio.run(both())] == [want, want]
        assert bench.lines == 3
        # What failed is asked again by the next run, as it would be without batches.
        server.change(rules=[])
        assert texts(bench.ask(requests(3)))[1] == "You said: row 1"


@pytest.mark.usefixtures("overflown")
def test_a_run_that_looks_when_the_other_has_ended_finds_the_answers_in_the_cache(tmp_path: Path) -> None:
    with serving(batch_polls=4) as server:
        bench = Bench(server, tmp_path / "ledger")
        one, late = ConcurrentRun(bench, 5), ConcurrentRun(bench, 5)
        one.held[LOOK], late.held[LOOK] = late.paused, one.ended

        async def both() -> tuple[list[str], list[str]]:
            return await asyncio.gather(one.run(), late.run(after=one.attached))

        assert [*asyncio.run(both())] == [said(5), said(5)]
        assert any("5 rows wait for it" in line for line in bench.said)
        assert bench.lines == 5


@pytest.mark.usefixtures("overflown")
def test_a_run_that_sends_when_the_other_has_ended_sends_only_what_the_cache_lacks(tmp_path: Path) -> None:
    with serving(batch_polls=4) as server:
        bench = Bench(server, tmp_path / "ledger")
        one, late = ConcurrentRun(bench, 5), ConcurrentRun(bench, 7)
        late.held[IDLE] = one.ended

        async def both() -> tuple[list[str], list[str]]:
            return await asyncio.gather(one.run(after=late.paused), late.run())

        assert [*asyncio.run(both())] == [said(5), said(7)]
        assert bench.lines == 7


def test_a_row_that_came_too_late_for_its_run_has_its_answer_waiting_in_the_next(tmp_path: Path) -> None:
    with serving() as server:
        bench = Bench(server, tmp_path / "ledger")

        async def impatient(model: BatchModel) -> str:
            others = [asyncio.ensure_future(model.ask(each)) for each in requests(5)]
            reply = await model.ask(request("mine"))
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            return reply.text

        # All six go in one batch; a waiter that is gone when it ends leaves its answer in the ledger.
        assert bench.run(impatient) == "You said: mine"
        assert texts(bench.ask(requests(5))) == said(5)
        assert server.stats()["endpoints"]["batch_line"] <= 11


def test_answers_stay_in_the_ledger_until_they_are_safe_and_no_longer(tmp_path: Path) -> None:
    path, seen = tmp_path / "ledger", []
    with serving() as server:
        bench = Bench(server, path)
        keys = [each.key(bench.settings.cache_endpoint) for each in requests(4)]

        def safe() -> None:
            with BatchLedger.open(path) as ledger:
                seen.append(len(ledger.find(keys)))

        found = bench.run(lambda model: ask_all(model, requests(4)), safe=safe)
    assert all(isinstance(each, Reply) for each in found)
    assert seen == [4]
    with BatchLedger.open(path) as ledger:
        assert ledger.find(keys) == {}
        assert ledger.entries(bench.settings.cache_endpoint, "ended") == []
