"""Third-party components that raise exceptions: one line that names the component."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import PairwrightError, PluginError, UsageError
from pairwright.datasets.shards.writing import write_shards
from pairwright.generators.registry import GENERATORS
from tests.datasets.sample_builders import picture, sample

BROKEN = """
from pairwright.datasets.exports.writing import ExportFormat
from pairwright.datasets.readers.input_rows import Reader
from pairwright.datasets.records import Annotation, Origin
from pairwright.indexes.encoders.registry import EncoderEntry


def fail(*_args, **_options):
    raise RuntimeError("broken")


class Generator:
    name, version, annotate = "broken", 1, fail

    def __init__(self, materials):
        pass


class WrongRows(Generator):
    def annotate(self, *_args):
        return [1]


class Unnumbered(Generator):
    def annotate(self, pair, *_args):
        row = Annotation("0" * 32, pair.key, "hard_negative", Origin("broken", 1, 0), text="x", source_text=pair.caption)
        return [row, row]


class OfAnotherPair(Generator):
    def annotate(self, pair, *_args):
        return [Annotation("0" * 32, "1" * 32, "hard_negative", Origin("broken", 1, 0), text="x")]


READER = Reader("broken", "x", fail, suffixes=(".broken",))
WRONG_ROWS = Reader("broken", "x", lambda path: iter([{"caption": "a dog"}]), suffixes=(".broken",))
EXPORT = ExportFormat("broken", "x", fail, suffixes=(".txt",))
NO_RESULT = ExportFormat("broken", "x", lambda *_: None, suffixes=(".txt",))
ENCODER = EncoderEntry("x", fail, fail)
"""
COMMANDS = {
    "generators": "generate --generator broken captions.jsonl --workers 1 --out out.jsonl",
    "readers": "generate negatives captions.broken --out out.jsonl",
    "exports": "export shards --to broken --out out.txt",
    "encoders": "index build captions.jsonl --encoder broken --out index",
    "scorers": "audit rows.jsonl --add-attacks broken",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder on the path with the broken module, next to the inputs of the commands."""
    (tmp_path / "broken_plugin.py").write_text(BROKEN)
    (tmp_path / "raising_plugin.py").write_text("raise ValueError('not today')\n")
    (tmp_path / "unparsable_plugin.py").write_text("def (:\n")
    (tmp_path / "captions.jsonl").write_text('{"caption": "two dogs on a bed"}\n')
    (tmp_path / "captions.broken").write_text("two dogs on a bed\n")
    write_shards([sample(0, image=picture())], tmp_path / "shards")
    rows = [{"image": f"{n}.jpg", "caption": f"a dog {n}", "negative": f"a cat {n}"} for n in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAIRWRIGHT_DEBUG", raising=False)
    yield tmp_path
    for module in ("broken_plugin", "raising_plugin", "unparsable_plugin"):
        sys.modules.pop(module, None)


def install(site: Path, group: str, target: str, name: str = "broken") -> None:
    info = site / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pairwright.{group}]\n{name} = {target}\n")
    importlib.invalidate_caches()


def error_of(command: str) -> BaseException | None:
    return CliRunner().invoke(app, command.split()).exception


@pytest.mark.parametrize("group", COMMANDS)
@pytest.mark.parametrize("module", ["raising_plugin", "unparsable_plugin"])
def test_a_plugin_that_raises_when_imported_is_named(site: Path, group: str, module: str) -> None:
    install(site, group, f"{module}:ANY")
    error = error_of(COMMANDS[group])
    assert isinstance(error, UsageError)
    assert f"broken ({module}:ANY) cannot be loaded: " in str(error)


@pytest.mark.parametrize(
    ("group", "target"),
    [
        ("generators", "Generator"),
        ("generators", "fail"),
        ("generators", "WrongRows"),
        ("readers", "READER"),
        ("readers", "WRONG_ROWS"),
        ("exports", "EXPORT"),
        ("encoders", "ENCODER"),
        ("scorers", "fail"),
    ],
)
def test_a_plugin_that_raises_when_used_is_named(site: Path, group: str, target: str) -> None:
    install(site, group, f"broken_plugin:{target}")
    error = error_of(COMMANDS[group])
    assert isinstance(error, PluginError), repr(error)
    assert " broken " in str(error)
    assert "RuntimeError: broken" in str(error) or "TypeError: it returned a" in str(error)


@pytest.mark.parametrize(
    ("group", "target", "says"),
    [
        ("generators", "Unnumbered", "two annotations of a pair have the same id; number them in `annotation_id`"),
        ("generators", "OfAnotherPair", "an annotation has the key of another pair; use `pair.key`"),
        ("exports", "NO_RESULT", "returned NoneType, not an ExportResult"),
    ],
)
def test_what_a_plugin_returns_is_checked_where_it_returns_it(site: Path, group: str, target: str, says: str) -> None:
    """Else another stage failed: refinement by its group column, a build by a repeated id, an export as a bug of ours."""
    install(site, group, f"broken_plugin:{target}")
    error = error_of(COMMANDS[group])
    assert isinstance(error, PluginError), repr(error)
    assert says in str(error)


def test_the_traceback_of_a_plugin_is_kept_for_debugging(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "generators", "broken_plugin:Generator")
    monkeypatch.setenv("PAIRWRIGHT_DEBUG", "1")
    error = error_of(COMMANDS["generators"])
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, PairwrightError)


def test_the_owners_of_a_built_in_name_include_pairwright(site: Path) -> None:
    install(site, "generators", "broken_plugin:Generator", "rules-negatives")
    with pytest.raises(UsageError, match=r"\(pairwright, plugin\)"):
        GENERATORS.get("rules-negatives")
