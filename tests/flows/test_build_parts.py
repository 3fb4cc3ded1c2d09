"""Several processes that each build a share of the jobs (`--part I/N`), and one that completes the build (`--finish`)."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.flows.build import build
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.progress import BuildProgress
from pairwright.flows.stage_selection import Share, StageSelection
from pairwright.flows.state import locks, part_setup
from pairwright.flows.state.locks import build_lock, enter_when_free, part_lock, parts_lock, running_parts, setup_lock
from tests.flows.conftest import checked, settings
from tests.flows.runners.test_ray_pool import contents

FAILED, PARTS_LEFT = 1, 4


def run_part(config: BuildConfig, out: Path, part: str) -> dict[str, Any]:
    return build(config, out, prefect=False, selection=StageSelection(share=Share.parse(part)))


def test_shares_run_in_turns_and_a_last_run_completes_the_build(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(9)))
    given = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "negatives": {}, "part_size": 3, "workers": 1}
    config, out = checked(given), tmp_path / "parts"
    alone = run_part(config, out, "2/2")
    assert (alone["left"].stage, str(alone["left"].first)) == ("pairs", "1/2")
    turns: list[str] = []
    while (left := run_part(config, out, f"{1 + len(turns) % 2}/2")["left"]) is not None:
        turns.append(left.stage)
    assert "tag" in turns
    assert "negatives" in turns
    assert not (out / "manifest.json").exists()
    receipts = {path: path.stat().st_mtime_ns for path in out.glob("receipts/*/*.json")}
    manifest = build(config, out, prefect=False, wait=True)
    assert receipts == {path: path.stat().st_mtime_ns for path in out.glob("receipts/*/*.json")}
    build(config, tmp_path / "one", prefect=False)
    assert contents(out) == contents(tmp_path / "one")
    assert manifest["files"] == json.loads((tmp_path / "one" / "manifest.json").read_text())["files"]
    assert {path.name for path in out.glob(".*")} == {path.name for path in (tmp_path / "one").glob(".*")}
    assert not list(out.glob(".part-*"))
    (tmp_path / "in.jsonl").write_text(json.dumps({"caption": "a dog and 10 cats"}) + "\n")
    with pytest.raises(UsageError, match="pairs is out of date: its input, settings or code have changed"):
        build(config, out, prefect=False, selection=StageSelection(only="negatives"))


def test_each_job_belongs_to_one_share_and_a_single_job_to_the_first() -> None:
    shares = [Share(number, 3) for number in (1, 2, 3)]
    assert [[share.number for share in shares if share.has(position)] for position in range(5)] == [
        [1],
        [2],
        [3],
        [1],
        [2],
    ]


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2"])
def test_a_share_that_does_not_exist_is_refused(part: str) -> None:
    with pytest.raises(UsageError, match="I/N"):
        Share.parse(part)


def test_shares_share_a_folder_that_a_build_of_all_parts_needs_for_itself(tmp_path: Path) -> None:
    with parts_lock(tmp_path / "out"), parts_lock(tmp_path / "out"):
        with (
            part_lock(tmp_path / "out", "1/2"),
            part_lock(tmp_path / "out", "2/2"),
            pytest.raises(StorageError, match="part 1/2 is being built"),
            part_lock(tmp_path / "out", "1/2"),
        ):
            pass
        with pytest.raises(StorageError, match="another build is running"), build_lock(tmp_path / "out"):
            pass
    with (
        build_lock(tmp_path / "out"),
        pytest.raises(StorageError, match="a build of all parts"),
        parts_lock(tmp_path / "out"),
    ):
        pass


def test_a_finishing_run_waits_for_the_shares_that_run_says_so_and_can_be_stopped(tmp_path: Path) -> None:
    reached: list[str] = []

    async def finish(waits: asyncio.Event) -> None:
        with ExitStack() as lock:
            await enter_when_free(lock, partial(build_lock, tmp_path), waits.set)
            reached.append("finish")

    async def run() -> None:
        with parts_lock(tmp_path):
            waits = asyncio.Event(), asyncio.Event()
            stopped, waiting = (asyncio.create_task(finish(each)) for each in waits)
            for each in waits:
                await each.wait()
            stopped.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopped
            reached.append("part ended")
        await waiting

    asyncio.run(run())
    assert reached == ["part ended", "finish"]


class Notes(BuildProgress):
    """Keeps the messages of a build."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def note(self, message: str) -> None:
        """Keep a message."""
        self.all.append(message)


def test_parts_with_other_settings_or_versions_do_not_run_together_and_say_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(9)))
    given = {"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "part_size": 3, "workers": 1}
    out, second = tmp_path / "out", StageSelection(share=Share(2, 2))

    def run(**changes: Any) -> list[str]:
        notes = Notes()
        build(checked({**given, **changes}), out, notes, prefect=False, selection=second)
        return notes.all

    assert run() == run(host="localhost") == []
    with part_lock(out, "1/2"), pytest.raises(UsageError, match=r"part 1/2 runs with another .* of `part_size`"):
        run(part_size=4)
    assert run() == []
    assert "`part_size`" in run(part_size=4)[0]
    monkeypatch.setattr(part_setup, "package_versions", lambda: ["numpy 0.1"])
    with part_lock(out, "1/2"), pytest.raises(UsageError, match=r"of .*numpy"):
        run(part_size=4)
    assert "numpy" in run(part_size=4)[0]


def test_a_part_that_waits_to_prepare_is_not_taken_for_one_that_runs_with_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"caption": "a dog"}) + "\n")
    config, out = checked({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}), tmp_path / "out"
    monkeypatch.setattr(locks, "_POLL_S", 0.01)
    preparing, running = ExitStack(), list[str]()

    class OtherEnds(BuildProgress):
        def note(self, message: str) -> None:
            """Let the other process end once this one waits."""
            assert "Waiting for another process" in message
            running.extend(["waits", *running_parts(out, "2/2")])
            preparing.close()

    preparing.enter_context(setup_lock(out))
    build(config, out, OtherEnds(), prefect=False, selection=StageSelection(share=Share(1, 2)))
    assert running == ["waits"]


@pytest.mark.parametrize("runner", ["slurm", "ray"])
def test_a_part_has_no_cluster_of_its_own(tmp_path: Path, runner: str) -> None:
    config = checked({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "runner": runner})
    with pytest.raises(UsageError, match="--part is for processes that you start yourself"):
        run_part(config, tmp_path / "out", "1/2")
    assert not (tmp_path / "out").exists()


def test_a_finished_build_keeps_no_address_and_no_temporary_file_of_a_killed_part(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"caption": "a dog"}) + "\n")
    config, out = checked({"name": "t", "input": {"path": str(tmp_path / "in.jsonl")}, "workers": 1}), tmp_path / "out"
    run_part(config, out, "1/1")
    (out / "manifests").mkdir()
    for left in (".answers.json", ".build.yaml.tmp-7@node", "manifests/.0001.json.tmp-7@node"):
        (out / left).touch()
    build(config, out, prefect=False, wait=True)
    assert [path.name for path in (out / "manifests").iterdir()] == ["0001.json"]
    assert {path.name for path in out.glob(".*")} == {".lock", ".pairwright"}


def test_only_and_from_exclude_a_share() -> None:
    with pytest.raises(UsageError, match="--part and --only"):
        StageSelection("tag", share=Share(1, 2)).check(["tag"])


def command(config: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    given = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(out), "--workers", "1", *options]
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextmanager
def killed_after(path: Path, building: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill a process when a folder has files."""

    def watch() -> None:
        while building.poll() is None and not list(path.glob("*")):
            threading.Event().wait(0.02)
        building.kill()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


@pytest.mark.slow
def test_processes_at_the_same_time_and_a_killed_one_give_the_bytes_of_one(corpus: Path, tmp_path: Path) -> None:
    config, out = tmp_path / "build.yaml", tmp_path / "parts"
    config.write_text(yaml.safe_dump(settings(corpus, part_size=16, workers=0)))
    killed = command(config, out, "--part", "1/2")
    with killed_after(out / "receipts" / "tag", killed):
        killed.communicate()
    rounds = 0
    while True:
        running = [command(config, out, "--part", f"{number}/2", "--wait", "600") for number in (1, 2)]
        said = [each.communicate()[0] for each in running]
        codes = [each.returncode for each in running]
        assert FAILED not in codes, said
        rounds += 1
        if set(codes) == {0}:
            break
    assert rounds == 1
    assert "--finish" in said[0]
    finished = command(config, out, "--finish", "--no-prefect")
    text, _ = finished.communicate()
    assert finished.returncode == 0, text
    build(checked(settings(corpus, part_size=16)), tmp_path / "one", prefect=False)
    assert contents(out) == contents(tmp_path / "one")
