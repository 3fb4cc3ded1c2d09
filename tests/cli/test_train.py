"""``pairwright train`` as a user calls it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SHARDS = ("--data", "shards", "--model", "clip", "--out", "run")


def test_without_torch_a_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from pairwright.cli.main import run; run()"
    command = [sys.executable, "-c", code, "train", "clip", *SHARDS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pairwright: training needs torch: pip install 'pairwright[train]'\n"


def test_wrong_settings_end_with_code_2_and_a_line_that_helps(run: Run) -> None:
    done = run("train", "clipp", *SHARDS, ok=False)
    assert (done.returncode, "Did you mean clip?" in done.stderr) == (2, True)
    done = run("train", "my.yaml", *SHARDS, ok=False)
    assert (done.returncode, "my.yaml: cannot be read (No such file or directory)" in done.stderr) == (2, True)
    done = run("train", "clip", *SHARDS, "--set", "precision=bf17", ok=False)
    assert (done.returncode, "Did you mean bf16? There are: " in done.stderr) == (2, True)
    done = run("train", "clip", *SHARDS, "--set", "optimizer.l=1", ok=False)
    assert (done.returncode, "Did you mean `lr`?" in done.stderr) == (2, True)


def test_a_run_tells_of_its_steps_and_ends_with_a_report(run_model: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("accelerate", reason="accelerate is of the extra `train`")
    from tests.training.training_trial import SMALL, clip, shards

    shards(tmp_path / "shards", count=12)
    changes = [part for change in (*SMALL, "batches.max_tokens=6") for part in ("--set", change)]
    done = run_model(
        "train", "negclip", "--data", "shards", "--model", clip(tmp_path, count=12), "--out", "run", *changes, "--json"
    )
    report = json.loads(done.stdout)
    assert (report["steps"], report["samples"], report["ended"]) == (2, 12, "done")
    assert "step 2  epoch 1.00  loss" in done.stderr
    assert f"{report['cut']} texts were longer than the model reads" in done.stderr
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()
    assert "<figure" in (tmp_path / "run" / "report.html").read_text()
