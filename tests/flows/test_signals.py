"""A build that SIGTERM ends says so and keeps what is done, at whatever moment the signal comes."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pairwright.datasets.errors import PairwrightError
from pairwright.flows import build as building
from pairwright.flows.config.build import parse_config
from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.progress import BuildProgress
from pairwright.flows.signals import BuildTerminated, SigtermHandler
from tests.flows.conftest import Run


def test_a_build_as_a_flow_ends_in_order_at_every_moment(tmp_path: Path, through_prefect: Run) -> None:
    """Prefect's own handler ends the process without a word, or is lost in the loop; not so here."""
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    done = through_prefect("tests.flows.sigterm_builds", tmp_path)
    assert done.returncode == 0, done.stderr
    said = "stopped by a signal. Start the same build again to resume it."
    moments = (
        "a stage begins",
        "a stage has ended",
        "the loop has it",
        "the flow starts",
        "the flow starts and the loop has it",
    )
    assert done.stdout.splitlines() == [f"{moment} - {said}" for moment in moments]
    assert (tmp_path / "a-stage-has-ended" / "receipts" / "pairs" / "00000.json").exists()


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def server(at_start: Callable[[], None], at_end: Callable[[], None]) -> Iterator[Callable[[], Awaitable[None]]]:
    async def ready() -> None:
        await asyncio.sleep(0)

    at_start()
    yield ready
    at_end()


@pytest.fixture
def without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a build with Prefect does, but for Prefect."""
    monkeypatch.setattr(building, "refuse_broken_prefect", lambda: None)
    monkeypatch.setattr(building, "_as_flow", lambda run: run)
    monkeypatch.setattr(building, "FlowReports", lambda **_: FlowReports())
    monkeypatch.setattr(building, "_signal_exception", lambda *, prefect: (BuildTerminated,))  # noqa: ARG005 - as it is called


@pytest.mark.usefixtures("without_prefect")
def test_a_signal_while_the_server_starts_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop runs yet that could hear it."""
    monkeypatch.setattr(building, "build_server", lambda *_: server(terminate, lambda: None))
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    config = parse_config({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}, where="test")
    with pytest.raises(PairwrightError, match="stopped by a signal"):
        building.build(config, tmp_path / "build", BuildProgress())
    assert not (tmp_path / "build").exists()


@pytest.mark.usefixtures("without_prefect")
def test_a_signal_behind_the_last_stage_leaves_a_finished_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is done but for the end of the server, which shall not be left running."""
    monkeypatch.setattr(building, "build_server", lambda *_: server(lambda: None, terminate))
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    config = parse_config({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}, where="test")
    assert building.build(config, tmp_path / "build", BuildProgress())["stages"]["pairs"]["kept"] == 1
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_caller_is_kept() -> None:
    """A caller of ours may have a way of its own."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with SigtermHandler():
            terminate()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
