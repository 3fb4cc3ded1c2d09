"""What commands print: nothing of a caption or a path steers the terminal."""

import json
from pathlib import Path

import pytest

from pairwright.cli.console import emit, note
from tests.cli.conftest import Run

STEERING = "a \x1b[2Jdog\r \x9b31mon\x00 \u202ebed\tof\nred"


def test_what_would_steer_a_terminal_is_shown_as_an_escape(capsys: pytest.CaptureFixture[str]) -> None:
    """Captions come from anybody; tabs and line breaks are text, and JSON gives back what was written."""
    harmless = r"a \x1b[2Jdog\r \x9b31mon\x00 \u202ebed" + "\tof\nred\n"
    emit({}, [STEERING], as_json=False)
    note(STEERING)
    assert capsys.readouterr() == (harmless, harmless)
    emit({"caption": STEERING}, [], as_json=True)
    told = capsys.readouterr().out
    assert json.loads(told) == {"caption": STEERING}
    assert told.rstrip("\n").isprintable()


def test_an_error_that_names_what_would_steer_a_terminal_does_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text(json.dumps({"capt\x1b[31mion": "a dog"}) + "\n")
    done = run("generate", "negatives", "pool.jsonl", "--out", "out.jsonl", ok=False)
    assert r"there are: capt\x1b[31mion." in done.stderr
    assert "\x1b" not in done.stderr
