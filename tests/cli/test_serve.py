"""Schedules and single stages from the command line."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run


def test_init_writes_a_schedule_next_to_the_config_and_overwrites_neither(
    run: Run, captions: Path, tmp_path: Path
) -> None:
    arguments = ("init", "--template", "negatives", "--input", captions, "--out", "night/build.yaml", "--prefect")
    (tmp_path / "night").mkdir()
    assert json.loads(run(*arguments, "--json").stdout)["files"] == ["night/build.yaml", "night/prefect.yaml"]
    schedule = yaml.safe_load((tmp_path / "night" / "prefect.yaml").read_text())
    assert schedule["deployments"][0]["parameters"] == {"config": "build.yaml", "out": "build/captions"}
    (tmp_path / "night" / "build.yaml").unlink()
    refused = run(*arguments, ok=False)
    assert refused.returncode == 2
    assert "night/prefect.yaml: exists" in refused.stderr
    assert not (tmp_path / "night" / "build.yaml").exists()


def test_a_build_can_end_after_one_stage_and_go_on(run: Run, captions: Path) -> None:
    run("init", "--template", "negatives", "--input", captions, "--out", "build.yaml")
    refused = run("build", "build.yaml", "--no-prefect", "--only", "tag", ok=False)
    assert refused.returncode == 2
    assert "stage pairs is not done" in refused.stderr
    printed = json.loads(run("build", "build.yaml", "--no-prefect", "--workers", 1, "--only", "pairs", "--json").stdout)
    assert list(printed["stages"]) == ["pairs"]
    assert printed["stages"]["pairs"]["kept"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--interval", "often"], "such as 30m"),
        (["--interval", "1h", "--on-failure", ""], "--on-failure '': empty command"),
        (["--interval", "0m"], "such as 30m"),
        ([], "either --cron or --interval"),
    ],
)
def test_an_invalid_schedule_is_one_line(run: Run, captions: Path, options: list[str], message: str) -> None:
    run("init", "--template", "negatives", "--input", captions, "--out", "build.yaml")
    refused = run("serve", "build.yaml", *options, ok=False)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
