"""``pairwright review``: serving, reporting, applying; and ``export --decisions``."""

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli import review
from pairwright.cli.main import app
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Edit, Origin, Pair, annotation_id, pair_key

COLOURS = {"red": ["blue", "green"], "white": ["black", "pink"]}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Four negatives of two captions."""
    path = tmp_path / "rows.jsonl"
    lines = [
        {
            "id": f"{old}-{new}",
            "image": f"{old}.jpg",
            "caption": f"A {old} bus by a tree.",
            "negative": f"A {new} bus by a tree.",
        }
        for old, news in COLOURS.items()
        for new in news
    ]
    path.write_text("".join(json.dumps(line | {"form": "replace", "target": "attribute"}) + "\n" for line in lines))
    return path


def decisions(path: Path, *message: tuple[str, ...]) -> Path:
    """Write decisions: (id, reviewer, word, candidate, text)."""
    names = ("id", "reviewer", "decision", "candidate", "text")
    path.write_text("".join(json.dumps(dict(zip(names, line, strict=False))) + "\n" for line in message))
    return path


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """Ann and Bob on the rows; one decision is about a row that is not there."""
    return decisions(
        tmp_path / "d.jsonl",
        ("red-blue", "ann", "keep", "A blue bus by a tree."),
        ("red-green", "ann", "reject", "A green bus by a tree."),
        ("white-pink", "ann", "fix", "A pink bus by a tree.", "a brown bus by a tree"),
        ("red-blue", "bob", "keep", "A blue bus by a tree."),
        ("red-green", "bob", "keep", "A green bus by a tree."),
        ("gone", "bob", "keep", "A bus."),
    )


def test_serving_announces_an_address_with_a_token_and_ends_on_ctrl_c(rows: Path) -> None:
    command = [sys.executable, "-m", "pairwright", "review", str(rows), "--sample", "3", "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = json.loads(process.stdout.readline())
        assert (printed["pid"], printed["rows"], printed["decided"]) == (process.pid, 3, 0)
        assert printed["url"].startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(printed["url"].partition("?")[0])  # noqa: S310 - loopback
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Decided 0 of 3 rows" in errors
    assert Path(printed["out"]) == rows.with_name("rows.jsonl.decisions.jsonl")


def test_a_report_shows_agreement_and_the_bound(rows: Path, decided: Path) -> None:
    done = CliRunner().invoke(app, ["review", str(rows), "--report", str(decided)])
    assert "ann and bob: 2 rows, 50.0% equal, Cohen's kappa 0.00" in done.stdout
    assert "Of the 1 row without a decision, at most 1 is bad" in done.stdout
    assert "1 for unknown rows" in done.stderr
    printed = json.loads(CliRunner().invoke(app, ["review", str(rows), "--report", str(decided), "--json"]).stdout)
    assert printed["bad"]["found"] == 2
    assert printed["by_type"]["replace-attribute"]["seen"] == 3
    alone = ["review", str(rows), "--report", str(decided), "--reviewer", "bob", "--json"]
    one = json.loads(CliRunner().invoke(app, alone).stdout)
    assert (one["reviewers"], one["bad"]["found"]) == ({"bob": {"keep": 2, "reject": 0, "unsure": 0, "fix": 0}}, 0)


def test_applying_writes_all_rows_with_what_was_decided(rows: Path, decided: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    call = ["review", str(rows), "--apply", str(decided), "--out", str(out), "--json"]
    printed = json.loads(CliRunner().invoke(app, call).stdout)
    assert {name: printed[name] for name in ("rows", "reviewed", "kept", "fixed", "rejected", "uncounted")} == {
        "rows": 4,
        "reviewed": 3,
        "kept": 3,
        "fixed": 1,
        "rejected": {"reviewer_rejected": 1},
        "uncounted": {"unknown": 1},
    }
    made: dict[str, dict[str, Any]] = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert made["red-green"]["reason"] == "reviewer_rejected"
    assert made["red-green"]["reviewed_by"] == {"ann": "reject", "bob": "keep"}
    assert made["white-pink"]["negative"] == "A brown bus by a tree."
    assert made["white-pink"]["edit"] == [{"from": "white", "to": "brown", "from_span": [2, 7], "to_span": [2, 7]}]
    assert "reviewed_by" not in made["white-black"]
    # What was written feeds the next stage, and the same decisions applied again change nothing more.
    again = ["review", str(out), "--apply", str(decided), "--out", str(tmp_path / "again.jsonl")]
    assert CliRunner().invoke(app, again).exit_code == 0
    assert (tmp_path / "again.jsonl").read_text() == out.read_text()


def test_foreign_layouts_can_be_written_without_the_rejected_rows(rows: Path, decided: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    call = ["review", str(rows), "--apply", str(decided), "--reviewer", "ann", "--only-reviewed", "--only-kept"]
    printed = json.loads(CliRunner().invoke(app, [*call, "--out", str(out), "--json"]).stdout)
    assert printed["rejected"] == {"not_reviewed": 1, "reviewer_rejected": 1}
    assert set(json.loads(out.read_text())) == {"red-blue", "white-pink"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a screen")
def test_no_browser_takes_the_terminal_over_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    done = threading.Event()

    def opening(url: str) -> None:
        opened.append(url)
        done.set()

    monkeypatch.setattr(webbrowser, "open", opening)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    review._open_browser("http://127.0.0.1:1/")
    monkeypatch.setenv("DISPLAY", ":0")
    review._open_browser("http://127.0.0.1:2/")
    assert done.wait(10)
    assert opened == ["http://127.0.0.1:2/"]


def test_an_export_of_a_build_leaves_out_what_was_rejected(tmp_path: Path) -> None:
    key, maker = pair_key("s", "1", "a red bus"), Origin("rules-negatives", 1)
    edit = (Edit("red", "blue", (2, 5), (2, 6)),)
    texts = {"a blue bus": edit, "a car": ()}
    rows = [
        Annotation(
            annotation_id(key, "hard_negative", maker, text, text), key, "hard_negative", maker, "replace", "attribute",
            text, "a red bus", edits,
        )
        for text, edits in texts.items()
    ]  # fmt: skip
    PAIRS.write([Pair(key, "a red bus", source="s")], tmp_path / "build" / "pairs" / "00000.parquet")
    ANNOTATIONS.write(rows, tmp_path / "build" / "annotations" / "negatives-00000.parquet")
    message = decisions(tmp_path / "d.jsonl", (rows[1].id, "ann", "reject", "a car"))
    out = tmp_path / "out.tsv"
    call = ["export", str(tmp_path / "build"), "--to", "negclip", "--decisions", str(message), "--out", str(out)]
    assert CliRunner().invoke(app, call).exit_code == 0
    written = out.read_text()
    assert "a blue bus" in written
    assert "a car" not in written


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--report", "d.jsonl", "--apply", "d.jsonl"], "mutually exclusive"),
        (["--report", "d.jsonl", "--out", "o.jsonl"], "takes no --out"),
        (["--report", "d.jsonl", "--sample", "3"], "with --report or --apply"),
        (["--report", "d.jsonl", "--no-browser"], "with --report or --apply"),
        (["--apply", "d.jsonl", "--out", "o.jsonl", "--seed", "3"], "with --report or --apply"),
        (["--apply", "d.jsonl"], "requires --out"),
        (["--only-reviewed"], "require --apply"),
        (["--apply", "d.jsonl", "--out", "rows.jsonl"], "is the input itself"),
        (["--apply", "d.jsonl", "--out", "d.jsonl"], "is the input itself"),
        (["--apply", "d.jsonl", "--out", "out.xlsx"], "candidate rows are in"),
    ],
)
def test_calls_that_make_no_sense_are_refused(rows: Path, decided: Path, options: list[str], why: str) -> None:
    named = [str(rows.parent / option) if "." in option else option for option in options]
    error = CliRunner().invoke(app, ["review", str(rows), *named]).exception
    assert isinstance(error, UsageError)
    assert why in str(error)


def test_rows_given_as_decisions_are_refused_and_left_alone(rows: Path) -> None:
    before = rows.read_bytes()
    error = CliRunner().invoke(app, ["review", str(rows), "--out", str(rows), "--no-browser"]).exception
    assert isinstance(error, InputError)
    assert "rows.jsonl:1: not a decision" in str(error)
    assert rows.read_bytes() == before


def test_tasks_for_label_studio_come_back_as_decisions(rows: Path, tmp_path: Path) -> None:
    from tests.datasets.sample_builders import picture

    for name in COLOURS:
        (tmp_path / f"{name}.jpg").write_bytes(picture())
    tasks, runner = tmp_path / "tasks.json", CliRunner()
    made = runner.invoke(app, ["review", str(rows), "--to-label-studio", str(tasks)])
    assert made.output.startswith("4 tasks in ")
    result = [{"from_name": "decision", "value": {"choices": ["reject"]}}]
    done = [task | {"annotations": [{"completed_by": 3, "result": result}]} for task in json.loads(tasks.read_text())]
    (tmp_path / "export.json").write_text(json.dumps(done))
    report = runner.invoke(app, ["review", str(rows), "--report", str(tmp_path / "export.json"), "--json"])
    assert json.loads(report.stdout)["bad"]["found"] == 4
    wrong = runner.invoke(app, ["review", str(rows), "--to-label-studio", str(tasks), "--reviewer", "ann"])
    assert isinstance(wrong.exception, UsageError)
