"""Exit codes: one for each kind of outcome, the same in every command (docs/reference/exit-codes.md)."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).resolve().parents[3]
FAILED, WRONG_USAGE, BELOW = 1, 2, 3

READS_ONE_FILE = [
    ("generate", "negatives", "{}", "--out", "o.jsonl"),
    ("generate", "positives", "{}", "--out", "o.jsonl"),
    ("generate", "conversations", "{}", "--out", "o.jsonl"),
    ("generate", "triples", "{}", "--out", "o.jsonl"),
    ("generate", "rationales", "{}", "--task", "itm", "--import", "captions.jsonl", "--out", "o.jsonl"),
    ("refine", "{}", "--out", "o.jsonl"),
    ("audit", "{}"),
    ("validate", "{}", "--out", "o.jsonl"),
    ("review", "{}"),
    ("evaluate", "{}"),
    ("evaluate", "embeddings", "{}", "--labels", "captions.jsonl", "--by", "id"),
    ("index", "build", "{}", "--out", "index"),
    ("fetch", "{}", "--out", "images"),
    ("filter", "{}", "--min-words", "2", "--out", "o.parquet"),
    ("export", "{}", "--to", "llava", "--out", "o.json"),
    ("inspect", "{}"),
    ("verify", "{}"),
]
READS_ANOTHER = [
    ("index", "check", "missing"),
    ("index", "info", "missing"),
    ("index", "add", "missing", "captions.jsonl"),
    ("index", "merge", "missing", "missing2", "--out", "index"),
    ("retrieve", "--index", "missing", "--queries", "captions.jsonl", "--k", "5", "--out", "o.jsonl"),
    ("generate", "negatives", "captions.jsonl", "--pool", "missing.jsonl", "--out", "o.jsonl"),
    ("refine", "negatives.jsonl", "--corpus", "missing.jsonl", "--out", "o.jsonl"),
    ("audit", "negatives.jsonl", "--corpus", "missing.jsonl"),
    ("diff", "missing", "missing2"),
    ("cache", "export", "missing.sqlite", "--out", "o.jsonl"),
    ("cache", "import", "cache.sqlite", "missing.jsonl"),
]
WRITES_ONE_FILE = [
    ("generate", "negatives", "captions.jsonl", "--out", "{}"),
    ("generate", "positives", "captions.jsonl", "--out", "{}"),
    ("generate", "conversations", "captions.jsonl", "--out", "{}"),
    ("generate", "triples", "negatives.jsonl", "--out", "{}"),
    ("refine", "negatives.jsonl", "--out", "{}"),
    ("validate", "negatives.jsonl", "--out", "{}"),
    ("audit", "negatives.jsonl", "--report", "{}"),
    ("filter", "captions.jsonl", "--min-words", "2", "--out", "{}"),
]
WRITES_A_FOLDER = [
    ("index", "build", "captions.jsonl", "--out", "{}"),
    ("fetch", "captions.jsonl", "--out", "{}"),
    ("build", "build.yaml", "--no-prefect", "--out", "{}"),
    ("demo", "--pairs", "3", "--no-prefect", "--out", "{}"),
    ("init", "--out", "{}/build.yaml"),
]
USES = [
    ("build", "missing.yaml"),
    ("plan", "missing.yaml"),
    ("mix", "missing.yaml", "--out", "o.json"),
    ("serve", "missing.yaml", "--interval", "3600"),
    ("build", "unknown-key.yaml"),
    ("mix", "build.yaml", "--out", "o.json"),
    ("mix", "mixture.yaml"),
    ("train", "no-such-recipe", "--data", "x.tar", "--model", "m", "--out", "run"),
    ("prompts", "show", "no-such-prompt"),
    ("no-such-command",),
    ("generate", "negatives", "captions.jsonl", "--no-such-option", "--out", "o.jsonl"),
    ("filter", "captions.jsonl", "--min-words", "many", "--out", "o.parquet"),
]
GIVES_NOTHING = [
    ("filter", "captions.jsonl", "--min-words", "99", "--out", "o.parquet"),
    ("retrieve", "--index", "index", "--queries", "queries.txt", "--k", "5", "--min-score", "0.99", "--out", "o.jsonl"),
    ("refine", "lengthened.jsonl", "--without", "length", "--out", "o.jsonl"),
    ("evaluate", "unscored.jsonl"),
    ("build", "no-hits.yaml", "--no-prefect"),
    ("build", "does-not-hold.yaml", "--no-prefect"),
]


@pytest.fixture
def files(tmp_path: Path, captions: Path) -> Path:
    """A folder with small inputs of every kind, good and bad."""
    caption = json.loads(captions.read_text().splitlines()[0])["caption"]
    negative = {"caption": caption, "negative": caption.replace("red", "green"), "form": "replace"}
    lengthened = [{"caption": f"a dog {n}", "negative": f"a dog {n} and much more besides"} for n in range(6)]
    config = "name: small\ninput: {path: captions.jsonl}\nshards: {images: false}\nworkers: 1\n"
    for name, text in {
        "negatives.jsonl": json.dumps(negative),
        "lengthened.jsonl": "".join(json.dumps(row) + "\n" for row in lengthened),
        "unscored.jsonl": '{"s_caption": null, "s_negative": null}',
        "queries.txt": "zebra xylophone\n",
        "build.yaml": config,
        "unknown-key.yaml": f"{config}sede: 1\n",
        "mixture.yaml": "sources:\n  - path: captions.jsonl\n",
        "no-hits.yaml": f"{config}retrieve: {{queries: queries.txt, k: 5, min_score: 0.99}}\n",
        "does-not-hold.yaml": f"{config}negatives: {{}}\nrefine: {{method: general, min_keep: 1.0}}\n",
        "a-file": "x",
        "broken.jsonl": '{"caption": "a',
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def filled(command: tuple[str, ...], name: str) -> list[str]:
    return [word.replace("{}", name) for word in command]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", READS_ONE_FILE, ids=" ".join)
def test_a_missing_and_a_broken_input_are_failures(run: Run, command: tuple[str, ...]) -> None:
    for name in ("missing.jsonl", "broken.jsonl"):
        done = run(*filled(command, name), ok=False)
        assert (done.returncode, done.stdout) == (FAILED, ""), done.stderr
        assert name in done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", READS_ANOTHER, ids=" ".join)
def test_whatever_else_is_read_and_missing_is_a_failure_too(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, ok=False)
    assert done.returncode == FAILED, done.stderr
    assert "missing" in done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", WRITES_ONE_FILE, ids=" ".join)
def test_an_output_of_no_known_ending_is_wrong_usage_and_is_found_before_any_work(
    run: Run, command: tuple[str, ...]
) -> None:
    done = run(*filled(command, "o.xyz"), ok=False)
    assert done.returncode == WRONG_USAGE, done.stderr
    assert "o.xyz" in done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", [*WRITES_ONE_FILE, *WRITES_A_FOLDER], ids=" ".join)
def test_an_output_below_a_file_is_a_failure(run: Run, command: tuple[str, ...]) -> None:
    place = "a-file/o" if command in WRITES_A_FOLDER else f"a-file/o{'.parquet' if 'filter' in command else '.jsonl'}"
    done = run(*filled(command, place.replace(".jsonl", ".html") if "audit" in command else place), ok=False)
    assert done.returncode == FAILED, done.stderr
    assert "a-file" in done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", USES, ids=" ".join)
def test_a_config_an_option_or_a_name_that_is_wrong_is_wrong_usage(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, ok=False)
    assert done.returncode == WRONG_USAGE, done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", GIVES_NOTHING, ids=" ".join)
def test_a_command_that_is_done_and_keeps_nothing_or_misses_its_target_ends_below(
    run: Run, command: tuple[str, ...]
) -> None:
    if "index" in command:
        run("index", "build", "captions.jsonl", "--out", "index")
    done = run(*command, ok=False)
    assert done.returncode == BELOW, done.stderr
    assert done.stderr.strip()


def test_the_page_of_exit_codes_names_every_code_that_a_command_ends_with() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == ["0", "1", "2", "3", "4", "130", "143"]


def test_a_validation_that_keeps_no_row_says_why(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"caption": "A dog runs.", "negative": "a dog runs"}))
    done = run("validate", "rows.jsonl", "--out", "o.jsonl", ok=False)
    assert done.returncode == BELOW, done.stderr
    assert re.search(r"No row was kept of 1: [a-z_]+ 1\.\n", done.stderr), done.stderr
