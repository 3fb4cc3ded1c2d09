"""``-`` as INPUT: rows from standard input."""

import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.records import pair_key
from tests.cli.conftest import CAPTIONS, Run

Pipe = Callable[[bytes], None]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pipe:
    """Make bytes the standard input; copies of it go below the folder of the test."""
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))

    def use(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return use


def rows(*more: dict[str, object]) -> bytes:
    return b"".join(
        json.dumps({"id": n, "caption": text}).encode() + b"\n" for n, text in enumerate(CAPTIONS)
    ) + b"".join(json.dumps(row).encode() + b"\n" for row in more)


def test_rows_from_standard_input_pass_through_generate_and_audit(run: Run, tmp_path: Path, pipe: Pipe) -> None:
    pipe(rows())
    made = json.loads(run("generate", "negatives", "-", "--out", "n.jsonl", "--json").stdout)
    assert made["captions"] == len(CAPTIONS)
    pipe((tmp_path / "n.jsonl").read_bytes())
    audited = json.loads(run("audit", "-", "--json", ok=False).stdout)
    assert audited["rows"] == sum(counts["kept"] for counts in made["types"].values())
    assert not list((tmp_path / "copies").iterdir())


def test_images_are_relative_to_the_working_folder_and_the_dataset_is_named_stdin(
    run: Run, tmp_path: Path, pipe: Pipe
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    pipe(b'{"id": 1, "image": "a.png", "caption": "a dog"}\n')
    run("filter", "-", "--min-side", 4, "--out", "k.parquet")
    (pair,) = pl.read_parquet(tmp_path / "k.parquet").to_dicts()
    assert (pair["image"], pair["source"]) == (str(tmp_path / "a.png"), "stdin")
    assert pair["key"] == pair_key("stdin", "1", "a dog")


def test_another_format_is_named(run: Run, tmp_path: Path, pipe: Pipe) -> None:
    pipe(b"caption\na dog\n")
    run("filter", "-", "--format", "csv", "--min-words", 2, "--out", "k.parquet")
    assert pl.read_parquet(tmp_path / "k.parquet")["caption"].to_list() == ["a dog"]


@pytest.mark.parametrize(
    ("data", "says"), [(b"", "stdin.jsonl: there are no rows"), (b"{bad\n", "stdin.jsonl:1: broken_json")]
)
def test_a_flaw_of_standard_input_is_reported_with_its_line(run: Run, pipe: Pipe, data: bytes, says: str) -> None:
    pipe(data)
    done = run("filter", "-", "--min-words", 2, "--out", "k.parquet", ok=False)
    assert done.returncode == 1
    assert says in done.stderr


def test_a_terminal_is_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch, pipe: Pipe) -> None:
    pipe(b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    done = run("filter", "-", "--min-words", 2, "--out", "k.parquet", ok=False)
    assert done.returncode == 2
    assert "nothing is piped into the command" in done.stderr


def test_places_of_rejected_rows_are_the_same_in_each_run(run: Run, tmp_path: Path, pipe: Pipe) -> None:
    for name in ("a", "b"):
        pipe(rows({"caption": ""}))
        run("filter", "-", "--min-words", "1", "--on-error", "skip", "--out", f"{name}.parquet")
    assert (tmp_path / "a.rejected.parquet").read_bytes() == (tmp_path / "b.rejected.parquet").read_bytes()
    places = pl.read_parquet(tmp_path / "a.rejected.parquet")["place"].to_list()
    assert places == [f"stdin.jsonl:{len(CAPTIONS) + 1}"]


def test_a_closed_standard_input_is_a_wrong_usage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    result = run("filter", "-", "--min-words", "1", "--out", "a.parquet", ok=False)
    assert result.returncode == 2
    assert "nothing is piped into the command" in result.stderr


@pytest.mark.parametrize(("data", "says"), [(b"", "stdin.jsonl: there are no rows."), (b"{\n", "stdin.jsonl:1: ")])
def test_errors_do_not_name_the_copy(run: Run, pipe: Pipe, data: bytes, says: str) -> None:
    pipe(data)
    done = run("generate", "negatives", "-", "--out", "n.jsonl", ok=False)
    assert done.stderr.startswith(f"pairwright: {says}")
