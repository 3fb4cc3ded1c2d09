"""What goes wrong around a build: each fault ends in one clear line, and mended, the build goes on to the same bytes.

A small disk, and one that is read only, are mounts in a namespace of their own, which needs no privilege. Each script
ends by copying the build out of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from tests.flows.conftest import settings

pytestmark = pytest.mark.slow  # a dozen builds, each a process of its own

BUILD = f'"{sys.executable}" -m pairwright build "$CONFIG" --out "$OUT" --no-prefect'
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
SAME = ("pairs", "annotations", "rejected", "shards")


def _can_mount() -> bool:
    try:
        return subprocess.run([*UNSHARE, "mount -t tmpfs t /mnt"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


mounts = pytest.mark.skipif(
    not _can_mount(), reason="no mounts in namespaces of one's own here (unshare --user --mount)"
)


def contents(out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for folder in SAME
        for path in sorted((out / folder).rglob("*"))
        if path.is_file()
    }


def shell(script: str, config: Path, out: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    given = {**os.environ, "CONFIG": str(config), "OUT": str(out), **env}
    return subprocess.run([*UNSHARE, script], env=given, capture_output=True, text=True, check=False)


def build(config: Path, out: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(out), "--no-prefect"]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def errors(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the one line that a failed build ends in."""
    told = [line for line in done.stderr.splitlines() if line.startswith("pairwright:")]
    assert "Traceback" not in done.stderr
    assert len(told) == 1, done.stderr
    return told[0]


def written(folder: Path, **config: Any) -> Path:
    path = folder / "build.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="session")
def plan(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config over the text corpus, with a stage that makes texts."""
    whole = settings(corpus)
    chosen = {name: whole[name] for name in ("name", "input", "positives", "part_size", "workers")}
    return written(tmp_path_factory.mktemp("faults"), **chosen)


@pytest.fixture(scope="session")
def undisturbed(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "build"
    assert build(plan, out).returncode == 0
    return out


@mounts
@pytest.mark.parametrize("kilobytes", [24, 200])
def test_a_full_disk_ends_a_build_in_one_line_and_room_lets_it_go_on(
    plan: Path, undisturbed: Path, tmp_path: Path, kilobytes: int
) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = f"""
        mount -t tmpfs -o size={kilobytes}k small "$DISK" || exit 99
        {BUILD}; echo "first $?"
        find "$OUT" -name manifest.json -o -name '.*.tmp-*'
        mount -o remount,size=64m "$DISK" || exit 99
        {BUILD} >/dev/null 2>&1; echo "second $?"
        cp -r "$OUT" "$KEPT"
    """
    done = shell(script, plan, disk / "build", DISK=str(disk), KEPT=str(kept))
    assert done.stdout.split()[:2] == ["first", "1"], done.stdout + done.stderr
    told = errors(done)
    assert "No space left on device" in told
    assert told.startswith(f"pairwright: {disk}")  # which file, and that it is no fault of the program's
    assert "manifest.json" not in done.stdout
    assert ".tmp-" not in done.stdout
    assert "second 0" in done.stdout
    assert contents(kept) == contents(undisturbed)


@mounts
def test_a_read_only_output_is_refused_in_one_line(plan: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = shell(f'mount -t tmpfs -o ro ro "$DISK" && {BUILD}', plan, disk / "build", DISK=str(disk))
    assert done.returncode == 1
    assert "is not writable (Read-only file system)" in errors(done)


@mounts
def test_a_build_whose_disk_becomes_read_only_goes_on_when_it_is_writable_again(
    plan: Path, undisturbed: Path, tmp_path: Path
) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = f"""
        mount -t tmpfs disk "$DISK" || exit 99
        {BUILD} --only pairs >/dev/null 2>&1 || exit 98
        mount -o remount,ro "$DISK"
        {BUILD}; echo "first $?"
        mount -o remount,rw "$DISK"
        {BUILD} >/dev/null 2>&1; echo "second $?"
        cp -r "$OUT" "$KEPT"
    """
    done = shell(script, plan, disk / "build", DISK=str(disk), KEPT=str(kept))
    assert done.stdout.split() == ["first", "1", "second", "0"], done.stdout + done.stderr
    assert "is not writable (Read-only file system)" in errors(done)
    assert contents(kept) == contents(undisturbed)


def test_a_broken_input_shard_is_named_and_after_its_repair_the_build_resumes(tmp_path: Path) -> None:
    write_corpus(tmp_path / "pictures", CorpusSpec(pairs=30, shard_size=10))
    config = written(tmp_path, name="t", input={"path": str(tmp_path / "pictures")}, part_size=10, workers=1)
    assert build(config, tmp_path / "whole").returncode == 0
    shard = tmp_path / "pictures" / "00001.tar"
    data = shard.read_bytes()
    shard.write_bytes(data[: len(data) // 2])
    failed = build(config, tmp_path / "out")
    assert failed.returncode == 1
    assert "00001.tar" in errors(failed)
    assert not (tmp_path / "out" / "manifest.json").exists()
    shard.write_bytes(data)
    assert build(config, tmp_path / "out").returncode == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


NOTHING_KEPT = 3  # the scripted server's answers pass no check


def test_an_unreachable_model_ends_a_build_in_one_line_and_found_again_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(6)))
    config = written(
        tmp_path,
        name="t",
        input={"path": str(tmp_path / "in.jsonl")},
        llm={"model": "small", "max_retries": 1, "timeout": 2, "patience": 1},
        positives={"method": "llm"},
        workers=1,
    )
    with serve_in_thread(ServerApp(ServerScript())) as server:
        nowhere = server.url
        assert build(config, tmp_path / "whole", OPENAI_BASE_URL=server.url).returncode == NOTHING_KEPT
    failed = build(config, tmp_path / "out", OPENAI_BASE_URL=nowhere)
    assert failed.returncode == 1
    port = nowhere.removesuffix("/v1").rpartition(":")[2]
    assert "no server answers" in errors(failed)
    assert port in errors(failed)
    assert not (tmp_path / "out" / "manifest.json").exists()
    with serve_in_thread(ServerApp(ServerScript()), port=int(port)) as server:
        assert build(config, tmp_path / "out", OPENAI_BASE_URL=server.url).returncode == NOTHING_KEPT
        asked = server.stats()["requests"]
    assert asked > 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_lock_is_refused_while_its_process_lives_and_gone_with_it(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    holder = "import sys; from pathlib import Path; from pairwright.flows.state.locks import build_lock\n"
    holder += "with build_lock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        refused = build(plan, out)
        process.kill()
    assert refused.returncode == 1
    assert "another build is running in this folder" in errors(refused)
    assert not (out / "pairs").exists()
    assert build(plan, out).returncode == 0
