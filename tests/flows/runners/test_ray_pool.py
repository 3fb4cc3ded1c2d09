"""A build on a Ray cluster of two nodes (processes on loopback): the bytes of one process, also when a node dies."""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pairwright.datasets.errors import UsageError
from pairwright.flows.build import build
from pairwright.flows.runners.ray_pool import cores_alone
from tests.flows.conftest import checked, settings
from tests.servers.ray_cluster import TwoNodes, two_nodes

SAME = ("pairs", "tokens", "annotations", "candidates", "rejected", "index", "retrieval", "shards")


@pytest.fixture
def cluster() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="ray is not installed (extra `ray`)")
    # Not pytest's folder: Ray keeps sockets below it, whose path may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray") as folder, two_nodes(Path(folder)) as running:
        yield running


def contents(out: Path) -> dict[str, bytes]:
    files = (path for folder in SAME for path in sorted((out / folder).rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def run(config: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pairwright", "build", str(config), "--out", str(out), "--no-prefect", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(building: "subprocess.Popen[str]") -> None:
    said, _ = building.communicate(timeout=300)
    assert building.returncode == 0, said


def kill_when_busy(cluster: TwoNodes, receipts: Path, done: int, tick: threading.Event) -> None:
    """Kill the second node when both have begun a stage of many jobs and are far from its end."""
    while not tick.wait(0.02):
        if receipts.is_dir() and len(list(receipts.glob("*.json"))) >= done:
            cluster.kill_second()
            return


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refine", "killed"),
    [({"cells": 10}, ("negatives", 2)), ({"method": "general", "target": 0.7}, ("refine", 10))],
    ids=["reference", "general"],
)
def test_two_nodes_and_one_that_dies_in_the_middle_give_the_bytes_of_one_process(
    cluster: TwoNodes, corpus: Path, tmp_path: Path, refine: dict[str, object], killed: tuple[str, int]
) -> None:
    stage, done = killed
    config = tmp_path / "build.yaml"
    whole = settings(corpus, part_size=16, workers=0, index={"shards": 3}, refine=refine)
    config.write_text(yaml.safe_dump(whole))
    on_ray = ("--runner", "ray", "--address", cluster.address)
    ended(run(config, tmp_path / "one", "--workers", "1"))
    ended(run(config, tmp_path / "two", *on_ray))
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    stop = threading.Event()
    receipts = tmp_path / "three" / "receipts" / stage
    killer = threading.Thread(target=kill_when_busy, args=(cluster, receipts, done, stop))
    killer.start()
    try:
        ended(run(config, tmp_path / "three", *on_ray))
    finally:
        alive = killer.is_alive()
        stop.set()
        killer.join()
    assert not alive, "the node was to be killed while the build ran"
    assert contents(tmp_path / "three") == contents(tmp_path / "one")


@pytest.mark.parametrize(
    ("nodes", "cores"),
    [([8], 8), ([8, 8], 8), ([0, 16, 4], 4), ([0], 1), ([], 1)],
)
def test_a_job_that_runs_alone_has_the_cores_of_the_smallest_node(nodes: list[int], cores: int) -> None:
    """It could not run there with more when the others are lost."""
    assert cores_alone(nodes) == cores


def test_an_address_where_no_cluster_is_is_refused_at_once_with_the_way_to_start_one(
    corpus: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="ray is not installed (extra `ray`)")
    config = checked(settings(corpus, workers=0, runner="ray", address="127.0.0.1:9"))
    with pytest.raises(UsageError, match=r"no Ray cluster at 127\.0\.0\.1:9 .*ray start --head"):
        build(config, tmp_path / "build", prefect=False)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"runner": "ray", "workers": 2}, "--num-cpus"),
        ({"address": "127.0.0.1:6379"}, "--runner ray"),
        ({"runner": "ray", "workers": 0, "address": "ray://10.0.0.1:10001"}, "HOST:PORT"),
    ],
)
def test_settings_of_the_other_runner_are_refused(
    changes: dict[str, object], told: str, corpus: Path, tmp_path: Path
) -> None:
    if changes.get("workers") == 0:
        pytest.importorskip("ray", reason="ray is not installed (extra `ray`)")
    with pytest.raises(UsageError, match=told):
        build(checked(settings(corpus, **changes)), tmp_path / "build", prefect=False)
