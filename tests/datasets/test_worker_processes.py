"""Worker processes: how they end."""

import atexit
import os
import struct
import sys
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from pairwright.datasets.worker_processes import WorkerProcesses

KEPT: list[object] = []


def test_workers_of_a_fork_server_have_the_environment_of_their_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is started once in a process, for its first pool."""
    for value in ("first", "second"):
        monkeypatch.setenv("PAIRWRIGHT_OF_A_TEST", value)
        with WorkerProcesses(1, "json") as pool:
            assert pool.submit(os.getenv, "PAIRWRIGHT_OF_A_TEST").result() == value


class Freed:
    """Leaves a mark when it is freed."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __del__(self) -> None:
        self.mark.touch()


def hold(folder: Path) -> None:
    KEPT.append(Freed(folder / "freed"))
    atexit.register((folder / "exit handler").touch)


def test_a_worker_runs_the_exit_handlers_of_its_jobs_and_does_not_free_what_it_holds(tmp_path: Path) -> None:
    with WorkerProcesses(1) as pool:
        pool.submit(hold, tmp_path).result()
    assert [path.name for path in tmp_path.iterdir()] == ["exit handler"]


def end_while_writing_a_result() -> None:
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back
        frame = frame.f_back
    os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000))  # of which nothing follows
    os._exit(1)


def test_a_worker_that_ends_while_it_writes_a_result_does_not_block_the_end_of_the_pool() -> None:
    with WorkerProcesses(1) as pool:
        future = pool.submit(end_while_writing_a_result)
        wait([process.sentinel for process in pool._processes.values()])
    assert isinstance(future.exception(), BrokenProcessPool)
