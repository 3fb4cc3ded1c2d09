"""``pairwright evaluate`` of models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pairwright.cli.main import app
from pairwright.datasets.errors import PairwrightError


def refused(*call: str) -> str:
    done = CliRunner().invoke(app, ["evaluate", *call])
    assert isinstance(done.exception, PairwrightError), done.output
    return str(done.exception)


def test_options_that_cannot_be_are_refused_in_one_line() -> None:
    pytest.importorskip("torch", reason="some are refused when models are opened")
    for call, message in (
        (["negatives", "m", "m", "--data", "d"], "named twice"),
        (["answers", "m.jsonl", "m.jsonl", "--data", "d", "--model", "x"], "named twice"),
        (["answers", "m.jsonl", "--data", "d"], "requires --model"),
        (["conditions", "m", "--data", "d", "--instruction", "colour"], "COLUMN=TEXT"),
    ):
        assert message in refused(*call), call


def test_each_task_has_the_options_that_it_looks_at_and_no_others() -> None:
    for call in (
        ["negatives", "m", "--data", "d", "--by", "x"],
        ["retrieval", "m", "--data", "d", "--single-task"],
        ["answers", "m.jsonl", "--data", "d", "--split", "train"],
        ["multi-document", "m", "--data", "d", "--images", "x"],
        ["scores", "s.csv", "--model", "m"],
        ["negatives", "m"],
    ):
        assert CliRunner().invoke(app, ["evaluate", *call]).exit_code == 2, call


def test_without_torch_a_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from pairwright.cli.main import run; run()"
    command = [sys.executable, "-c", code, "evaluate", "negatives", "m", "--data", "d"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pairwright: evaluating a model requires torch: pip install 'pairwright[train]'\n"


def test_models_stand_side_by_side_in_a_table_a_page_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    from pairwright.training.models.clip import Clip
    from tests.training.training_cases import clip, shards

    def run(*call: str) -> Result:
        done = CliRunner().invoke(app, call, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done

    monkeypatch.chdir(tmp_path)
    shards(tmp_path / "shards", count=12)
    model = Clip.load(clip(tmp_path, count=12))
    model.network.logit_scale.data.fill_(1.0)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    model.save(tmp_path / "run" / "model")  # as `pairwright train` leaves it
    call = ["evaluate", "negatives", "run", "clip", "--data", "shards"]
    done = run(*call, "--html", "page.html")
    assert done.stdout.splitlines()[0].split() == ["of", "measure", "run", "95%", "clip", "95%", "n", "chance"]
    assert "Samples have no hard negative and are skipped: " in done.stderr
    assert "minus run" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert all(text in page for text in ("run", "clip", "brittleness (less is better)"))
    printed = json.loads(run(*call, "--json").stdout)
    assert [one["model"] for one in printed["models"]] == ["run", "clip"]
    figures = [one["figures"] for one in printed["models"]]
    assert all(figures[0] == other for other in figures)  # the scale changes no order
    assert {
        (one["model"], one["against"], one["value"], one["low"], one["high"]) for one in printed["differences"]
    } == {("clip", "run", 0, 0, 0)}
