"""``pairwright index``: building of and messages about indexes."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from tests.cli.conftest import Run


def test_an_index_says_which_vectors_it_rejected(run: Run, tmp_path: Path) -> None:
    """The index was written, and the command then failed over its own summary."""
    vectors = np.eye(4, dtype=np.float16)
    vectors[1], vectors[2] = 0, np.nan
    (tmp_path / "emb" / "text_emb").mkdir(parents=True)
    np.save(tmp_path / "emb" / "text_emb" / "text_emb_0.npy", vectors)
    (tmp_path / "emb" / "metadata").mkdir()
    captions = [f"a dog and {n} cats" for n in range(4)]
    pl.DataFrame({"caption": captions}).write_parquet(tmp_path / "emb" / "metadata" / "metadata_0.parquet")
    done = run("index", "build", "emb", "--encoder", "precomputed", "--out", "index")
    assert "2 vectors (text)" in done.stdout
    assert "Without a vector: not_finite 1, zero_vector 1\n" in done.stdout
    assert "--queries queries.txt --query-vectors queries.npy" in done.stdout  # it has no encoder for queries
    assert "not_finite 1, zero_vector 1" in run("index", "info", "index").stdout


def test_skipped_rows_and_copies_are_on_lines_of_their_own(run: Run, tmp_path: Path) -> None:
    """Copies read like one more reason to skip a row: "skipped empty_caption 1, duplicates 1"."""
    box = {"label": "dog", "bbox": [0, 0, -1, 1]}
    rows = [{"id": n, "caption": caption} for n, caption in enumerate(["a dog", "a cat", "a dog", ""])]
    rows.append({"id": 9, "caption": "a bird", "boxes": [box]})
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = run("index", "build", "in.jsonl", "--on-error", "skip", "--out", "index").stdout.splitlines()
    assert lines[1:3] == [
        "Skipped: 1 row (empty_caption 1) and the boxes of 1 image (bad_box 1)",
        "Stored once: duplicates 1",
    ]
    (tmp_path / "more.jsonl").write_text('{"id": 7, "caption": "a fish"}\n{"id": 0, "caption": "a dog"}\n')
    found = json.loads(run("index", "add", "index", "more.jsonl", "--json").stdout)
    assert (found["added"], found["skipped"]) == (2, {})
