"""``pairwright retrieve``: covered and uncovered queries, and the first hits in the order of a decoder."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from tests.cli.conftest import Run
from tests.image_variants import as_jpeg, draw
from tests.training.attention.test_decoder import reader


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of three captions, queries, and a decoder."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "pairs.jsonl").write_text(
        "\n".join(
            json.dumps({"image": f"{n}.jpg", "caption": f"a {colour} circle"})
            for n, colour in enumerate(("red", "blue", "green"))
        )
    )
    arguments = ["index", "build", str(folder / "pairs.jsonl"), "--out", str(folder / "index")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    (folder / "q.txt").write_text("a red circle\na blue circle\n")
    found = reader()
    found.model.save_pretrained(folder / "decoder")
    found.tokenizer.save_pretrained(folder / "decoder")
    return folder


@pytest.fixture
def searched(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_hits_come_in_the_order_of_the_decoder_and_keep_their_first_rank(run: Run, searched: Path) -> None:
    given = ["retrieve", "--index", "index", "--queries", "q.txt", "--k", 3, "--out", "h.parquet", "--json"]
    printed = json.loads(run(*given, "--rerank", "attention", "--rerank-model", "decoder", "--rerank-top", 2).stdout)
    assert printed["reranked"] == {"by": "attention", "model": "decoder", "hits": 4, "prompts_read": 6}
    hits = pl.read_parquet(searched / "h.parquet")
    for group in hits.partition_by("query"):
        assert group["rank"].to_list() == [1, 2, 3]
        assert sorted(group["first_rank"].to_list()[:2]) == [1, 2]
        scores = group["rerank_score"].to_list()
        assert scores[0] > scores[1]
        assert (group["first_rank"][2], scores[2]) == (3, None)


def test_a_decoder_without_a_ranking_and_a_ranking_without_a_decoder_are_refused(run: Run, searched: Path) -> None:
    given = ["retrieve", "--index", "index", "--queries", "q.txt", "--out", "h.jsonl"]
    assert "--rerank-model" in run(*given, "--rerank", "attention", ok=False).stderr
    assert "requires --rerank" in run(*given, "--rerank-model", "decoder", ok=False).stderr
    assert (
        "not a causal language model"
        in run(*given, "--rerank", "attention", "--rerank-model", "index", ok=False).stderr
    )
    assert not (searched / "h.jsonl").exists()


def test_captions_that_are_too_long_together_are_refused_with_the_option_to_lower(run: Run, searched: Path) -> None:
    config = json.loads((searched / "decoder/config.json").read_text())
    (searched / "decoder/config.json").write_text(json.dumps({**config, "max_position_embeddings": 260}))
    given = ["retrieve", "--index", "index", "--queries", "q.txt", "--out", "h.jsonl", "--rerank", "plain-attention"]
    assert run(*given, "--rerank-model", "decoder", ok=False).stderr.splitlines() == [
        "pairwright: a prompt of 280 tokens: the model's limit is 260. Lower --rerank-top."
    ]
    assert run(*given, "--rerank-model", "decoder", "--rerank-top", 2).stderr == ""


def test_copies_of_evaluation_images_are_not_retrieved(run: Run, tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    draw(0).save(tmp_path / "val" / "0.png")
    for seed in range(2):
        as_jpeg(draw(seed)).save(tmp_path / f"{seed}.png")
    rows = [{"image": f"{at}.png", "caption": f"poster number {at}"} for at in range(3)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "q.txt").write_text("poster number 0\n")
    run("index", "build", "pairs.jsonl", "--out", "index")
    call = ["retrieve", "--index", "index", "--queries", "q.txt", "--k", 3, "--out", "h.jsonl", "--json"]
    printed = json.loads(run(*call, "--exclude-images", "val").stdout)
    assert (printed["hits"], printed["excluded"], printed["uncompared"]) == (2, {"copy": 1}, 1)


def test_a_partly_covered_query_says_how_many_of_its_pairs_are_near(run: Run, searched: Path) -> None:
    """It read like one of which the pool has nothing."""
    (searched / "q.txt").write_text("a red circle\na stained lymph node\n")
    given = ["retrieve", "--index", "index", "--queries", "q.txt", "--k", 3, "--out", "h.parquet"]
    shown = run(*given, "--floor", "0.99").stdout
    assert "Not covered by the pool: 2 of 2 concepts" in shown
    assert re.search(r"a stained lymph node +0 of 3\n +a red circle +1 of 3\n", shown)
