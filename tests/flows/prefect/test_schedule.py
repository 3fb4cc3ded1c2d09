"""What `serve` promises: builds by a schedule, one at a time, and an end in order.

The slow ones start Prefect's server and wait for real runs; nothing waits longer than `PATIENCE`, and no process stays.
"""

import importlib
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets.errors import ConfigError, StorageError, UsageError
from pairwright.flows.commands.config_templates import render_deployment
from pairwright.flows.prefect.schedule import ScheduleRequest, Timetable, serve
from pairwright.flows.prefect.server import HOST, own_server
from pairwright.flows.state.locks import build_lock, schedule_lock

PATIENCE = 300.0  # seconds


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build of nine pairs, and a home of its own for Prefect: a server knows the runs of all before it there."""
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(9)))
    settings = {"name": "night", "input": {"path": "in.jsonl"}, "shards": {"images": False}, "workers": 1}
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "build.yaml"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "either --cron or --interval"),
        ({"cron": "0 2 * * *", "interval": 60.0}, "either --cron or --interval"),
        ({"cron": "0 2 * * *", "timezone": "Middle/Earth"}, "Middle/Earth"),
    ],
)
def test_a_timetable_that_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Timetable(**wrong)


@pytest.mark.parametrize("cron", ["every night", "61 * * * *"])
def test_a_wrong_cron_is_refused_before_any_server_starts(config: Path, tmp_path: Path, cron: str) -> None:
    with pytest.raises(UsageError, match=r"not five fields in range: minute \(0-59\)"):
        serve(ScheduleRequest(config, tmp_path / "out"), Timetable(cron=cron), port=0, note=_unheard)


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 2 31 4,6,9,11 *"])
def test_a_cron_whose_day_never_comes_is_refused(config: Path, tmp_path: Path, cron: str) -> None:
    with pytest.raises(UsageError, match="no such day exists"):
        serve(ScheduleRequest(config, tmp_path / "out"), Timetable(cron=cron), port=0, note=_unheard)


def test_a_wrong_config_is_refused_before_any_server_starts(config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text() + "sede: 1\n")
    with pytest.raises(ConfigError, match="Did you mean `seed`"):
        serve(ScheduleRequest(config, tmp_path / "out"), Timetable(interval=60.0), port=0, note=_unheard)


@pytest.mark.parametrize("when", [Timetable(interval=60.0), Timetable(cron="0 2 29 2 *", timezone="Europe/Berlin")])
def test_a_second_schedule_for_the_same_folder_is_refused(config: Path, tmp_path: Path, when: Timetable) -> None:
    with schedule_lock(tmp_path / "out"), pytest.raises(StorageError, match="served for this folder already"):
        serve(ScheduleRequest(config, tmp_path / "out"), when, port=0, note=_unheard)


def test_a_schedule_does_not_keep_a_build_by_hand_out(tmp_path: Path) -> None:
    with schedule_lock(tmp_path / "out"), build_lock(tmp_path / "out"):
        pass


def test_a_port_in_use_is_refused_with_a_way_out() -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match="PREFECT_API_URL"), own_server(port):
            pass


def test_the_web_page_of_a_server_on_any_port_calls_the_server_that_sent_it(with_server: dict[str, str]) -> None:
    url = with_server["PREFECT_API_URL"]
    with urllib.request.urlopen(f"{url.removesuffix('/api')}/ui-settings", timeout=120) as reply:  # noqa: S310 - loopback
        assert json.loads(reply.read())["api_url"] == url


def _unheard(line: str) -> None:
    assert line


@contextmanager
def serving(config: Path, port: int, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Run `pairwright serve`; kill it and what it started when the block is left or the patience is at its end."""
    command = [sys.executable, "-m", "pairwright", "serve", str(config), "--out", str(config.parent / "out")]
    with subprocess.Popen(
        [*command, "--port", str(port), *options], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        timer = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(process: "subprocess.Popen[str]", beginning: str) -> list[str]:
    """Return the lines up to the next that begins so."""
    assert process.stderr
    lines = []
    while line := process.stderr.readline():
        lines.append(line)
        if line.startswith(beginning):
            return lines
    raise AssertionError("ended before its time: " + "".join(lines))


def runs_of(port: int) -> list[dict[str, Any]]:
    request = urllib.request.Request(
        f"http://{HOST}:{port}/api/flow_runs/filter",
        data=b'{"sort": "EXPECTED_START_TIME_ASC", "limit": 200}',
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310 - loopback
        runs: list[dict[str, Any]] = json.loads(reply.read())
    return runs


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.mark.slow
def test_runs_whose_time_comes_too_early_are_left_out_and_the_end_is_clean(config: Path) -> None:
    """A run takes longer than the interval, so that runs would meet if nothing kept them apart."""
    port = free_port()
    with serving(config, port, "--interval", "1s") as process:
        first = wait_for(process, "Built night: 9 samples")
        made = (config.parent / "out" / "shards" / "00000.tar").stat()
        second = wait_for(process, "Built night: 9 samples")
        runs = runs_of(port)
        process.send_signal(signal.SIGTERM)
        wait_for(process, "Stopped.")
        assert process.wait(PATIENCE) == 0
    assert not any("earlier run" in line for line in first)
    assert sum("earlier run" in line for line in second) == len([line for line in second if line.startswith("  ")]) > 3
    assert (config.parent / "out" / "shards" / "00000.tar").stat().st_mtime_ns == made.st_mtime_ns
    took_place = [run for run in runs if run["state_type"] in {"RUNNING", "COMPLETED"}]
    spans = [(run["start_time"], run["end_time"]) for run in sorted(took_place, key=lambda run: run["start_time"])]
    assert len(spans) >= 2
    assert all(datetime.fromisoformat(end) <= datetime.fromisoformat(start) for (_, end), (start, _) in pairwise(spans))
    left_out = [run for run in runs if run["state_type"] == "CANCELLED"]
    assert left_out
    assert all("limit reached" in run["state"]["message"] for run in left_out)
    assert not answers(port)


@pytest.mark.slow
def test_with_late_wait_runs_whose_time_comes_too_early_run_one_after_the_other(config: Path) -> None:
    port = free_port()
    with serving(config, port, "--interval", "1s", "--on-overlap", "wait") as process:
        for _ in range(2):
            wait_for(process, "Built night: 9 samples")
        runs = runs_of(port)
        process.send_signal(signal.SIGTERM)
        wait_for(process, "Stopped.")
        assert process.wait(PATIENCE) == 0
    assert [run["state"]["message"] for run in runs if run["state_type"] == "CANCELLED"] == []
    assert any(run["state_name"] == "AwaitingConcurrencySlot" for run in runs)
    took_place = [run for run in runs if run["state_type"] in {"RUNNING", "COMPLETED"}]
    spans = [(run["start_time"], run["end_time"]) for run in sorted(took_place, key=lambda run: run["start_time"])]
    assert len(spans) >= 2
    assert all(datetime.fromisoformat(end) <= datetime.fromisoformat(start) for (_, end), (start, _) in pairwise(spans))
    assert not answers(port)


@pytest.mark.slow
def test_a_schedule_that_was_killed_in_a_run_takes_its_processes_along_and_goes_on_when_served_again(
    config: Path,
) -> None:
    port = free_port()
    with serving(config, port, "--interval", "1s") as process:
        wait_for(process, "Building night")
        process.kill()
        process.wait(PATIENCE)
        assert process.stderr
        process.stderr.read()  # to its end: the run's process, which holds it open, is gone as well
    with serving(config, port, "--interval", "2s") as process:
        wait_for(process, "Built night: 9 samples")
        states = {run["state_type"] for run in runs_of(port)}
        process.send_signal(signal.SIGINT)
        wait_for(process, "Stopped.")
        assert process.wait(PATIENCE) == 0
    assert "CRASHED" in states
    assert not answers(port)


@pytest.mark.slow
def test_a_first_run_at_once_fails_and_is_reported_and_so_is_one_whose_process_is_killed(config: Path) -> None:
    notified = config.parent / "notified"
    script = config.parent / "notify.sh"
    script.write_text(f'#!/bin/sh\necho "$PAIRWRIGHT_RUN_STATE $PAIRWRIGHT_RUN_ERROR" >> {notified}\nexit 3\n')
    script.chmod(0o755)
    (config.parent / "in.jsonl").write_text("no JSON\n")
    options = ("--interval", "1d", "--now", "--on-failure", str(script))
    with serving(config, free_port(), *options) as process:
        wait_for(process, "pairwright: --on-failure: notify.sh ended with exit code 3")
        process.send_signal(signal.SIGTERM)
        wait_for(process, "Stopped.")
        assert process.wait(PATIENCE) == 0
    assert notified.read_text().startswith("Failed Flow run encountered an exception: InputError")
    notified.unlink()
    (config.parent / "in.jsonl").unlink()
    os.mkfifo(config.parent / "in.jsonl")  # whoever reads it waits
    with serving(config, free_port(), *options) as process:
        wait_for(process, "Building night")
        os.kill(flow_run_process(process.pid), signal.SIGKILL)
        wait_for(process, "pairwright: --on-failure: notify.sh ended with exit code 3")
        process.send_signal(signal.SIGTERM)
        wait_for(process, "Stopped.")
        assert process.wait(PATIENCE) == 0
    assert notified.read_text().startswith("Crashed ")
    assert len(notified.read_text().splitlines()) == 1


def flow_run_process(served_by: int) -> int:
    """Return the child of a `pairwright serve` that runs a flow, and not the server."""
    children = Path(f"/proc/{served_by}/task").glob("*/children")
    for child in " ".join(path.read_text() for path in children).split():
        if b"prefect.engine" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no run")


@contextmanager
def prefect(folder: Path, url: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run Prefect's own command in a folder, against a server; killed when the block is left or the patience ends."""
    environment = {**os.environ, "PREFECT_API_URL": url, "PREFECT_CLI_PROMPT": "false", "DO_NOT_TRACK": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        timer = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.communicate()


def test_the_deployment_for_prefect_runs_the_flow_with_existing_files(config: Path) -> None:
    deployment = yaml.safe_load(render_deployment(config.read_text(), config))
    (told,) = deployment["deployments"]
    module, _, name = told["entrypoint"].rpartition(".")
    parameters = inspect.signature(getattr(importlib.import_module(module), name).fn).parameters
    assert set(told["parameters"]) <= set(parameters)
    (step,) = deployment["pull"]
    folder = Path(step["prefect.deployments.steps.set_working_directory"]["directory"])
    assert folder / told["parameters"]["config"] == config
    assert told["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


@pytest.mark.slow
def test_a_worker_of_a_real_server_builds_twice_by_the_cron_of_prefect_yaml(config: Path) -> None:
    text = render_deployment(config.read_text(), config).replace("0 2 * * *", "* * * * *")
    (config.parent / "prefect.yaml").write_text(text)
    with own_server(0) as url:
        for arguments in (("work-pool", "create", "--type", "process", "pairwright"), ("deploy", "--all")):
            with prefect(config.parent, url, *arguments) as process:
                said, _ = process.communicate()
                assert process.returncode == 0, said
        with prefect(config.parent, url, "worker", "start", "--pool", "pairwright") as worker:
            runs = [said_until(worker, "Built night: 9 samples") for _ in range(2)]
    assert not any("earlier run" in line for line in runs[0])
    assert sum("earlier run" in line for line in runs[1]) > 3
    assert (config.parent / "build" / "night" / "manifest.json").is_file()


def said_until(process: "subprocess.Popen[str]", part: str) -> list[str]:
    """Return the lines up to the next that holds ``part``."""
    assert process.stdout
    lines: list[str] = []
    while line := process.stdout.readline():
        lines.append(line)
        if part in line:
            return lines
    raise AssertionError("ended before its time: " + "".join(lines))
