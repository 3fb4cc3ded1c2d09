"""The code of `docs/python.md` runs as it stands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with the files that the page names."""
    monkeypatch.chdir(tmp_path)
    things = ("dog", "cat", "man", "woman", "horse", "bird", "car", "bus")
    captions = [f"A {thing} on a {place}." for thing in things for place in ("street", "beach", "bench", "bed")]
    Path("captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    Path("build.yaml").write_text("name: birds\ninput: {path: captions.jsonl}\nworkers: 1\nnegatives: {}\n")
    for command in (
        "build build.yaml --no-prefect",
        "index build captions.jsonl --out index",
        "generate negatives captions.jsonl --out negatives.jsonl",
    ):
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, result.output
    return tmp_path


def test_the_code_of_the_page_runs_from_top_to_bottom(folder: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert len(blocks) == 5
    assert names["pairs"].height == 32
    assert set(names["texts"]) == {"replace-object", "swap-object"}
    assert len(names["hits"]) == 4 * 5
    assert (folder / "refined.jsonl").is_file()
