"""``pairwright generate orders``: ARO's perturbations of captions."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app

CAPTION = "a small dog sleeps on the red chair near an old table"


def made(folder: Path, *captions: str, seed: int = 0) -> list[dict[str, Any]]:
    rows = [{"image": f"{n}.jpg", "caption": caption} for n, caption in enumerate(captions)]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = folder / "order.jsonl"
    call = ["generate", "orders", str(folder / "captions.jsonl"), "--out", str(out), "--seed", str(seed), "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert (summary["captions"], summary["rows"]) == (len(captions), len(found))
    return found


def test_each_order_has_the_words_of_the_caption_and_moves_those_of_its_kind(tmp_path: Path) -> None:
    rows = {row["target"]: row for row in made(tmp_path, CAPTION)}
    words = CAPTION.split()
    named = [at for at, word in enumerate(words) if word in {"small", "dog", "red", "chair", "old", "table"}]
    for row in rows.values():
        assert sorted(row["negative"].split()) == sorted(words)
        assert row["status"] == "kept"
    exchanged, others = (rows[name]["negative"].split() for name in ("nouns-and-adjectives", "other-words"))
    assert all((exchanged[at] == word) for at, word in enumerate(words) if at not in named)
    assert all((others[at] == words[at]) for at in named)
    grams = [words[at : at + 3] for at in range(0, len(words), 3)]
    within = rows["within-trigrams"]["negative"].split()
    assert [sorted(within[at : at + 3]) for at in range(0, len(words), 3)] == [sorted(gram) for gram in grams]
    assert all(" ".join(gram) in rows["trigrams"]["negative"] for gram in grams)


def test_the_rows_of_a_caption_are_one_choice_and_the_seed_decides(tmp_path: Path) -> None:
    rows = made(tmp_path, CAPTION, "two cats")
    assert [len({row["question"]["choice"] for row in rows if row["image"].endswith(f"{n}.jpg")}) for n in (0, 1)] == [
        1,
        1,
    ]
    assert rows == made(tmp_path, CAPTION, "two cats")
    assert rows != made(tmp_path, CAPTION, "two cats", seed=1)


def test_a_caption_that_stays_as_it_is_is_rejected(tmp_path: Path) -> None:
    rows = made(tmp_path, CAPTION, "dogs")[4:]
    assert [row["reason"] for row in rows] == ["identical"] * 4


@pytest.mark.parametrize("ending", ["json", "tsv"])
def test_other_layouts_hold_the_kept_rows(tmp_path: Path, ending: str) -> None:
    (tmp_path / "captions.jsonl").write_text(json.dumps({"image": "1.jpg", "caption": CAPTION}))
    out = tmp_path / f"order.{ending}"
    call = ["generate", "orders", str(tmp_path / "captions.jsonl"), "--out", str(out)]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert CAPTION in out.read_text()
