"""``pairwright index``: building of and messages about indexes."""

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
    assert "rejected not_finite 1, zero_vector 1" in done.stdout
    assert "not_finite 1, zero_vector 1" in run("index", "info", "index").stdout
