"""Layouts of other tools hold kept rows only, whichever verb writes them; JSONL holds all rows with status."""

import ast
import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from tests.cli.conftest import Run

ROWS = [
    ("a dog sits in the park", "a cat sits in the park"),
    ("two cats sleep on a mat", "two dogs sleep on a mat"),
    ("a red bus stands in the street", "a blue bus stands in the street"),
    ("a man holds a large umbrella", "a woman holds a large umbrella"),
]
GONE = "a horse stands beside nothing at all"  # the text of the row that is rejected in every input
TURNS = [{"from": "human", "value": "What is it?"}, {"from": "gpt", "value": "A dog."}]


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """Candidate rows, one of them rejected."""
    path = tmp_path / "candidates.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": str(n), "caption": caption, "negative": negative, "image": f"{n}.jpg", "form": "replace"}
        for n, (caption, negative) in enumerate(ROWS)
    ]
    rows += [{"caption": "a horse", "negative": GONE, "image": "9.jpg", "status": "rejected", "reason": "odd"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path.with_name("decisions.jsonl").write_text("")
    return path


@pytest.fixture
def conversation_file(tmp_path: Path) -> Path:
    """Conversations, one of them rejected."""
    path = tmp_path / "conversations.jsonl"
    gone = [TURNS[0], {"from": "gpt", "value": GONE}]
    rows: list[dict[str, Any]] = [
        {"id": "1", "conversations": TURNS},
        {"id": "2", "conversations": gone, "status": "rejected"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path.with_name("mix.yaml").write_text("sources:\n  - path: conversations.jsonl\n")
    return path


@pytest.mark.parametrize("ending", ["json", "tsv"])
@pytest.mark.parametrize(
    "command",
    [
        ["refine", "candidates.jsonl", "--target", "0.99"],
        ["validate", "candidates.jsonl", "--by", "context"],
        ["review", "candidates.jsonl", "--apply", "decisions.jsonl"],
        ["generate", "triples", "candidates.jsonl"],
    ],
    ids=["refine", "validate", "review", "triples"],
)
def test_a_verb_over_candidate_rows_leaves_rejected_rows_out_of_foreign_layouts(
    run: Run, candidates: Path, command: list[str], ending: str
) -> None:
    run(*command, "--out", "all.jsonl", ok=False)
    run(*command, "--out", f"kept.{ending}", ok=False)
    rows = [json.loads(line) for line in candidates.with_name("all.jsonl").read_text().splitlines()]
    kept = [row["negative"] for row in rows if row["status"] == "kept"]
    assert GONE in {row["negative"] for row in rows if row["status"] == "rejected"}
    assert _negatives(candidates.with_name(f"kept.{ending}")) == kept


@pytest.mark.parametrize("ending", ["json", "tsv"])
def test_generated_negatives_in_a_foreign_layout_are_the_kept_ones(run: Run, captions: Path, ending: str) -> None:
    run("generate", "negatives", captions, "--out", "all.jsonl")
    run("generate", "negatives", captions, "--out", f"kept.{ending}")
    rows = [json.loads(line) for line in captions.with_name("all.jsonl").read_text().splitlines()]
    kept = sorted(row["negative"] for row in rows if row["status"] == "kept")
    assert {row["status"] for row in rows} == {"kept", "rejected"}
    assert sorted(_negatives(captions.with_name(f"kept.{ending}"))) == kept


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (["export", "conversations.jsonl", "--to", "llava"], "kept.json"),
        (["export", "conversations.jsonl", "--to", "openai"], "kept.jsonl"),
        (["export", "conversations.jsonl", "--to", "triplets"], "kept.jsonl"),
        (["mix", "mix.yaml"], "kept.json"),
    ],
    ids=["llava", "openai", "triplets", "mix"],
)
def test_rejected_conversations_stay_out_of_other_tools_layouts(
    run: Run, conversation_file: Path, command: list[str], out: str
) -> None:
    run(*command, "--out", out)
    written = conversation_file.with_name(out).read_text()
    assert "A dog." in written
    assert GONE not in written


def test_rejected_rationales_stay_out_of_the_rows_of_a_student(run: Run, tmp_path: Path) -> None:
    questions = tmp_path / "nli.jsonl"
    questions.write_text(
        "".join(
            json.dumps({"id": str(n), "premise": "A dog runs.", "hypothesis": "A dog moves.", "label": "entailment"})
            + "\n"
            for n in range(2)
        )
    )
    message = ["A dog that runs moves. So the answer is entailment.", GONE]
    answers = [{"id": str(n), "output": text} for n, text in enumerate(message)]
    (tmp_path / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    run(
        "generate",
        "rationales",
        questions,
        "--task",
        "nli",
        "--import",
        "outputs.jsonl",
        "--out",
        "rows.jsonl",
        ok=False,
    )
    assert GONE not in (tmp_path / "rows.jsonl").read_text()
    assert GONE in (tmp_path / "rows.rejected.jsonl").read_text()


def _negatives(path: Path) -> list[str]:
    if path.suffix == ".json":
        return [row["negative_caption"] for row in json.loads(path.read_text()).values()]
    with path.open() as table:
        return [text for row in csv.DictReader(table, delimiter="\t") for text in ast.literal_eval(row["neg_caption"])]


def test_conversations_of_another_folder_are_exported_with_their_images(run: Run, tmp_path: Path) -> None:
    """`mix` names images below their common folder, not the folder of its output."""
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "1.jpg")
    turns = [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A box."}]
    (tmp_path / "talks.json").write_text(json.dumps([{"id": "1", "image": "1.jpg", "conversations": turns}]))
    command = ("export", "talks.json", "--to", "trl", "--out", "sft")
    assert "(--image-root; in a config, image_root)" in run(*command, ok=False).stderr
    assert not (tmp_path / "sft").exists()
    run(*command, "--image-root", "photos")
    (row,) = pl.read_parquet(tmp_path / "sft" / "data" / "*.parquet").iter_rows(named=True)
    assert row["images"][0]["bytes"] == (tmp_path / "photos" / "1.jpg").read_bytes()
    assert (
        "--image-root requires" in run("export", ".", "--to", "trl", "--out", "x", "--image-root", "y", ok=False).stderr
    )
