"""``refine --mirror-negatives``: a negative that another image's caption says becomes a positive of that image."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.filters.candidates.rows import candidate_frame, candidate_rows
from pairwright.flows.commands.mirror_negatives import add_mirrored_negatives

ROWS: list[dict[str, Any]] = [
    {"id": "a", "image": "1.jpg", "caption": "A red bus in a city.", "negative": "A blue bus in a city."},
    {"id": "b", "image": "2.jpg", "caption": "a man on a horse", "negative": "a man on an elephant"},
    {"id": "c", "image": "3.jpg", "caption": "a cat on a mat", "negative": "a cat and a dog on a mat", "form": "add"},
    {"id": "d", "image": "4.jpg", "caption": "a dog by a lake", "negative": "a cat by a lake"},
    {"id": "e", "image": "5.jpg", "caption": "a boy and a girl run", "negative": "a boy runs", "status": "rejected"},
    {"id": "f", "image": "7.jpg", "caption": "a large plate", "negative": "a small plate"},
]
CORPUS = [
    {"image_id": 8, "captions": ["a blue bus in a city", "some houses"]},
    {"image_id": 2, "captions": ["a man on an elephant"]},  # the row's own image: it says nothing of another
    {"image_id": 9, "captions": ["a cat and a dog on a mat"]},  # true of the caption too
    {"image_id": 10, "captions": ["a cat by a lake", "a dog sits by the lake"]},  # so the caption is true of it
    {"image_id": 11, "captions": ["A boy runs."]},
    {"image_id": 12, "captions": ["a small plate", "a large plate"]},
]


def rows_with(corpus: Path | None) -> tuple[list[dict[str, Any]], list[str]]:
    said: list[str] = []
    frame = candidate_frame((row["id"], row) for row in ROWS)
    found = add_mirrored_negatives(frame, str(corpus) if corpus else "", said.append)
    return list(candidate_rows(found)), said


def test_only_what_another_image_says_and_its_captions_do_not_refute_is_reused(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(each) + "\n" for each in CORPUS))
    rows, [said] = rows_with(corpus)
    assert [row["id"] for row in rows] == [*(row["id"] for row in ROWS), "a-reused"]
    new = rows[-1]
    assert (new["image"], new["caption"], new["negative"]) == ("8", "A blue bus in a city.", "A red bus in a city.")
    assert said.startswith("2 negatives")  # the lake's is refuted by the other caption
    assert "1 are reused" in said


def test_without_such_captions_the_rows_stay_and_a_line_says_so() -> None:
    rows, [said] = rows_with(None)
    assert [row["id"] for row in rows] == [row["id"] for row in ROWS]
    assert "none is reused" in said


def test_refine_tells_where_a_reused_row_comes_from(tmp_path: Path) -> None:
    given, corpus, out = (tmp_path / name for name in ("rows.jsonl", "corpus.jsonl", "out.jsonl"))
    given.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    corpus.write_text("".join(json.dumps(each) + "\n" for each in CORPUS) + "broken\n")
    done = CliRunner().invoke(
        app,
        ["refine", str(given), "--corpus", str(corpus), "--mirror-negatives", "--out", str(out)],
        catch_exceptions=False,
    )
    assert done.exit_code in {0, 3}, done.output
    assert done.stderr.count("corpus.jsonl: skipped 1 row (broken_json 1).") == 1
    rows = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert rows["a-reused"]["reused_from"] == "a"


def test_refine_heeds_decisions_of_a_review(tmp_path: Path) -> None:
    given, made, out = (tmp_path / name for name in ("rows.jsonl", "decisions.jsonl", "out.jsonl"))
    given.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    decision = {"at": "2030-01-01T10:00:00Z", "decision": "reject", "id": "d", "reviewer": "ann"}
    made.write_text(json.dumps({**decision, "candidate": "a cat by a lake"}) + "\n")
    done = CliRunner().invoke(
        app, ["refine", str(given), "--decisions", str(made), "--out", str(out)], catch_exceptions=False
    )
    assert done.exit_code in {0, 3}, done.output
    assert "1 row reviewed" in done.stderr
    rows = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert (rows["d"]["status"], rows["d"]["reason"]) == ("rejected", "reviewer_rejected")
    assert rows["d"]["reviewed_by"] == {"ann": "reject"}
