"""``pairwright filter`` as a user calls it: what is left, what went and why, and what it is read by next."""

import json
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tests.cli.conftest import Run

ROWS = [
    {"id": 1, "caption": "a dog", "image": "a.png"},
    {"id": 2, "caption": "a brown dog runs on the wet beach", "image": "b.png"},
    {"id": 3, "caption": "A brown dog runs on the wet beach.", "image": "b.png"},
    {"id": 4, "caption": "a red bus on a street", "image": "c.png"},
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    for name, size in (("a", (64, 64)), ("b", (64, 64)), ("c", (64, 8))):
        Image.new("RGB", size).save(tmp_path / f"{name}.png")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_what_is_left_is_read_by_other_verbs_and_what_went_says_why(run: Run, rows: Path, tmp_path: Path) -> None:
    call = ["filter", rows, "--min-words", 3, "--near-duplicates", 0.9, "--max-aspect", 3, "--out", "kept.parquet"]
    told = json.loads(run(*call, "--json").stdout)
    assert (told["in"], told["kept"], told["rejected"]) == (4, 2, {"stretched_image": 1, "too_short": 1})
    assert sorted(pl.read_parquet(tmp_path / told["rejected_out"])["reason"]) == ["stretched_image", "too_short"]
    made = run("generate", "negatives", "kept.parquet", "--out", "n.jsonl", "--json")
    assert json.loads(made.stdout)["captions"] == 2


def test_near_duplicates_of_other_images_go(run: Run, tmp_path: Path) -> None:
    lines = [{"id": at, "caption": "a brown dog runs on the wet beach"} for at in range(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    told = json.loads(run("filter", "r.jsonl", "--near-duplicates", 0.8, "--out", "k.parquet", "--json").stdout)
    assert (told["kept"], told["rejected"]) == (1, {"near_duplicate": 2})


def test_concepts_are_told(run: Run, scenes: Path) -> None:
    shown = run("filter", scenes, "--concept-floor", 2, "--concept-cap", 3, "--out", "k.parquet").stdout
    assert "noun phrases" in shown
    assert "common_concepts" in shown


@pytest.mark.parametrize(
    "options",
    [[], ["--concept-floor", "3"], ["--clip-model", "x"], ["--min-words", "3", "--max-words", "2"]],
)
def test_calls_that_cannot_work_are_refused(run: Run, captions: Path, options: list[str]) -> None:
    assert run("filter", captions, "--out", "k.parquet", *options, ok=False).returncode == 2
    assert run("filter", captions, "--min-words", "1", "--out", "k.jsonl", ok=False).returncode == 2


def test_nothing_left_is_told_by_the_exit_code(run: Run, captions: Path) -> None:
    assert run("filter", captions, "--min-words", "99", "--out", "k.parquet", ok=False).returncode == 3
