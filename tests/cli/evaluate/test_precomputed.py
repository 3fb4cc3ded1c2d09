"""``pairwright evaluate scores`` and ``embeddings``, and the image set for the latter."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run


def test_scores_give_a_table_and_the_same_as_json(run: Run, tmp_path: Path) -> None:
    rows = [
        {"type": "swap-object", "s_caption": 0.4, "s_negative": 0.3, "s_positive": 0.2},
        {"type": "add-object", "s_caption": 0.4, "s_negative": 0.3, "s_positive": 0.5},
        {"type": "add-object", "s_caption": None, "s_negative": 0.3},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    printed = json.loads(run("evaluate", "scores", "s.jsonl", "--json").stdout)
    assert printed["accuracy"] == {"add-object": 1.0, "swap-object": 1.0, "micro": 1.0, "macro": 1.0}
    assert (printed["augmented_accuracy"], printed["brittleness"], printed["unscored"]) == (0.5, 0.5, 1)
    assert json.loads(run("evaluate", "s.jsonl", "--json").stdout) == printed
    shown = run("evaluate", "scores", "s.jsonl")
    assert "augmented" in shown.stdout
    assert "1 row skipped" in shown.stderr


def test_nothing_to_judge_is_less_than_was_asked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("s_caption,s_negative\n,0.3\n")
    assert run("evaluate", "scores", "s.csv", ok=False).returncode == 3


def test_pictures_are_drawn_and_their_embeddings_judged_by_label(run: Run, tmp_path: Path) -> None:
    drawn = json.loads(run("dev", "colorshape", "--out", "set", "--images", "2").stdout)
    labels = [json.loads(line) for line in Path(tmp_path, drawn["labels"]).read_text().splitlines()]
    assert len(labels) == drawn["samples"] == 32
    colours = sorted({row["colour"] for row in labels})
    np.save(tmp_path / "e.npy", np.eye(4)[[colours.index(row["colour"]) for row in labels]])
    call = ["evaluate", "embeddings", "e.npy", "--labels", "set/labels.jsonl", "--by", "colour", "--by", "colour+shape"]
    printed = json.loads(run(*call, "--json").stdout)
    assert printed["by"]["colour"]["map"] == 1.0
    assert printed["by"]["colour+shape"]["map"] < 0.5
    assert "random order" in run(*call).stdout


def test_embeddings_need_labels_and_scores_take_none(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.eye(3))
    assert run("evaluate", "embeddings", "e.npy", ok=False).returncode == 2
    (tmp_path / "s.csv").write_text("s_caption,s_negative\n1,0.3\n")
    assert run("evaluate", "scores", "s.csv", "--by", "x", ok=False).returncode == 2
    (tmp_path / "l.csv").write_text("x\n1\n")
    assert "1 row for 3" in run("evaluate", "embeddings", "e.npy", "--labels", "l.csv", "--by", "x", ok=False).stderr


@pytest.mark.parametrize(
    ("name", "data", "printed"),
    [
        ("s.csv", b"s_caption,s_negative\n0.5,0.3\n0.5,0.3,7\n", "s.csv:3: 3 fields under 2 columns"),
        ("s.csv", "s_caption,s_negative,type\n0.5,0.3,l\u00e4uft\n".encode("latin-1"), "s.csv:2: not UTF-8"),
        ("s.jsonl", '{"s_caption":1,"s_negative":0,"type":"l\u00e4uft"}\n'.encode("latin-1"), "s.jsonl:1: not UTF-8"),
    ],
)
def test_an_error_in_a_file_of_scores_names_the_line(
    run: Run, tmp_path: Path, name: str, data: bytes, printed: str
) -> None:
    (tmp_path / name).write_bytes(data)
    done = run("evaluate", "scores", name, ok=False)
    assert done.returncode == 1
    assert printed in done.stderr


def test_a_table_may_begin_with_a_byte_order_mark(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(b"\xef\xbb\xbfs_caption,s_negative\r\n0.5,0.3\r\nnan,0.3\r\n")
    done = run("evaluate", "scores", "s.csv", "--json")
    assert (json.loads(done.stdout)["rows"], json.loads(done.stdout)["unscored"]) == (1, 1)
    assert "1 row skipped: s_caption or s_negative" in done.stderr


def test_embeddings_that_cannot_be_judged_say_which_file_or_column(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", np.eye(3))
    np.save(tmp_path / "e.npy", np.eye(3))
    (tmp_path / "l.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    for name, printed in (
        ("e.npz", "e.npz: several arrays in one file"),
        ("gone.npy", "gone.npy: no such file"),
        ("e.npy", "l.jsonl: no two rows have the same n"),
    ):
        done = run("evaluate", "embeddings", name, "--labels", "l.jsonl", "--by", "n", ok=False)
        assert done.returncode == 1
        assert printed in done.stderr
