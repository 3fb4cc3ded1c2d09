"""Ctrl-C ends a command with one line and exit code 130, however early it comes."""

import subprocess
import sys

import pytest

# The moment is chosen by what is imported, or begun, and not by a clock.
WHILE_IMPORTING = """
import sys
class Pressed:
    def find_spec(self, name, path, target=None):
        if name == "{name}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed())
from pairwright.__main__ import run
run()
"""
WHILE_MAKING_READY = """
from pairwright.cli import main
def pressed():
    raise KeyboardInterrupt
main.app = pressed
main.run()
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WHILE_IMPORTING.format(name="typer"), "stopped before anything was done."),
        (WHILE_IMPORTING.format(name="pairwright.cli.verify"), "stopped before anything was done."),
        (WHILE_MAKING_READY, "stopped. What is done is kept: start the same command again to go on."),
    ],
)
def test_one_line_is_said(code: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, f"pairwright: {said}\n")
