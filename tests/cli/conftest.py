"""The command line as a user calls it, and two small inputs."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus

Run = Callable[..., subprocess.CompletedProcess[str]]

CAPTIONS = [
    "A large red bus parked next to a small white car.",
    "two dogs playing with a ball on the grass",
    "A man in a blue shirt is riding a brown horse.",
    "A black cat and a white dog on a wooden bench.",
    "an old woman holding an umbrella in the rain",
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``pairwright`` in a folder of the test's own."""

    def call(*arguments: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pairwright", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert not ok or done.returncode == 0, done.stderr
        return done

    return call


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A JSONL file with five captions."""
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"id": n, "caption": text}) + "\n" for n, text in enumerate(CAPTIONS)))
    return path


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A JSONL file with 300 ColorShape scenes: enough captions to be a pool, boxes included."""
    folder = tmp_path_factory.mktemp("scenes")
    write_corpus(folder, CorpusSpec(pairs=300, images=False))
    return folder / "captions.jsonl"
