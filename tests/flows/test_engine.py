"""What the engine promises about its processes: none is in the way when a build is ended, and none stays."""

import importlib
import multiprocessing
import os
import signal
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.build import build
from pairwright.flows.config import parse_config
from pairwright.flows.processes import end_with_the_build
from pairwright.flows.progress import Silence


def test_a_worker_ends_at_ctrl_c_at_once_and_without_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=end_with_the_build) as pool:
        pool.submit(exec, "import polars").result()  # which puts a handler of its own before ours
        os.kill(pool.submit(os.getpid).result(), signal.SIGINT)
        with pytest.raises(BrokenProcessPool):
            pool.submit(time.sleep, 600).result()
    assert "Traceback" not in capfd.readouterr().err


def test_prefects_server_does_not_hear_the_ctrl_c_of_a_terminal() -> None:
    importlib.import_module("pairwright.flows.prefect_api")  # sees to it
    from prefect.server.api.server import SubprocessASGIServer

    popen = subprocess.Popen
    with SubprocessASGIServer()._run_uvicorn_command() as server:
        try:
            assert os.getsid(server.pid) == server.pid
        finally:
            server.kill()
    assert subprocess.Popen is popen


class Ended(Silence):
    """A SIGTERM in the middle of a build."""

    def end(self, stage: str, summary: str) -> None:  # noqa: ARG002 - as it is called
        """End it with the first stage."""
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_build_without_prefect_ends_in_order_at_sigterm(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    config = parse_config({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}, where="test")
    with pytest.raises(PairwrightError, match="ended by a signal"):
        build(config, tmp_path / "build", Ended(), prefect=False)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert (tmp_path / "build" / "receipts" / "pairs" / "all.json").exists()
    assert build(config, tmp_path / "build", prefect=False)["stages"]["pairs"]["kept"] == 1
