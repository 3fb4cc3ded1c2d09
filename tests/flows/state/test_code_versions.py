"""The code version of a stage: which files it covers, and what that means for receipts."""

import ast
import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.state import code_versions
from pairwright.flows.state.code_versions import ROOMS, code_files, code_hash, source_hash
from tests.flows.conftest import checked
from tests.flows.test_build import Heard

build = partial(build_with_prefect, prefect=False)
ROOT = Path(__file__).resolve().parents[3]
TAG, PAIRS, NEGATIVES = (f"pairwright.flows.stages.{name}" for name in ("tag", "pairs", "generate"))


def names(module: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in code_files(module)}


def test_a_stage_depends_on_what_its_module_imports_inside_functions_too_and_on_their_data_files() -> None:
    assert "flows/stages/tag.py" in names(TAG)
    assert "generators/language/tagger.py" in names(TAG)
    assert "generators/language/models/en_ewt_small/tagger/model" in names(TAG)
    assert "generators/prompts/conversation.yaml" in names(NEGATIVES)
    assert not any(name.startswith(("filters/", "training/", "flows/prefect/")) for name in names(NEGATIVES))
    assert not any(name.startswith("generators/") for name in names(PAIRS))


def imports_by_syntax_tree(path: Path) -> set[str]:
    """Return the modules of pairwright that a file imports, except under ``if TYPE_CHECKING:``."""

    class Visitor(ast.NodeVisitor):
        def __init__(self) -> None:
            self.found: set[str] = set()

        def visit_If(self, node: ast.If) -> None:
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            self.found |= {alias.name for alias in node.names}

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            self.found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}

    visitor = Visitor()
    visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in visitor.found if code_versions._module_path(name)}


@pytest.mark.parametrize("room", ROOMS)
def test_the_imports_of_every_module_are_found(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        module = ".".join(("pairwright", *path.relative_to(ROOT).with_suffix("").parts))
        found = set(code_versions._read_source(module).imports)
        assert imports_by_syntax_tree(path) <= found, path


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the rooms, for copies that share its files."""
    folder = tmp_path_factory.mktemp("rooms")
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def package(rooms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the rooms, which code versions are computed from."""
    shutil.copytree(rooms, tmp_path / "package", copy_function=os.link)
    monkeypatch.setattr(code_versions, "_PACKAGE", tmp_path / "package")
    forget()
    return tmp_path / "package"


def forget() -> None:
    """Clear the caches, as a new process would."""
    for name in ("source_hash", "code_hash", "_read_source", "_module_path", "_data_files", "_hash_file"):
        getattr(code_versions, name).cache_clear()


@pytest.fixture(autouse=True)
def _forget_afterwards() -> object:
    yield
    forget()


def change(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    path.unlink()  # copies share it
    path.write_text(text + "\n# A comment.\n", encoding="utf-8")
    forget()


def given(folder: Path) -> BuildConfig:
    return checked({"name": "t", "input": {"path": str(folder / "in.jsonl")}, "negatives": {}, "workers": 1})


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input and a build of it."""
    folder = tmp_path_factory.mktemp("before")
    (folder / "in.jsonl").write_text("".join(json.dumps({"caption": f"a dog and {n} cats"}) + "\n" for n in range(9)))
    build(given(folder), folder / "build")
    return folder


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ("filters/review/session.py", set()),
        ("filters/audit/verdict.py", set()),
        ("generators/language/tagger.py", {"tag", "words", "negatives"}),
        ("generators/prompts/conversation.yaml", {"negatives"}),
        ("generators/lexicon/data/prepositions.tsv", {"tag", "words", "negatives", "balance"}),
        ("generators/edits/sampling.py", {"tag", "words", "negatives"}),
        ("flows/stages/balance.py", {"balance"}),
        ("flows/config/sections.py", set()),
        ("generators/conversations/question_templates.py", {"negatives"}),
    ],
)
def test_a_changed_file_repeats_the_stages_that_use_it_and_no_others(
    before: Path, package: Path, tmp_path: Path, changed: str, stages: set[str]
) -> None:
    shutil.copytree(before / "build", tmp_path / "build")
    change(package / changed)
    heard = Heard()
    build(given(before), tmp_path / "build", heard)
    assert {stage for stage, jobs in heard.ran.items() if jobs} == stages


def test_the_version_of_a_module_outside_of_pairwright_covers_its_file_and_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toy_stage.py"
    path.write_text("from pairwright.flows.state import layout\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("toy_stage")
    try:
        before = code_hash("toy_stage")
        assert ROOT / "flows/state/layout.py" in code_files("toy_stage")
        change(path)
        assert code_hash("toy_stage") != before
    finally:
        del sys.modules["toy_stage"]


def test_the_source_hash_covers_all_rooms(package: Path) -> None:
    before = source_hash()
    change(package / "filters/review/session.py")
    assert source_hash() != before
