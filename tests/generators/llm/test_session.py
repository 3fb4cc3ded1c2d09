"""What a session promises: from plain code, over a real server, stopped or killed at any moment and taken up again."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.factory import open_model
from pairwright.generators.llm.client.messages import Model, Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.runner import LLMRow, MostlyFailingError
from pairwright.generators.llm.session import Session, Snapshot, StoppableModel
from pairwright.generators.llm.testing.api_errors import PROVIDER_FAULTS
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.faults import KINDS
from pairwright.generators.llm.testing.script import AnswerRule, ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from tests.generators.llm import session_process
from tests.generators.llm.session_process import AT_ONCE, question, settings

PLENTY = 120.0  # seconds: far more than anything here takes
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server() -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript())) as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def rows(count: int) -> Iterator[LLMRow[str]]:
    return (LLMRow(str(n), partial(question, n)) for n in range(count))


def paid_twice(server: Server) -> int:
    return int(server.stats()["bodies"]["answered_again"])


def test_results_come_in_order_and_are_asked_once(server: Server, cache: Path) -> None:
    with Session(settings(server.url), cache=cache) as session:
        found = [(each.row, each.result) for each in session.run(rows(500))]
    assert found == [(str(n), "kept") for n in range(500)]
    assert server.stats()["requests"] == 500


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_a_second_session_finds_all_answers_of_the_first(server: Server, cache: Path, transport: str) -> None:
    first = settings(server.url)
    for _ in range(2):
        with Session(first, cache=cache) as session:
            assert len(list(session.run(rows(40)))) == 40
        totals = session.totals()
        first = type(first).from_env({}, base_url=server.url, api_key="y" * 20, model="m", transport=transport)
    assert (totals.rows, totals.spent.requests, totals.spent.cached) == (40, 0, 40)
    assert server.stats()["requests"] == 40


def test_answers_come_while_the_caller_is_busy(server: Server, cache: Path) -> None:
    """The loop goes on: all rows end before the caller takes the first one."""
    with Session(settings(server.url), cache=cache) as session:
        ticks = count()
        found = [
            each.row for each in session.run(rows(300), busy=lambda: session.totals().rows < 300 and next(ticks) < 1000)
        ]
    assert found == [str(n) for n in range(300)]
    assert next(ticks) < 1000


def test_runs_of_one_session_follow_each_other_and_are_counted_together(server: Server, cache: Path) -> None:
    with Session(settings(server.url), cache=cache) as session:
        list(session.run(rows(30)))
        list(session.run(rows(50)))
        totals = session.totals()
    assert (totals.rows, totals.spent.requests, totals.spent.cached) == (80, 50, 30)
    assert totals.seconds > 0
    assert totals.rate > 0


def test_who_watches_is_told_how_far_it_is(server: Server, cache: Path) -> None:
    seen: list[Snapshot] = []
    with Session(settings(server.url), cache=cache, watch=seen.append, cost=lambda: 0.5) as session:
        list(session.run(rows(20), of=20))
    last = seen[-1]
    assert (last.rows, last.of, last.spent.requests, last.cost) == (20, 20, 20, 0.5)
    assert len(seen) <= 3


def test_a_session_that_is_stopped_before_its_run_asks_nothing(server: Server, cache: Path) -> None:
    stop = threading.Event()
    stop.set()
    with Session(settings(server.url), cache=cache, stop=stop) as session, pytest.raises(KeyboardInterrupt):
        list(session.run(rows(50)))
    assert server.stats()["requests"] == 0


def test_layers_stand_inside_and_outside_of_the_cache(server: Server, cache: Path) -> None:
    passed: Counter[str] = Counter()

    class Counting:
        def __init__(self, model: Model) -> None:
            self.model = model

        async def ask(self, request: Request) -> Reply:
            passed["inside"] += 1
            return await self.model.ask(request)

    def prepare(request: Request) -> Request:
        passed["outside"] += 1
        return replace(request, parameters={"temperature": 0.5})

    for _ in range(2):
        with Session(settings(server.url), cache=cache, inside=[Counting], prepare=prepare) as session:
            done = list(session.run(rows(10)))
    assert passed == {"inside": 10, "outside": 20}
    with Session(settings(server.url), cache=cache) as session:  # the keys are those of what was sent
        assert {each.requests.keys[0] for each in session.run(rows(10))}.isdisjoint(
            each.requests.keys[0] for each in done
        )


def test_a_caller_may_leave_in_the_middle(server: Server, cache: Path) -> None:
    with Session(settings(server.url), cache=cache) as session:
        for done in session.run(rows(100_000)):
            if done.row == "10":
                break
        assert [each.row for each in session.run(rows(3))] == ["0", "1", "2"]
    assert server.stats()["requests"] < 20_000


def test_an_interrupt_in_the_last_step_of_opening_closes_the_client(server: Server, cache: Path) -> None:
    events: list[str] = []

    @contextlib.asynccontextmanager
    async def connections() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)
            events.append("connections closed")

    @contextlib.asynccontextmanager
    async def opened(llm: LLMSettings, _: Cache | None) -> AsyncIterator[StoppableModel]:
        async with connections(), open_model(llm) as model:
            os.kill(os.getpid(), signal.SIGINT)
            yield model
            events.append("model closed")

    with pytest.raises(KeyboardInterrupt), Session(settings(server.url), cache=cache, opened=opened):
        pass
    assert events == ["model closed", "connections closed"]


def test_an_error_of_the_callers_passes_and_closes_all(server: Server, cache: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError) as caught, Session(settings(server.url), cache=cache) as session:  # noqa: PT012 - the loop is what raises
        for _ in session.run(rows(1000)):
            raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before
    del caught
    with Session(settings(server.url), cache=cache) as session:
        assert len(list(session.run(rows(5)))) == 5


def test_a_fatal_failure_comes_after_what_is_done(cache: Path) -> None:
    script = ServerScript(rules=(AnswerRule(contains="question 300", fault="401"),))
    found = []
    with serve_in_thread(ServerApp(script)) as server, Session(settings(server.url), cache=cache) as session:
        with pytest.raises(RequestError) as caught:  # noqa: PT012 - the loop is what raises
            for done in session.run(rows(100_000)):
                found.append(done.row)  # noqa: PERF401 - those before the error count
        assert caught.value.code == "bad_key"
        asked = server.stats()["requests"]
    assert found[:300] == [str(n) for n in range(300)]
    assert asked < 300 + 10 * AT_ONCE


def test_a_run_that_its_rows_end_lets_no_waiting_request_leave(cache: Path) -> None:
    class Client:
        def __init__(self) -> None:
            self.stopped: list[str] = []

        async def ask(self, request: Request) -> Reply:
            raise RequestError("bad_request", f"{request.model} knows no such parameter")

        def stop(self, failure: RequestError) -> None:
            self.stopped.append(failure.code)

    client = Client()
    opened = contextlib.nullcontext(client)
    with (
        Session(settings("http://localhost:1"), cache=cache, opened=lambda *_: opened) as session,
        pytest.raises(MostlyFailingError, match="m knows no such parameter"),
    ):
        list(session.run(rows(1000)))
    assert client.stopped == ["interrupted"]


def test_a_session_works_in_a_thread_that_is_not_the_main_one(server: Server, cache: Path) -> None:
    found: list[Any] = []

    def work() -> None:
        with Session(settings(server.url), cache=cache) as session:
            found.extend(session.run(rows(20)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PLENTY)
    assert len(found) == 20


def test_a_run_in_another_thread_can_be_stopped(server: Server, cache: Path) -> None:
    stop, found, ended = threading.Event(), [], []

    def work() -> None:
        with Session(settings(server.url), cache=cache, stop=stop) as session:
            try:
                for done in session.run(rows(100_000)):
                    found.append(done.row)
                    stop.set()
            except KeyboardInterrupt:
                ended.append(len(found))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PLENTY)
    assert ended == [len(found)]
    assert len(found) == answered(server) < 20_000


# Processes that are stopped and killed.


def begin(server: Server, cache: Path, out: Path, count: int, *busy: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.generators.llm.session_process",
        server.url,
        str(cache),
        str(out),
        str(count),
    ]
    return subprocess.Popen([*command, *busy], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PLENTY
    while not condition():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


def answered(server: Server) -> int:
    return int(server.stats()["bodies"]["answered"])


def finished(process: subprocess.Popen[bytes]) -> int:
    try:
        process.communicate(timeout=PLENTY)
    finally:
        process.kill()
    return process.returncode


def lines(out: Path) -> list[list[str]]:
    return [line.split() for line in out.read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_every_answer_and_a_second_one_asks_for_the_rest(
    cache: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    with serve_in_thread(ServerApp(ServerScript(latency_ms=50))) as server:
        process = begin(server, cache, out, 400)
        wait_until(lambda: answered(server) > 60)
        process.send_signal(number)
        assert finished(process) == 130
        stopped = server.stats()
        assert stopped["broken_off"] == 0
        assert stopped["requests"] == answered(server) < 400
        assert len(lines(out)) == answered(server)  # what was done was given to the caller
        server.change(latency_ms=0)
        session_process.main(server.url, str(cache), str(out), "400")
        assert [row for row, _ in lines(out)] == [str(n) for n in range(400)]
        assert server.stats()["requests"] == 400


def test_a_second_ctrl_c_ends_at_once(cache: Path, tmp_path: Path) -> None:
    with serve_in_thread(ServerApp(ServerScript(latency_ms=600_000))) as server:
        process = begin(server, cache, tmp_path / "out", 400)
        wait_until(lambda: server.stats()["in_flight"] == AT_ONCE)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"stopping" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert finished(process) == 130  # long before the answers


def test_after_faults_and_a_kill_every_row_ends_once_and_little_is_paid_twice(cache: Path, tmp_path: Path) -> None:
    kinds = [
        kind
        for kind, (group, _) in KINDS.items()
        if group != "batch" and kind not in {"401", "quota", *PROVIDER_FAULTS}
    ]
    script = ServerScript(
        latency_ms=10, faults=dict.fromkeys(kinds, 0.1 / len(kinds)), hang_s=8.0, drip_s=0.05, retry_after_s=0.05
    )
    out, count, timeout = tmp_path / "out", 800, ("", "1.0")
    with serve_in_thread(ServerApp(script)) as server:
        process = begin(server, cache, out, count, *timeout)
        wait_until(lambda: answered(server) > count / 2)
        process.send_signal(signal.SIGKILL)
        finished(process)
        at_kill = server.stats(each=True)
        each = at_kill["bodies"]["each"].values()
        young = sum(at_kill["seconds"] - last < 0.15 for _, count, last in each if count)
        session_process.main(server.url, str(cache), str(out), str(count), *timeout)
        assert [row for row, _ in lines(out)] == [str(n) for n in range(count)]
        ends = Counter(end for _, end in lines(out))
        assert ends["kept"] > 0.9 * count
        assert set(ends) <= {"kept", "bad_answer", "bad_request", "context_too_long", "content_filter"}
        assert paid_twice(server) <= AT_ONCE + young
    assert whole(cache)


def test_killed_while_its_caller_is_busy_a_run_loses_no_more_than_it_may_ask_at_once(
    cache: Path, tmp_path: Path
) -> None:
    """Answers that come meanwhile are not read, however old they grow; but nothing more is asked meanwhile either."""
    out, count = tmp_path / "out", 600
    with serve_in_thread(ServerApp(ServerScript(latency_ms=20))) as server:
        process = begin(server, cache, out, count, "200")
        wait_until(lambda: len(lines(out)) == 201 if out.exists() else False)
        wait_until(lambda: server.stats()["in_flight"] == 0)
        wait_until(lambda: kept(cache) >= answered(server) - AT_ONCE)
        process.kill()
        finished(process)
        assert 201 <= answered(server) < count
        session_process.main(server.url, str(cache), str(out), str(count))
        assert len(lines(out)) == count
        assert paid_twice(server) <= AT_ONCE


def test_two_processes_with_one_cache_do_not_pay_twice(cache: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    with serve_in_thread(ServerApp(ServerScript(latency_ms=10))) as server:
        processes = [begin(server, cache, out, 500) for out in outs]
        assert [finished(process) for process in processes] == [0, 0]
        assert paid_twice(server) <= AT_ONCE
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert len(lines(outs[0])) == 500
    assert whole(cache)
    assert not cache.with_name(cache.name + "-claims").exists()


def kept(cache: Path) -> int:
    with contextlib.closing(sqlite3.connect(cache)) as connection:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])


def whole(cache: Path) -> bool:
    connection = sqlite3.connect(cache)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


def test_signals_are_left_to_whoever_handles_them(server: Server, cache: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with Session(settings(server.url), cache=cache) as session:
            for done in session.run(rows(50)):
                if done.row == "3":
                    os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
