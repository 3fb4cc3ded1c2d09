"""``pairwright generate rationales``."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROWS = [{"premise": "A dog sleeps.", "hypothesis": f"It runs {n}.", "label": 2} for n in range(4)]
GOOD = "A dog that sleeps does not run. So the answer is contradiction.\n\nPremise: A cat."


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "a.json").write_text(json.dumps([GOOD] * 2))
    (tmp_path / "b.json").write_text(json.dumps(["It may. So the answer is neutral.", "It may."]))
    return path


def test_outputs_behind_one_option_are_taken_in_their_order(run: Run, rows: Path, tmp_path: Path) -> None:
    command = ("generate", "rationales", rows, "--task", "nli", "--import", "a.json", "b.json", "--out", "out.jsonl")
    result = json.loads(run(*command, "--validation", 0, "--label-prefix", "L: ", "--json").stdout)
    assert (result["rows"], result["parsed"], result["consistent"]) == (4, 3, 3)
    assert result["label_accuracy"] == 0.6667
    assert result["rejected"] == {"no_answer": 1, "wrong_label": 1}
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (first["input"], first["output"]) == ("L: premise: A dog sleeps.\nhypothesis: It runs 0.", "contradiction")
    printed = run(*command).stdout
    assert "b.json     2       1  0.0%" in printed
    assert "rejected: no_answer 1, wrong_label 1" in printed


def test_skipped_rows_are_counted(run: Run, rows: Path, tmp_path: Path) -> None:
    rows.write_text(rows.read_text() + json.dumps({**ROWS[0], "premise": None}) + "\n")
    command = ("generate", "rationales", rows, "--task", "nli", "--import", "a.json", "b.json", "--out", "out.jsonl")
    assert "Skipped: 1 row (broken_row 1)" in run(*command, "--on-error", "skip").stdout


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["--task", "nli"], "--model or --import is required"),
        (["--task", "nlii", "--import", "a.json"], "Did you mean 'nli'"),
        (["--task", "nli", "--import", "a.json", "--model", "m"], "--model does nothing with --import"),
    ],
)
def test_invalid_options_are_one_line(run: Run, rows: Path, options: list[str], printed: str) -> None:
    done = run("generate", "rationales", rows, "--out", "out.jsonl", *options, ok=False)
    assert done.returncode == 2
    assert printed in done.stderr
