"""A full build over a finished version: until it is complete every reader finds the old one, whatever becomes of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets import version_switch
from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build as build_with_prefect
from tests.flows.conftest import Run, checked
from tests.flows.test_build import Heard, by_prefect
from tests.flows.test_incremental import StopsAt

build = partial(build_with_prefect, prefect=False)
ROWS = 40
STAGES = ("pairs", "tag", "words", "positives", "shards", "sizes")


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return a config over ``in.jsonl`` that makes four parts and four shards."""
    given = {"path": str(folder / "in.jsonl"), "source": "scenes"}
    made: dict[str, Any] = {"positives": {}, "part_size": 10, "shards": {"samples": 10}, "workers": 1}
    return {"name": "test", "input": given, **made, **changes}


def write_rows(folder: Path, more: str = "") -> None:
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"id": n, "caption": f"two dogs {more}beside {n} large cars"}) for n in range(ROWS)]
    (folder / "in.jsonl").write_text("\n".join(rows) + "\n")


def contents(out: Path) -> dict[str, bytes]:
    """Return the files of a version, without the pages that tell times."""
    names = [*read_manifest(out)["files"], "build.yaml"]
    return {name: (out / name).read_bytes() for name in names}


def everything(out: Path) -> set[str]:
    """Return the names of all files but those of earlier versions and of the lock."""
    files = (path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file() or path.is_symlink())
    return {name for name in files if not name.startswith((".lock", "manifests/"))}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an input and a finished build."""
    folder = tmp_path_factory.mktemp("old")
    write_rows(folder)
    build(checked(settings(folder)), folder / "build")
    return folder


@pytest.fixture
def folder(old: Path, tmp_path: Path) -> Path:
    shutil.copytree(old, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the changed input in a folder of its own."""
    folder = tmp_path_factory.mktemp("fresh")
    write_rows(folder, "and a cat ")
    build(checked(settings(folder)), folder / "build")
    return folder / "build"


def same(one: Path, other: Path) -> bool:
    """Say whether two builds hold the same files; the configs differ in the place of the input alone."""
    first, second = contents(one), contents(other)
    del first["build.yaml"], second["build.yaml"]
    return first == second


def test_a_broken_input_leaves_the_version_of_yesterday_to_its_readers(folder: Path, fresh: Path) -> None:
    out, before = folder / "build", contents(folder / "build")
    (folder / "in.jsonl").write_text('{"caption": "a dog"}\n{broken\n')
    with pytest.raises(InputError, match=r"in\.jsonl:2"):
        build(checked(settings(folder)), out)
    assert contents(out) == before
    assert verify(out) == []
    assert sum(1 for _ in open_sample_source(out).samples()) == ROWS
    write_rows(folder, "and a cat ")
    assert build(checked(settings(folder)), out)["build"]["number"] == 2
    assert same(out, fresh)


@pytest.mark.parametrize("stage", STAGES)
def test_broken_off_at_any_stage_the_old_version_is_whole_and_the_next_start_goes_on(
    folder: Path, fresh: Path, stage: str
) -> None:
    out, before = folder / "build", contents(folder / "build")
    write_rows(folder, "and a cat ")
    config = checked(settings(folder))
    with pytest.raises(KeyboardInterrupt):
        build(config, out, StopsAt(stage))
    assert contents(out) == before
    assert verify(out) == []
    heard = Heard()
    build(config, out, heard)
    for name in STAGES[: STAGES.index(stage)]:
        assert not heard.ran[name], name
    assert same(out, fresh)
    assert everything(out) == everything(fresh)
    assert verify(out) == []


def test_a_build_killed_outright_leaves_the_old_version_whole(folder: Path, fresh: Path) -> None:
    out, before = folder / "build", contents(folder / "build")
    write_rows(folder, "and a cat ")
    (folder / "build.yaml").write_text(yaml.safe_dump(settings(folder)))
    command = [sys.executable, "-m", "pairwright", "build", str(folder / "build.yaml"), "--out", str(out)]
    with subprocess.Popen([*command, "--no-prefect"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while not (line := process.stderr.readline()).startswith("  tag "):
            assert line, "the build ended before it was killed"
        os.kill(process.pid, signal.SIGKILL)
    assert contents(out) == before
    assert verify(out) == []
    heard = Heard()
    build(checked(settings(folder)), out, heard)
    assert heard.reused["tag"] == ROWS // 10
    assert same(out, fresh)


@pytest.fixture(scope="module")
def unswitched(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose new version is complete in ``.next/`` and has not begun to replace the old one."""
    folder = tmp_path_factory.mktemp("unswitched")
    shutil.copytree(old, folder, dirs_exist_ok=True)
    write_rows(folder, "and a cat ")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(version_switch, "finish_switch", lambda _root: None)
        build(checked(settings(folder, part_size=20)), folder / "build")
    return folder / "build"


@pytest.mark.parametrize("done", [0, 1, 7, -1])
def test_killed_during_the_switch_the_first_reader_completes_it(
    unswitched: Path, fresh: Path, tmp_path: Path, done: int
) -> None:
    out = tmp_path / "build"
    shutil.copytree(unswitched, out, symlinks=True)
    steps = json.loads((out / ".next" / "journal.json").read_text())
    if done:
        (out / "manifest.json").unlink()
    for source, name in steps[:done]:  # as far as it came
        if source:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / ".next" / source).replace(out / name)
        else:
            (out / name).unlink()
    assert verify(out) == []
    assert read_manifest(out)["build"]["number"] == 2
    assert not (out / ".next").exists()
    assert not (out / "pairs" / "00002.parquet").exists()  # of the old version alone
    assert [path.name for path in sorted((out / "shards").glob("*.tar"))] == [f"{n:05d}.tar" for n in range(4)]
    assert contents(out)["shards/00000.tar"] == contents(fresh)["shards/00000.tar"]


def test_a_reader_waits_for_a_switch_in_progress_and_says_so_when_it_cannot_complete_it(
    unswitched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "build"
    shutil.copytree(unswitched, out, symlinks=True)
    monkeypatch.setattr(version_switch, "_WAIT_SECONDS", 0.0)
    command = [sys.executable, "-c", f"import fcntl,sys; f=open({str(out / '.lock')!r},'a'); fcntl.flock(f,2); print(1,flush=True); sys.stdin.read()"]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.raises(StorageError, match="is being replaced by a new version"):
            read_manifest(out)
        holder.kill()
    assert read_manifest(out)["build"]["number"] == 2


def test_a_build_of_the_same_makes_nothing_and_leaves_nothing(folder: Path) -> None:
    out, heard = folder / "build", Heard()
    build(checked(settings(folder)), out)  # the copy has an input of its own
    names = everything(out)
    assert build(checked(settings(folder)), out, heard)["build"]["number"] == 1
    assert not any(heard.ran.values())
    assert everything(out) == names


def test_an_abandoned_version_takes_room_for_what_changed_only_and_goes_with_the_next_build(folder: Path) -> None:
    out = folder / "build"
    build(checked(settings(folder)), out)  # the copy has an input of its own
    names = everything(out)
    with pytest.raises(KeyboardInterrupt):
        build(checked(settings(folder, shards={"samples": 20})), out, StopsAt("sizes"))
    made = {path.name for path in (out / ".next").rglob("*") if path.is_file() and not path.is_symlink()}
    assert {name for name in made if not name.endswith(".json")} == {"build.yaml", "kind", "00000.tar", "00001.tar", "00000.tar.index", "00001.tar.index", "shards-00000.parquet", "shards-00001.parquet"}  # fmt: skip
    build(checked(settings(folder)), out)
    assert everything(out) == names
    assert verify(out) == []


def test_a_failed_run_through_prefect_leaves_the_old_version_as_well(folder: Path, through_prefect: Run) -> None:
    out, before = folder / "build", contents(folder / "build")
    (folder / "in.jsonl").write_text('{"caption": "a dog"}\n{broken\n')
    done = by_prefect(through_prefect, folder, settings(folder))
    assert done.returncode == 1, done.stderr
    assert contents(out) == before
    assert verify(out) == []
