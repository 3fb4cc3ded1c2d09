"""Outputs never overwrite an input or a file of a build, however the path is written."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CAPTIONS, Run


def rows(path: Path, captions: list[str]) -> Path:
    """Write captions as JSON Lines, and return the file."""
    path.write_text("".join(json.dumps({"id": caption, "caption": caption}) + "\n" for caption in captions))
    return path


@pytest.fixture
def build(run: Run, tmp_path: Path) -> Path:
    """A finished build of five texts."""
    rows(tmp_path / "pool.jsonl", CAPTIONS)
    (tmp_path / "b.yaml").write_text("name: b\ninput: {path: pool.jsonl}\nworkers: 1\n")
    run("build", "b.yaml", "--out", "b", "--no-prefect")
    return tmp_path / "b"


def refused(run: Run, *command: str, kept: Path, printed: str) -> None:
    """Run a command that is to be refused, and look whether the file is as it was."""
    before = kept.read_bytes()
    done = run(*command, ok=False)
    assert done.returncode == 2, done.stderr
    assert printed in done.stderr
    assert "replaces a" not in done.stderr
    assert kept.read_bytes() == before


def test_a_file_of_a_pattern_or_of_a_folder_is_not_written_over(run: Run, tmp_path: Path) -> None:
    """``p{0..1}.jsonl`` names p0.jsonl as surely as its own name does."""
    (tmp_path / "parts").mkdir()
    first = rows(tmp_path / "parts" / "p0.jsonl", CAPTIONS[:3])
    rows(tmp_path / "parts" / "p1.jsonl", CAPTIONS[3:])
    for given in ("parts/p{0..1}.jsonl", "parts/p{0,1}.jsonl", "parts", "parts/p0.jsonl"):
        refused(
            run, "generate", "negatives", given, "--out", "parts/p0.jsonl", kept=first, printed="parts/p0.jsonl: is "
        )
        refused(run, "generate", "conversations", given, "--out", "parts/p0.jsonl", kept=first, printed="p0.jsonl: is ")
    run("generate", "negatives", "parts/p{0..1}.jsonl", "--out", "parts/p2.jsonl")


def test_files_written_next_to_the_output_never_replace_the_input(run: Run, tmp_path: Path) -> None:
    """Rejected rows and reports get names of their own, which may be those of the input."""
    run("filter", rows(tmp_path / "a.jsonl", CAPTIONS).name, "--min-words", "1", "--out", "x.parquet")
    given = (tmp_path / "x.parquet").rename(tmp_path / "pool.rejected.parquet")
    command = ("filter", given.name, "--min-words", "1", "--out", "pool.parquet")
    refused(run, *command, kept=given, printed="pool.rejected.parquet: is the input itself")
    conversation = {"conversations": [{"from": "human", "value": "What?"}, {"from": "gpt", "value": "A dog."}]}
    for name in ("o.mixture.json", "o.rejected.jsonl"):
        source = tmp_path / name
        source.write_text(json.dumps([conversation]) if name.endswith(".json") else json.dumps(conversation) + "\n")
        (tmp_path / "m.yaml").write_text(f"sources: [{{path: {name}}}]\n")
        refused(run, "mix", "m.yaml", "--out", "o.json", kept=source, printed=f"{name}: is the input itself")


def test_the_rejected_rows_of_an_index_spare_its_input(run: Run, captions: Path, tmp_path: Path) -> None:
    """A slip of the tab key; what ends in another way is no Parquet."""
    command = ("index", "build", captions.name, "--out", "i", "--rejected", captions.name)
    refused(run, *command, kept=captions, printed="ends in .parquet")
    run("filter", captions.name, "--min-words", "1", "--out", "x.parquet")
    given = tmp_path / "x.parquet"
    refused(
        run,
        "index",
        "build",
        given.name,
        "--out",
        "i",
        "--rejected",
        given.name,
        kept=given,
        printed="the input itself",
    )
    run("index", "build", captions.name, "--out", "i")
    refused(run, "index", "add", "i", given.name, "--rejected", given.name, kept=given, printed="the input itself")


def test_a_config_does_not_take_the_place_of_the_data(run: Run, captions: Path) -> None:
    """``--force`` is for an older config."""
    refused(
        run, "init", "--input", captions.name, "--out", captions.name, "--force", kept=captions, printed="the input"
    )


def test_the_files_of_a_finished_build_stay_as_its_manifest_says(run: Run, build: Path) -> None:
    """A replaced file would be found by ``verify`` only, where it looks like damage."""
    for name in ("pairs/00000.parquet", "shards/00000.tar", "manifest.json"):
        layout = {"parquet": "parquet", "tar": "parquet", "json": "llava"}[name.rpartition(".")[2]]
        refused(
            run, "export", "b", "--to", layout, "--out", f"b/{name}", kept=build / name, printed="belongs to the build"
        )
    shards = build / "shards" / "00000.tar"
    refused(run, "inspect", "b", "--sheet", "b/shards/00000.tar", kept=shards, printed="ends in .png")
    run("export", "b", "--to", "webdataset", "--out", "w")
    refused(
        run,
        "export",
        "w",
        "--to",
        "webdataset",
        "--out",
        "b/shards",
        kept=shards,
        printed="b/shards: belongs to the build",
    )
    run("export", "b", "--to", "parquet", "--out", "b/mine.parquet")
    run("verify", "b")


def test_the_files_of_an_index_stay_as_it_says(run: Run, captions: Path, tmp_path: Path) -> None:
    """An index that lacks a byte is opened by no command."""
    run("index", "build", captions.name, "--out", "i")
    (tmp_path / "q.txt").write_text("a dog\n")
    kept = tmp_path / "i" / "pairs" / "00000.parquet"
    ask = ("retrieve", "--index", "i", "--queries", "q.txt")
    refused(run, *ask, "--out", "i/pairs/00000.parquet", kept=kept, printed="belongs to the index")
    refused(run, *ask, "--out", "h.csv", "--pairs", "i/pairs/00000.parquet", kept=kept, printed="belongs to the index")
    run(*ask, "--out", "i/hits.csv")


def test_the_queries_are_not_written_over(run: Run, captions: Path) -> None:
    """Captions may be queries, and hits have the same ending."""
    run("index", "build", captions.name, "--out", "i")
    given = ("retrieve", "--index", "i", "--queries", captions.name, "--out", captions.name)
    refused(run, *given, kept=captions, printed="is the input itself")


def test_paid_answers_decisions_and_scores_are_not_written_over(run: Run, build: Path, tmp_path: Path) -> None:
    """An export of a cache into itself would leave a file that no command reads as a cache."""
    (tmp_path / "a.jsonl").write_text('{"pairwright_cache": 1}\n')
    run("cache", "import", "c.sqlite", "a.jsonl")
    cache = tmp_path / "c.sqlite"
    refused(run, "cache", "export", "c.sqlite", "--out", "c.sqlite", kept=cache, printed="is the input itself")
    message = tmp_path / "d.jsonl"
    message.write_text('{"at":"2030-01-01T10:00:00Z","candidate":"x","decision":"keep","id":"1","reviewer":"ann"}\n')
    given = ("export", "b", "--to", "triplets", "--decisions", "d.jsonl", "--out", "d.jsonl")
    refused(run, *given, kept=message, printed="is the input itself")
    scores = rows(tmp_path / "rows.jsonl", CAPTIONS)
    asked = ("evaluate", "negatives", "model", "--data", "rows.jsonl", "--html", "rows.jsonl")
    refused(run, *asked, kept=scores, printed="write to a file that ends in .html")
