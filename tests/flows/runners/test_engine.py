"""What the engine promises about its processes: none is in the way when a build is ended, and none stays."""

import asyncio
import contextlib
import gc
import os
import signal
import sqlite3
import threading
import time
import urllib.request
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.worker_processes import WorkerProcesses
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.prefect.server import _server_process, own_server
from pairwright.flows.progress import BuildProgress
from pairwright.flows.runners.engine import open_engine
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.state.receipts import Job, JobResult


def test_a_worker_ends_at_ctrl_c_at_once_and_without_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerProcesses(1) as pool:
        pool.submit(exec, "import polars").result()  # which puts a handler of its own before ours
        os.kill(pool.submit(os.getpid).result(), signal.SIGINT)
        with pytest.raises(BrokenProcessPool):
            pool.submit(time.sleep, 600).result()
    assert "Traceback" not in capfd.readouterr().err


class Waiting:
    """A job that says in which process it is and waits; in another process this module is not there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("lambda root: ((root / str(__import__('os').getpid())).touch(), __import__('time').sleep(600))",)

    def __call__(self, _: Path) -> JobResult:
        """Be what a job runs."""
        raise NotImplementedError


def test_processes_that_are_killed_while_their_jobs_are_cancelled_print_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at Ctrl-C, which both the build and its processes hear."""
    died: list[object] = []
    unretrieved: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    config = parse_config({"name": "t", "input": {"path": "in.jsonl"}, "workers": 2}, where="test")
    jobs = [Job("tag", str(number), Waiting(), (), "") for number in range(8)]

    def process_ids() -> list[int]:
        return [int(path.name) for path in tmp_path.iterdir()]

    async def broken(pool: Executor) -> None:
        while True:
            await asyncio.wait_for(asyncio.wrap_future(pool.submit(os.getpid)), 30)

    async def cancelled() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unretrieved.append(context))
        async with open_engine(
            tmp_path,
            config,
            BuildProgress(),
            StageSelection(),
            FlowArtifacts("t", ["tag"], FlowReports()),
            FlowReports(),
            9,
        ) as running:
            stage = asyncio.create_task(running.run_stage("tag", jobs))
            while len(process_ids()) < 2:  # noqa: ASYNC110 - they are in other processes
                await asyncio.sleep(0.01)
            stage.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stage
            for process in process_ids():
                os.kill(process, signal.SIGKILL)
            with pytest.raises(BrokenProcessPool):
                await broken(running.pool)

    asyncio.run(cancelled())
    gc.collect()
    assert not died
    assert not unretrieved


SERVER = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getsid(0)).encode())

HTTPServer(("127.0.0.1", int(sys.argv[-1])), Health).serve_forever()
"""


def test_a_server_of_our_own_does_not_hear_the_ctrl_c_of_a_terminal_and_ends_with_its_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_server.py").write_text(SERVER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with _server_process(["a_server"], 0, {}) as server:
        asyncio.run(server.wait_until_ready())
        url = server.url
        with urllib.request.urlopen(f"{url}/health") as reply:  # noqa: S310 - loopback
            session = int(reply.read())
        assert session != os.getsid(0)
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{url}/health")  # noqa: S310 - loopback
    with pytest.raises(ZeroDivisionError), _server_process(["a_server"], 0, {}) as server:
        raise ZeroDivisionError
    with pytest.raises(URLError):
        urllib.request.urlopen(f"{server.url}/health")  # noqa: S310 - loopback


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import no_such_module",
            "(exit 1): ModuleNotFoundError: No module named 'no_such_module'. Run `prefect server start`",
        ),
        ("import sys; print('x' * 10**6, file=sys.stderr); sys.exit('no more room')", "(exit 1): no more room. Run"),
        (
            "raise OSError(\"Can't locate revision identified by 'f'\")",
            "identified by 'f'. Its database was changed by a newer Prefect",
        ),
        (
            "import sys; sys.exit(7)",
            "(exit 7). Run `prefect server start` to see its output, or build with --no-prefect.",
        ),
    ],
)
def test_a_server_that_does_not_start_is_reported_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    (tmp_path / "a_server.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(PairwrightError) as told, _server_process(["a_server"], 0, {}) as server:
        asyncio.run(server.wait_until_ready())
    assert said in str(told.value)
    assert len(str(told.value)) < 600


@pytest.mark.slow
def test_a_database_of_a_newer_prefect_is_reported_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_API_DATABASE_CONNECTION_URL", raising=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "prefect.db")) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        database.execute("INSERT INTO alembic_version VALUES ('ffffffffffff')")
        database.commit()
    with pytest.raises(PairwrightError) as told, own_server(0):
        pass
    for part in (
        "Can't locate revision identified by 'ffffffffffff'",
        f"PREFECT_HOME (now {tmp_path})",
        "--no-prefect",
    ):
        assert part in str(told.value)


class Ended(BuildProgress):
    """A SIGTERM in the middle of a build."""

    def end(self, stage: str, summary: str) -> None:  # noqa: ARG002 - as it is called
        """End it with the first stage."""
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_build_without_prefect_ends_in_order_at_sigterm(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    config = parse_config({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}, where="test")
    with pytest.raises(PairwrightError, match="stopped by a signal"):
        build(config, tmp_path / "build", Ended(), prefect=False)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert (tmp_path / "build" / "receipts" / "pairs" / "00000.json").exists()
    assert build(config, tmp_path / "build", prefect=False)["stages"]["pairs"]["kept"] == 1
