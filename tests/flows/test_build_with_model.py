"""Stages that ask a model by part: one service sends the requests of all jobs, wherever they run."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.build import build
from pairwright.flows.config.build import BuildConfig, parse_config
from pairwright.flows.state.layout import failed_files
from pairwright.generators.plausible_model.model import PlausibleModel
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread

SAME = ("pairs", "tokens", "annotations", "rejected", "shards")
WORDS = ("dog", "cat", "horse", "bird", "cow", "sheep")
CAPTIONS = [f"A {colour} {what} sits on a bed." for colour in ("red", "blue", "grey", "white") for what in WORDS]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(ServerScript(latency_ms=2), answer=PlausibleModel())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key-of-the-test")
        yield server


def settings(folder: Path, **sections: Any) -> dict[str, Any]:
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps({"caption": text}) + "\n" for text in CAPTIONS))
    return {
        "name": "x",
        "input": {"path": str(path)},
        "llm": {"model": "small", "price": "1/2"},
        "positives": {"method": "llm"},
        "part_size": 5,
        "workers": 1,
        **sections,
    }


def config_of(folder: Path, **sections: Any) -> BuildConfig:
    return parse_config(settings(folder, **sections), where="test")


def contents(out: Path) -> dict[str, bytes]:
    files = (path for folder in SAME for path in sorted((out / folder).rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def test_a_stage_asks_by_part_and_each_row_once(server: Server, tmp_path: Path) -> None:
    manifest = build(config_of(tmp_path), tmp_path / "out", prefect=False)
    stage = manifest["stages"]["positives"]
    assert stage["parts"] == 5
    bill = stage["facts"]["llm"]
    bodies = server.stats()["bodies"]
    assert bill["requests"] == bill["in_all"]["answers"] == bodies["answered"]
    assert bodies["answered_again"] == 0
    assert bill["cost"] > 0
    assert not [path for path in (tmp_path / "out").glob(".answers.json")]
