"""``pairwright evaluate`` and the picture set that goes with it, as a user calls them."""

import json
from pathlib import Path

import numpy as np

from tests.cli.conftest import Run


def test_scores_give_a_table_and_the_same_as_json(run: Run, tmp_path: Path) -> None:
    rows = [
        {"type": "swap-object", "s_caption": 0.4, "s_negative": 0.3, "s_positive": 0.2},
        {"type": "add-object", "s_caption": 0.4, "s_negative": 0.3, "s_positive": 0.5},
        {"type": "add-object", "s_caption": None, "s_negative": 0.3},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = json.loads(run("evaluate", "scores", "s.jsonl", "--json").stdout)
    assert told["accuracy"] == {"add-object": 1.0, "swap-object": 1.0, "micro": 1.0, "macro": 1.0}
    assert (told["augmented_accuracy"], told["brittleness"], told["unscored"]) == (0.5, 0.5, 1)
    shown = run("evaluate", "scores", "s.jsonl")
    assert "augmented" in shown.stdout
    assert "1 rows lack" in shown.stderr


def test_nothing_to_judge_is_a_failure(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("s_caption,s_negative\n,0.3\n")
    assert run("evaluate", "scores", "s.csv", ok=False).returncode == 1


def test_pictures_are_drawn_and_their_embeddings_judged_by_label(run: Run, tmp_path: Path) -> None:
    drawn = json.loads(run("dev", "colorshape", "--out", "set", "--images", "2").stdout)
    labels = [json.loads(line) for line in Path(tmp_path, drawn["labels"]).read_text().splitlines()]
    assert len(labels) == drawn["samples"] == 32
    colours = sorted({row["colour"] for row in labels})
    np.save(tmp_path / "e.npy", np.eye(4)[[colours.index(row["colour"]) for row in labels]])
    call = ["evaluate", "embeddings", "e.npy", "--labels", "set/labels.jsonl", "--by", "colour", "--by", "colour+shape"]
    told = json.loads(run(*call, "--json").stdout)
    assert told["by"]["colour"]["map"] == 1.0
    assert told["by"]["colour+shape"]["map"] < 0.5
    assert "random order" in run(*call).stdout


def test_embeddings_need_labels_and_scores_take_none(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.eye(3))
    assert run("evaluate", "embeddings", "e.npy", ok=False).returncode == 2
    (tmp_path / "s.csv").write_text("s_caption,s_negative\n1,0.3\n")
    assert run("evaluate", "scores", "s.csv", "--by", "x", ok=False).returncode == 2
    (tmp_path / "l.csv").write_text("x\n1\n")
    assert "1 rows for 3" in run("evaluate", "embeddings", "e.npy", "--labels", "l.csv", "--by", "x", ok=False).stderr
