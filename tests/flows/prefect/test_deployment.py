"""`build_flow` deployed to a work pool: a worker runs it, with settings in place of those of the config."""

import json
from pathlib import Path

import pytest
import yaml

from tests.flows.conftest import Run


@pytest.mark.slow
def test_a_worker_of_a_process_pool_runs_the_deployed_build(tmp_path: Path, through_prefect: Run) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}\n{"caption": "two cats"}\n')
    config = tmp_path / "build.yaml"
    config.write_text(yaml.safe_dump({"name": "birds", "input": {"path": "in.jsonl"}, "part_size": 1}))
    done = through_prefect("tests.flows.prefect.deployed_build", "pool-of-a-test", config, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["state"] == "Completed", found
    assert found["tasks"]["tag 00000-00001"] == ["pairwright", "tag"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["workers"] == 1
    assert manifest["config"]["shards"]["images"] is False
