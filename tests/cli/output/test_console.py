"""Printed captions and paths never control the terminal."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pairwright.cli.output.console import emit, note
from tests.cli.conftest import Run

STEERING = "a \x1b[2Jdog\r \x9b31mon\x00 \u202ebed\tof\nred"


def test_what_would_steer_a_terminal_is_shown_as_an_escape(capsys: pytest.CaptureFixture[str]) -> None:
    """Captions come from anybody; tabs and line breaks are text, and JSON gives back what was written."""
    harmless = r"a \x1b[2Jdog\r \x9b31mon\x00 \u202ebed" + "\tof\nred\n"
    emit({}, [STEERING], as_json=False)
    note(STEERING)
    assert capsys.readouterr() == (harmless, harmless)
    emit({"caption": STEERING}, [], as_json=True)
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"caption": STEERING}
    assert shown.rstrip("\n").isprintable()


def test_an_error_that_names_what_would_steer_a_terminal_does_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text(json.dumps({"capt\x1b[31mion": "a dog"}) + "\n")
    done = run("generate", "negatives", "pool.jsonl", "--out", "out.jsonl", ok=False)
    assert r"there are: capt\x1b[31mion." in done.stderr
    assert "\x1b" not in done.stderr


def printed(folder: Path, *, terminal: bool, **environment: str) -> str:
    """Return what a command with colours prints, on a terminal or into a pipe."""
    command = [sys.executable, "-m", "pairwright", "init", "--force", "--out", "build.yaml"]
    settings = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    settings |= {"TERM": "xterm", **environment}
    if not terminal:
        return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=True).stdout
    ours, theirs = pty.openpty()
    subprocess.run(command, cwd=folder, env=settings, stdout=theirs, stderr=subprocess.PIPE, check=True)
    os.close(theirs)
    message = os.read(ours, 65_536).decode()
    os.close(ours)
    return message


def test_a_terminal_shows_colours_unless_they_are_switched_off(tmp_path: Path) -> None:
    assert "\x1b[36mNext: " in printed(tmp_path, terminal=True)
    for plain in (
        printed(tmp_path, terminal=False),
        printed(tmp_path, terminal=True, NO_COLOR="1"),
        printed(tmp_path, terminal=True, TERM="dumb"),
    ):
        assert "Next: " in plain
        assert "\x1b" not in plain
