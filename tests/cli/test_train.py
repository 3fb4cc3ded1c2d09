"""``pairwright train``."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pairwright.training.recipes.names import RECIPES_FOLDER
from tests.cli.conftest import Run

SHARDS = ("--data", "shards", "--model", "clip", "--out", "run")


def test_without_torch_a_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from pairwright.cli.main import run; run()"
    command = [sys.executable, "-c", code, "train", "clip", *SHARDS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pairwright: training requires torch: pip install 'pairwright[train]'\n"


def test_wrong_settings_end_with_code_2_and_a_line_that_helps(run: Run) -> None:
    done = run("train", "clipp", *SHARDS, ok=False)
    assert (done.returncode, "Did you mean clip?" in done.stderr) == (2, True)
    done = run("train", "my.yaml", *SHARDS, ok=False)
    assert (done.returncode, "my.yaml: cannot be read (No such file or directory)" in done.stderr) == (2, True)
    done = run("train", "clip", *SHARDS, "--set", "precision=bf17", ok=False)
    assert (done.returncode, "Did you mean bf16? There are: " in done.stderr) == (2, True)
    done = run("train", "clip", *SHARDS, "--set", "optimizer.l=1", ok=False)
    assert (done.returncode, "Did you mean `lr`?" in done.stderr) == (2, True)


def test_missing_data_are_reported_before_the_hub_is_asked_for_the_model(run: Run, tmp_path: Path) -> None:
    (tmp_path / "build" / "pairs").mkdir(parents=True)
    for recipe in ("negclip", "llava-instruct"):
        done = run("train", recipe, "--data", "build", "--model", "nobody/nothing", "--out", "run", ok=False)
        assert (done.returncode, "build: no .tar in it." in done.stderr) == (1, True)
        assert "hub" not in done.stderr


def test_a_run_logs_its_steps_and_ends_with_a_report(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("accelerate", reason="accelerate is of the extra `train`")
    from tests.training.training_cases import SMALL, clip, shards

    shards(tmp_path / "shards", count=12)
    changes = [part for change in (*SMALL, "batches.max_tokens=6") for part in ("--set", change)]
    done = run(
        "train", "negclip", "--data", "shards", "--model", clip(tmp_path, count=12), "--out", "run", *changes, "--json"
    )
    report = json.loads(done.stdout)
    assert (report["steps"], report["samples"]) == (2, 12)
    assert "step 2  epoch 1.00  loss" in done.stderr
    assert f"{report['cut']} texts longer than the model's limit" in done.stderr
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


def offline_example() -> list[list[str]]:
    """Return the commands of the page's example, without the name of the program."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "verbs" / "train.md").read_text()
    block = page.partition("## Try it offline")[2].partition("```sh\n")[2].partition("```")[0]
    commands = [shlex.split(line) for line in block.splitlines()]
    assert [command[:3] for command in commands] == [
        ["pairwright", "demo", "--out"],
        ["pairwright", "demo", "--out"],
        ["pairwright", "dev", "tiny-clip"],
        ["pairwright", "train", "negclip"],
        ["pairwright", "evaluate", "negatives"],
    ]
    return [command[1:] for command in commands]


def test_the_offline_example_runs_with_less_data_and_fewer_steps(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("accelerate", reason="accelerate is of the extra `train`")
    less = {"400": "40", "200": "30", "schedule.epochs=30": "schedule.epochs=1"}
    done = []
    for command in offline_example():
        words = [less.get(word, word) for word in command]
        done.append(run(*words, "--workers", 1) if command[0] == "demo" else run(*words))
    assert json.loads(done[2].stdout)["model"] == "clip"
    assert (tmp_path / "run" / "model" / "tokenizer.json").is_file()
    assert done[4].stdout.splitlines()[0].split()[:4] == ["of", "measure", "clip", "95%"]


@pytest.mark.slow
def test_the_offline_example_as_printed_makes_a_model_that_detects_negatives(run_apart: Run) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("accelerate", reason="accelerate is of the extra `train`")
    *first, last = offline_example()
    for command in first:
        run_apart(*command)
    begun, trained = json.loads(run_apart(*last, "--json").stdout)["models"]
    figures = [
        next(f["value"] for f in model["figures"] if (f["part"], f["measure"]) == ("all", "accuracy"))
        for model in (begun, trained)
    ]
    assert figures[1] > figures[0] + 0.05


def test_a_tiny_clip_is_the_same_for_the_same_shards_and_no_folder_with_files_is_taken(
    run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    from tests.training.training_cases import shards

    shards(tmp_path / "shards", count=8)
    for out in ("one", "two"):
        run("dev", "tiny-clip", "--data", "shards", "--out", out)
    assert all(
        (tmp_path / "two" / path.name).read_bytes() == path.read_bytes() for path in (tmp_path / "one").iterdir()
    )
    words = (tmp_path / "one" / "tokenizer.json").read_text()
    assert '"look"' in words  # a word of hard positives alone
    done = run("dev", "tiny-clip", "--data", "shards", "--out", "shards", ok=False)
    assert (done.returncode, "shards is not empty" in done.stderr) == (1, True)
    done = run("dev", "tiny-clip", "--data", "none", "--out", "new", ok=False)
    assert (done.returncode, "no such file" in done.stderr) == (1, True)
    assert not (tmp_path / "new").exists()


def test_help_names_every_built_in_recipe(run: Run) -> None:
    shown = "".join(run("train", "--help").stdout.split())  # lines break at hyphens, too
    assert f"{','.join(sorted(path.stem for path in RECIPES_FOLDER.glob('*.yaml')))};oraYAMLfile" in shown
