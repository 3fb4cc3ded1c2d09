"""Interrupts: one true line, exit code 130 for Ctrl-C and 143 for SIGTERM, however early they come."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.warm_command_line import WarmCommandLine

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
    ("code", "message"),
    [
        (WHILE_IMPORTING.format(name="typer"), "stopped before anything was done."),
        (WHILE_IMPORTING.format(name="pairwright.cli.verify"), "stopped before anything was done."),
        (WHILE_MAKING_READY, "stopped before it was done: start the same command again."),
    ],
)
def test_an_interrupt_prints_one_line(code: str, message: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, f"pairwright: {message}\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_generator_says_that_nothing_was_written_and_leaves_nothing(
    warm: WarmCommandLine, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """SIGTERM ended it without a word and left its temporary file; of Ctrl-C it was said that what is done is kept."""
    rows = (json.dumps({"caption": f"a red dog on a bed and {n} cats"}) for n in range(80))
    (tmp_path / "captions.jsonl").write_text("\n".join(rows))
    (tmp_path / "negatives.jsonl").write_text("of an earlier run")
    done = warm.run([str(int(number))], tmp_path, "tests.cli.errors.stopped_generator")
    message = "pairwright: stopped. Nothing was written or changed: start the same command again."
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, message)
    assert {path.name for path in tmp_path.iterdir()} == {"captions.jsonl", "negatives.jsonl"}
    assert (tmp_path / "negatives.jsonl").read_text() == "of an earlier run"


def test_where_answers_of_a_model_are_kept_a_stop_says_so(tmp_path: Path) -> None:
    """The line is that of the work and not of the verb; SIGTERM is left to the session, which ends in order."""
    code = """
import signal, sys
from pathlib import Path
from pairwright.cli import main
from pairwright.cli.options.model import ModelOptions
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
def pressed():
    nothing_written_on_interrupt()
    ModelOptions(model="m").access(Path("negatives.jsonl"))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    raise KeyboardInterrupt
main.app = pressed
main.run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    message = "pairwright: stopped. Finished work is kept: start the same command again to resume.\n"
    assert (done.returncode, done.stderr) == (130, message)


def test_who_switched_sigterm_off_is_not_stopped_by_it() -> None:
    code = """
import os, signal
from pairwright.cli.errors.interrupts import track_command, nothing_written_on_interrupt
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with track_command():
    nothing_written_on_interrupt()
    os.kill(os.getpid(), signal.SIGTERM)
assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The signal comes when the build begins.
WHILE_BUILDING = """
import os, signal, sys
from pairwright.flows import build
run_build = build.run_build
async def stopped(config, out):
    os.kill(os.getpid(), signal.SIGTERM)
    return await run_build(config, out)
build.run_build = stopped
from pairwright.__main__ import run
sys.argv[1:] = ["build", "build.yaml", "--no-prefect"]
run()
"""


def test_a_build_that_sigterm_stops_exits_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog"}')
    (tmp_path / "build.yaml").write_text("name: t\ninput: {path: in.jsonl}\nworkers: 1\n")
    done = subprocess.run(
        [sys.executable, "-c", WHILE_BUILDING], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    message = "pairwright: stopped by a signal. Start the same build again to resume it."
    assert (done.returncode, done.stderr.splitlines()[-1]) == (143, message)
