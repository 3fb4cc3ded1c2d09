"""The shape of the repository: which rooms there are, and which may import which."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ["datasets", "indexes", "generators", "filters", "flows"]  # and "training", which stands beside them
ORDER = [*ROOMS, "cli"]
ORACLE = "pairwright.datasets.colorshape.oracle"
MAY_IMPORT_ORACLE = {"flows/commands/demo.py"}


def modules(room: str) -> list[Path]:
    folder = ROOT / "src/pairwright/cli" if room == "cli" else ROOT / room
    return sorted(folder.rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return what matters here of a module: what it imports and what it calls."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call))


@cache
def imported(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_only_from_rooms_to_its_left(room: str) -> None:
    allowed = set(ORDER[: ORDER.index(room) + 1])
    for path in modules(room):
        for name in imported(path):
            steps = name.split(".")
            assert steps[0] not in ORDER, f"{path} imports {name}: write pairwright.{name}"
            if steps[0] == "pairwright" and len(steps) > 1 and steps[1] in ORDER:
                assert steps[1] in allowed, f"{path} imports {name}"


def test_what_rules_are_made_of_imports_one_way() -> None:
    order = ["lexicon", "language", "captions", "edits"]
    for at, folder in enumerate(order):
        later = tuple(f"pairwright.generators.{other}." for other in order[at + 1 :])
        for path in sorted((ROOT / "generators" / folder).rglob("*.py")):
            assert not [name for name in imported(path) if name.startswith(later)], path


def test_edits_and_the_model_client_import_one_way() -> None:
    rules = tuple(f"pairwright.generators.{folder}." for folder in ("lexicon", "language", "captions", "edits"))
    for path in sorted((ROOT / "generators" / "llm").rglob("*.py")):
        assert not [name for name in imported(path) if name.startswith(rules)], path


def test_the_trainer_imports_records_and_the_online_maker_and_its_evaluation_readers_and_metrics_too() -> None:
    always = ("pairwright.datasets", "pairwright.training", "pairwright.generators.online")
    for path in modules("training"):
        measures = path.parent.name == "evaluation"
        allowed = (*always, "pairwright.indexes", "pairwright.filters") if measures else always
        for name in imported(path):
            ours = name.startswith("pairwright.") and not name.startswith(allowed)
            assert not ours, f"{path} imports {name}"
            evaluation = name.startswith("pairwright.training.evaluation")
            assert measures or not evaluation, f"{path} imports {name}"


@pytest.mark.parametrize("room", ["datasets", "indexes", "generators", "filters", "training"])
def test_prefect_and_typer_stay_in_their_rooms(room: str) -> None:
    for path in modules(room):
        assert not {name.split(".")[0] for name in imported(path)} & {"prefect", "typer"}, path


def test_only_reports_and_tests_import_the_truth_oracle() -> None:
    importers = {
        path.relative_to(ROOT).as_posix()
        for room in ORDER
        for path in modules(room)
        if "oracle" not in path.parts and any(name.startswith(ORACLE) for name in imported(path))
    }
    assert importers <= MAY_IMPORT_ORACLE


@pytest.mark.parametrize("room", [*ROOMS, "training"])
def test_each_room_is_a_link_without_an_init(room: str) -> None:
    """A room with an ``__init__.py`` would shadow Hugging Face's `datasets` for code run in the repository."""
    link = ROOT / "src" / "pairwright" / room
    assert link.readlink() == Path("../..") / room
    assert not (ROOT / room / "__init__.py").exists()


def test_importing_datasets_from_the_repository_root_is_not_ours() -> None:
    code = "import importlib.util as u; s = u.find_spec('datasets'); print(s.origin if s else None)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "None" or "site-packages" in found.stdout


PICKLERS = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
# All read what the same run has written: in a temporary folder, an unnamed file, or a folder that only its owner can write.
MAY_PICKLE = {
    "flows/commands/annotation_files.py",
    "flows/runners/pickled_setup.py",
    "flows/runners/slurm_pool.py",
    "flows/runners/slurm_task.py",
}
SAFE_CALLS = {
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
}
NEVER_CALLED = {"yaml.load", "yaml.unsafe_load", "yaml.full_load", "eval", "exec"}
LAST_WORDS = {name.rpartition(".")[2] for name in (*SAFE_CALLS, *NEVER_CALLED, "extractall")}


def last_word(called: ast.expr) -> str:
    return getattr(called, "attr", getattr(called, "id", ""))


@pytest.mark.parametrize("room", [*ORDER, "training"])
def test_nothing_that_is_read_can_run_code(room: str) -> None:
    """No pickle, no YAML but the safe one, arrays and weights without objects, no archive unpacked as it says."""
    unsafe = []
    for path in modules(room):
        name = path.relative_to(ROOT).as_posix()
        if PICKLERS & set(imported(path)) and name not in MAY_PICKLE:
            unsafe.append(f"{name}: imports a pickler")
        for node in nodes(path):
            # To write a node as text is slow, and few end in such a word.
            if not isinstance(node, ast.Call) or last_word(node.func) not in LAST_WORDS:
                continue
            called = ast.unparse(node.func)
            given = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            word, value = SAFE_CALLS.get(called, ("", None))
            if called in NEVER_CALLED or called.endswith(".extractall") or (word and given.get(word) is not value):
                unsafe.append(f"{name}:{node.lineno}: {called}")
    assert unsafe == []


def test_readers_name_no_option_by_hand() -> None:
    """A config is read by the same code, and its writer knows no options: `datasets.option_names` names them for both."""
    by_hand = []
    for path in [ROOT / "datasets/readers/pairs.py", *sorted((ROOT / "datasets/readers").rglob("*.py"))]:
        texts = (
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Constant)
        )
        by_hand += [(path.name, text.lineno) for text in texts if re.search("--[a-z]", str(text.value))]
    assert by_hand == []


def test_importing_the_package_imports_no_room() -> None:
    code = "import sys, pairwright; print([m for m in sys.modules if m.startswith('pairwright.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
