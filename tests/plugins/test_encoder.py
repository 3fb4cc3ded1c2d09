"""A third-party encoder, as docs/extending.md shows it: listed, used by name in the command line and in a build."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.encoders.registry import EncoderOptions
from tests.indexes.corpus import batches, numbered

ROOT = Path(__file__).parents[2]
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that puts a distribution with the example on the path."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "word_sets.py").write_text(Path(__file__).with_name("word_sets.py").read_text())
    monkeypatch.syspath_prepend(str(site))

    def put(name: str = "word-sets", target: str = "word_sets:ENCODER") -> None:
        info = site / "encoder_plugin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: encoder-plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pairwright.encoders]\n{name} = {target}\n")
        importlib.invalidate_caches()

    yield put
    sys.modules.pop("word_sets", None)


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    texts = [f"{count} {animal} {place}" for count in ("one", "two") for animal in ("dog", "cat") for place in "abc"]
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in texts))
    return path


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_example_in_the_docs_takes_under_thirty_lines() -> None:
    example = Path(__file__).with_name("word_sets.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) < 30
    assert example.strip() in (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def test_an_installed_encoder_is_listed_without_being_imported(install: Install) -> None:
    install()
    rows = [row for row in run("plugins")["plugins"] if row["name"] == "word-sets"]
    assert rows == [{"kind": "encoder", "name": "word-sets", "from": "encoder-plugin", "about": "word_sets:ENCODER"}]
    assert "word_sets" not in sys.modules


def test_index_build_and_retrieve_use_the_encoder_by_name(install: Install, captions: Path, tmp_path: Path) -> None:
    install()
    built = run("index", "build", captions, "--out", tmp_path / "index", "--encoder", "word-sets")
    assert (built["encoder_name"], built["dim"]) == ("word-sets", 251)
    (tmp_path / "queries.txt").write_text("CAT c two\n")
    paths = [
        "--queries",
        tmp_path / "queries.txt",
        "--out",
        tmp_path / "hits.parquet",
        "--pairs",
        tmp_path / "p.parquet",
    ]
    run("retrieve", "--index", tmp_path / "index", *paths, "--k", 1)
    assert pl.read_parquet(tmp_path / "p.parquet")["caption"].to_list() == ["two cat c"]


def test_worker_processes_load_the_encoder(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{ROOT / 'src'}")
    folder = tmp_path / "index"
    build_index_from_pairs(
        lambda: batches(numbered(40)), folder, encoder=EncoderOptions("word-sets"), shards=2, workers=2
    )
    assert open_index_with_encoder(folder).query_encoder.name == "word-sets"


def test_a_build_names_the_encoder_in_its_config(install: Install, captions: Path, tmp_path: Path) -> None:
    install()
    (tmp_path / "queries.txt").write_text("two cat c\n")
    config = {
        "name": "third-party",
        "input": {"path": str(captions)},
        "index": {"encoder": "word-sets"},
        "retrieve": {"queries": str(tmp_path / "queries.txt"), "k": 3},
        "workers": 1,
    }
    manifest = build(parse_config(config, where="test"), tmp_path / "out", prefect=False)
    assert manifest["stages"]["retrieve"]["kept"] == 3
    assert json.loads((tmp_path / "out" / "index" / "index.json").read_text())["encoder_name"] == "word-sets"


def test_an_unknown_encoder_is_refused_with_a_suggestion(install: Install, captions: Path, tmp_path: Path) -> None:
    install()
    with pytest.raises(UsageError, match=r"no encoder named word-set\. Did you mean word-sets"):
        EncoderOptions("word-set")
    config = {"name": "x", "input": {"path": str(captions)}, "index": {"encoder": "word-set"}}
    with pytest.raises(PairwrightError, match=r"index\.encoder.*Did you mean word-sets"):
        parse_config(config, where="test")


def test_an_encoder_with_another_name_than_its_entry_point_is_refused(install: Install, tmp_path: Path) -> None:
    install(name="other")
    with pytest.raises(UsageError, match=r"encoder other: its attribute `name` is 'word-sets'"):
        build_index_from_pairs(lambda: batches(numbered(4)), tmp_path / "index", encoder=EncoderOptions("other"))


def test_only_encoders_of_a_model_take_a_model(install: Install) -> None:
    install()
    with pytest.raises(UsageError, match="takes no model"):
        EncoderOptions("word-sets", model="x")
