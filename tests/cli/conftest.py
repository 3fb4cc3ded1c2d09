"""The command line as a user calls it, and two small inputs."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from pairwright.cli import main
from pairwright.datasets.colorshape.corpus import CorpusSpec, write_corpus
from tests.servers.warm_command_line import WarmCommandLine, warm_command_line

Run = Callable[..., subprocess.CompletedProcess[str]]

CAPTIONS = [
    "A large red bus parked next to a small white car.",
    "two dogs playing with a ball on the grass",
    "A man in a blue shirt is riding a brown horse.",
    "A black cat and a white dog on a wooden bench.",
    "an old woman holding an umbrella in the rain",
]


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommandLine]:
    """What commands are forked from that must have a process of their own."""
    with warm_command_line() as line:
        yield line


def _checked(done: subprocess.CompletedProcess[str], *, ok: bool) -> subprocess.CompletedProcess[str]:
    assert "Traceback" not in done.stderr
    assert not ok or done.returncode == 0, done.stderr
    return done


@pytest.fixture
def run_apart(tmp_path: Path) -> Run:
    """Run ``pairwright`` in the folder of the test, in a new process."""

    def call(*arguments: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pairwright", *map(str, arguments)]
        return _checked(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False), ok=ok)

    return call


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``pairwright`` in the folder of the test, in this process, which has imported the modules and loaded the models.

    The entry point is that of the script, so what is printed and how it ends are what a user meets.
    """
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")  # help names the script, and not `python -m pytest`

    def call(*arguments: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["pairwright", *map(str, arguments)])
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
        code: object = 0
        with chdir(tmp_path), redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            try:
                main.run()
            except SystemExit as ended:
                code = ended.code or 0
        out, err = (_read(stream) for stream in streams)
        assert isinstance(code, int), code
        return _checked(subprocess.CompletedProcess(sys.argv, code, out, err), ok=ok)

    return call


def _read(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A JSONL file with five captions."""
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"id": n, "caption": text}) + "\n" for n, text in enumerate(CAPTIONS)))
    return path


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A JSONL file with 80 ColorShape scenes: enough captions to be a pool, boxes included."""
    folder = tmp_path_factory.mktemp("scenes")
    write_corpus(folder, CorpusSpec(pairs=80, images=False))
    return folder / "captions.jsonl"


@pytest.fixture(scope="session")
def few_scenes(scenes: Path) -> Path:
    """The first 48 of them: where what is written matters, and not how much. No model is trained of so few captions."""
    path = scenes.with_name("few.jsonl")
    path.write_text("".join(scenes.read_text().splitlines(keepends=True)[:48]))
    return path
