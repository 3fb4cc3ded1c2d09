"""``pairwright evaluate MODEL --task`` as a user calls it."""

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


def test_options_that_cannot_be_or_would_do_nothing_are_refused_in_one_line(tmp_path: Path) -> None:
    model = str(tmp_path)
    for call, said in (
        (["m", "--task", "x", "--data", "d"], "no such task. There are negatives"),
        (["m", "--task", "negatives"], "needs --data"),
        ([model], "no file of scores. A model is measured by --task"),
        (["a.csv", "b.csv"], "2 inputs without --task"),
        (["a.csv", "--data", "d"], "--data does nothing without --task"),
        (["a.csv", "--max-cost", "1"], "--max-cost does nothing without --task answers"),
        (["m", "m", "--task", "negatives", "--data", "d"], "named twice"),
        (["m", "--task", "negatives", "--data", "d", "--by", "x"], "--by does nothing with --task negatives"),
        (["m", "--task", "negatives", "--data", "d", "--single-task"], "--single-task does nothing"),
        (["m", "--task", "negatives", "--data", "d", "--columns", "a=b"], "--columns is for scores"),
        (["m", "--task", "answers", "--data", "d", "--wise-ft", "1"], "--wise-ft does nothing"),
        (["m.jsonl", "--task", "answers", "--data", "d"], "name a language model by --model"),
    ):
        assert said in refused(*call), call


def test_wrong_shares_and_instructions_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="what follows opens models")
    common = ["m", "--task", "conditions", "--data", "d"]
    assert "needs --base" in refused(*common, "--wise-ft", "0,1")
    assert "--base is for --wise-ft" in refused(*common, "--base", "b")
    assert "from 0 to 1" in refused(*common, "--base", "b", "--wise-ft", "0,2")
    assert "CONDITION=INSTRUCTION" in refused(*common, "--ask", "colour")


def test_without_torch_a_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from pairwright.cli.main import run; run()"
    command = [sys.executable, "-c", code, "evaluate", "m", "--task", "negatives", "--data", "d"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pairwright: measuring a model needs torch: pip install 'pairwright[train]'\n"


def test_models_stand_side_by_side_in_a_table_a_page_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is an extra")
    from pairwright.training.models.clip import Clip
    from tests.training.training_trial import clip, shards

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
    call = ["evaluate", "run", "clip", "--task", "negatives", "--data", "shards"]
    done = run(*call, "--html", "page.html")
    assert done.stdout.splitlines()[0].split() == ["of", "measure", "run", "95%", "clip", "95%", "n", "chance"]
    assert "samples have no hard negative" in done.stderr
    page = (tmp_path / "page.html").read_text()
    assert all(text in page for text in ("run", "clip", "brittleness (less is better)"))
    told = json.loads(run(*call, "--base", "clip", "--wise-ft", "0,1", "--json").stdout)
    assert [(one["model"], one["wise_ft"]) for one in told["models"]] == [
        ("run", 0), ("run", 1), ("clip", 0), ("clip", 1)
    ]  # fmt: skip
    figures = [one["figures"] for one in told["models"]]
    assert all(figures[0] == other for other in figures)  # the scale changes no order
