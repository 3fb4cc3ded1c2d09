"""Jobs as array tasks of a simulated Slurm: killed ones run again, and a build has the bytes of one machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from operator import add, neg, truediv
from pathlib import Path

import pytest
import yaml

from pairwright.datasets.errors import MissingResourceError, PairwrightError, UsageError
from pairwright.flows.build import build
from pairwright.flows.config.sections import SlurmSection
from pairwright.flows.runners.slurm_pool import RETRIES, SlurmPool, task_script
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages import refine as refine_stage
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.plausible_model.model import PlausibleModel
from tests.flows.conftest import checked, settings
from tests.flows.runners.test_ray_pool import contents
from tests.servers.slurm import Moment, Slurm, simulated_slurm


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    folder = tmp_path / "slurm"
    folder.mkdir()
    with simulated_slurm(folder) as cluster:
        monkeypatch.setenv("PATH", str(cluster.bin), prepend=os.pathsep)
        yield cluster


def pool_of(root: Path, **section: object) -> tuple[SlurmPool, list[str]]:
    root.mkdir(exist_ok=True)
    notes: list[str] = []
    return SlurmPool(root, SlurmSection(**{"poll_seconds": 0.1, **section}), "test", notes.append), notes


def test_jobs_run_in_tasks_and_killed_tasks_are_submitted_again(slurm: Slurm, tmp_path: Path) -> None:
    slurm.kill_next("start", "work")
    pool, notes = pool_of(tmp_path / "build", array=2)
    with pool:
        futures = [pool.submit(neg, number) for number in range(6)]
        assert [future.result(120) for future in futures] == [-number for number in range(6)]
    assert not slurm.unkilled()
    assert any("submitting it again" in note for note in notes)
    assert (slurm.arrays[0] / "tasks").read_text().split() == ["0", "1"]


def test_an_error_of_a_job_is_raised_and_not_tried_again(slurm: Slurm, tmp_path: Path) -> None:
    pool, _ = pool_of(tmp_path / "build")
    with pool, pytest.raises(ZeroDivisionError):
        pool.submit(truediv, 1, 0).result(120)
    assert len(slurm.arrays) == 1


def test_a_task_that_always_dies_ends_the_build_with_the_path_of_its_log(slurm: Slurm, tmp_path: Path) -> None:
    moments: list[Moment] = ["start"] * (RETRIES + 1)
    slurm.kill_next(*moments)
    pool, _ = pool_of(tmp_path / "build")
    with pool, pytest.raises(PairwrightError, match=f"ended {RETRIES + 1} times without a result.*log-0.txt"):
        pool.submit(add, 1, 1).result(120)
    assert len(slurm.arrays) == RETRIES + 1
    assert list((tmp_path / "build" / ".slurm").glob("*/log-0.txt"))


def test_a_pool_that_ends_early_cancels_its_arrays(slurm: Slurm, tmp_path: Path) -> None:
    pool, _ = pool_of(tmp_path / "build")
    waiting = pool.submit(time.sleep, 600)
    while not slurm.running():
        time.sleep(0.02)
    pool.shutdown(cancel_futures=True)
    assert not slurm.running()
    with pytest.raises(PairwrightError, match="the build has ended"):
        waiting.result(1)


def test_arrays_of_a_killed_build_are_cancelled_by_the_next_one_of_any_runner(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"caption": "a dog"}) + "\n")
    config = checked({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1})
    build(config, tmp_path / "build", prefect=False, selection=StageSelection(only="pairs"))
    code = "import sys, time; from pathlib import Path; from pairwright.flows.config.sections import SlurmSection\n"
    code += "from pairwright.flows.runners.slurm_pool import SlurmPool\n"
    code += "SlurmPool(Path(sys.argv[1]), SlurmSection(), 'x', print).submit(time.sleep, 600).result()"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "build")]) as killed:
        while not (slurm.running() and any((tmp_path / "build" / ".slurm").glob("*/id"))):
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    assert slurm.running()
    build(config, tmp_path / "build", prefect=False)
    assert not slurm.running()
    assert not list((tmp_path / "build").glob(".s*"))


def test_a_folder_whose_name_has_spaces_and_signs_of_slurm_holds_the_logs(slurm: Slurm, tmp_path: Path) -> None:
    root = tmp_path / 'pairs of "birds" #2, 100%a'
    pool, _ = pool_of(root)
    with pool, pytest.raises(ZeroDivisionError):
        pool.submit(truediv, 1, 0).result(120)
    assert list(root.glob(".slurm/*/log-0.txt"))


def test_options_that_slurm_refuses_end_the_build_with_its_message(slurm: Slurm, tmp_path: Path) -> None:
    pool, _ = pool_of(tmp_path / "build", partition="no-such-partition")
    with pool, pytest.raises(UsageError, match="invalid partition specified"):
        pool.submit(neg, 1).result(60)


def test_a_controller_that_is_away_for_a_moment_is_asked_again(slurm: Slurm, tmp_path: Path) -> None:
    slurm.be_away(2)
    pool, notes = pool_of(tmp_path / "build")
    with pool:
        assert pool.submit(neg, 1).result(120) == -1
    assert [note for note in notes if "Socket timed out" in note] == notes
    assert len(notes) == 2


def test_an_array_that_was_accepted_though_sbatch_timed_out_is_not_submitted_again(
    slurm: Slurm, tmp_path: Path
) -> None:
    slurm.lose_answers(1)
    pool, notes = pool_of(tmp_path / "build")
    with pool:
        assert pool.submit(neg, 1).result(120) == -1
        assert pool.submit(neg, 2).result(120) == -2
    assert len(slurm.arrays) == 2
    assert ["Socket timed out" in note for note in notes] == [True]


def test_a_controller_that_answers_no_question_gets_no_second_array(slurm: Slurm, tmp_path: Path) -> None:
    """It may have accepted the first."""
    slurm.lose_answers(1)
    (slurm.bin / "squeue").write_text("#!/bin/sh\nexit 1\n")
    pool, _ = pool_of(tmp_path / "build", poll_seconds=0.02)
    with pool, pytest.raises(UsageError, match=r"Socket timed out.*Start the build again when Slurm answers"):
        pool.submit(neg, 1).result(120)
    assert len(slurm.arrays) == 1


def test_a_squeue_that_fails_is_reported_once_and_results_still_come(slurm: Slurm, tmp_path: Path) -> None:
    (slurm.bin / "squeue").write_text("#!/bin/sh\nexit 1\n")
    pool, notes = pool_of(tmp_path / "build", poll_seconds=0.02)
    with pool:
        assert pool.submit(neg, 1).result(120) == -1
    assert len([note for note in notes if "squeue fails" in note]) == 1


def test_a_controller_that_stays_away_ends_the_build_without_blame_on_the_config(slurm: Slurm, tmp_path: Path) -> None:
    slurm.be_away(RETRIES + 1)
    pool, _ = pool_of(tmp_path / "build")
    with pool, pytest.raises(UsageError, match=r"Socket timed out.*Start the build again when Slurm answers"):
        pool.submit(neg, 1).result(120)


def test_a_machine_without_slurm_is_refused(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    config = checked(settings(corpus, workers=0, runner="slurm"))
    with pytest.raises(MissingResourceError, match="`sbatch` was not found"):
        build(config, tmp_path / "build", prefect=False)
    assert not (tmp_path / "build").exists()


def test_the_settings_of_a_task_are_lines_of_its_script() -> None:
    section = SlurmSection(
        partition="cpu",
        time="01:00:00",
        cpus=4,
        memory="8G",
        at_once=9,
        options=("--qos=long",),
        setup=("module load p",),
    )
    lines = task_script(section, "birds", Path("/shared/birds/.slurm/1"), 20).splitlines()
    for line in (
        "#SBATCH --array=0-19%9",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=8G",
        "#SBATCH --partition=cpu",
        "#SBATCH --qos=long",
        "#SBATCH --output=/shared/birds/.slurm/1/log-%a.txt",
    ):
        assert line in lines
    assert lines.index("module load p") == len(lines) - 2
    assert not any("account" in line for line in lines)


@pytest.mark.slow
def test_a_build_with_killed_tasks_has_the_bytes_of_one_machine(slurm: Slurm, corpus: Path, tmp_path: Path) -> None:
    whole = settings(corpus, part_size=32, index={"shards": 2})
    build(checked(whole), tmp_path / "one", prefect=False)
    slurm.kill_next("start", "work", "start", "work")
    section = {"poll_seconds": 0.2, "cpus": 2, "array": 3}
    build(checked({**whole, "workers": 0, "runner": "slurm", "slurm": section}), tmp_path / "two", prefect=False)
    assert not slurm.unkilled()
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def broken(*_: object) -> None:
    raise RuntimeError


@pytest.mark.slow
def test_refinement_against_all_attacks_with_killed_tasks_has_the_bytes_of_one_machine(
    slurm: Slurm, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits in the queue a few times only, however many rounds it takes."""
    whole = {**settings(corpus, refine={"method": "general", "target": 0.6}), "retrieve": None}
    build(checked(whole), tmp_path / "one", prefect=False)
    with monkeypatch.context() as ending:
        ending.setattr(refine_stage, "plan_refinement", broken)
        with pytest.raises(RuntimeError):
            build(checked(whole), tmp_path / "two", prefect=False)
    slurm.kill_next("start", "work", "start", "work", "work")
    section = {"poll_seconds": 0.2, "cpus": 2, "array": 3}
    on_slurm = {**whole, "workers": 0, "runner": "slurm", "slurm": section}
    build(checked(on_slurm), tmp_path / "two", prefect=False, selection=StageSelection(only="refine"))
    assert not slurm.unkilled()
    assert len(slurm.arrays) <= 11  # up to five of them for killed tasks
    build(checked(whole), tmp_path / "two", prefect=False)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


@pytest.mark.slow
def test_a_stage_that_asks_a_model_runs_in_tasks_and_killed_ones_ask_nothing_twice(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions = [
        f"A {colour} {what} sits on a bed." for colour in ("red", "blue", "grey") for what in ("dog", "cat", "cow")
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    given = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "part_size": 2, "host": "127.0.0.1"}
    given |= {"positives": {"method": "llm"}, "llm": {"model": "small", "requests_per_minute": 600}}
    on_slurm = {"runner": "slurm", "slurm": {"poll_seconds": 0.2, "array": 2}}
    with serve_in_thread(ServerApp(ServerScript(latency_ms=50), answer=PlausibleModel())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        build(checked({**given, "positives": None, "llm": None}), tmp_path / "two", prefect=False)
        slurm.kill_next("start", "work", "work")
        manifest = build(checked({**given, **on_slurm}), tmp_path / "two", prefect=False)
        stats = server.stats()
        assert stats["bodies"]["answered_again"] == 0
        assert manifest["stages"]["positives"]["facts"]["llm"]["in_all"]["answers"] == stats["bodies"]["answered"]
        build(checked({**given, "workers": 1}), tmp_path / "one", prefect=False)
        assert server.stats()["bodies"]["answered_again"] == stats["bodies"]["answered"]  # its cache is another one
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


@pytest.mark.slow
def test_ctrl_c_cancels_the_arrays_of_a_build(slurm: Slurm, corpus: Path, tmp_path: Path) -> None:
    config = tmp_path / "build.yaml"
    config.write_text(yaml.safe_dump(settings(corpus, workers=0, runner="slurm")))
    command = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(tmp_path / "out"), "--no-prefect"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as building:
        while not slurm.running():
            assert building.poll() is None
            time.sleep(0.02)
        building.send_signal(signal.SIGTERM)
        _, said = building.communicate(timeout=120)
    assert not slurm.running()
    assert "Start the same build again to resume it" in said
    assert "Traceback" not in said
