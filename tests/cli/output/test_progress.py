"""Progress on stderr: bars on a terminal, occasional lines elsewhere, nothing with --quiet."""

import os
import pty
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest
import typer

from pairwright.cli.main import app
from pairwright.cli.output import progress
from pairwright.cli.output.progress import Display, with_progress
from pairwright.cli.output.stage_bars import RunningStage, StageBars
from pairwright.datasets.progress import ProgressReport, open_step
from pairwright.flows.graph import STAGES
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import Snapshot

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor
LONG = [
    "audit",
    "build",
    "demo",
    "evaluate-answers",
    "evaluate-choices",
    "evaluate-conditions",
    "evaluate-multi-document",
    "evaluate-negatives",
    "evaluate-rationales",
    "evaluate-retrieval",
    "evaluate-zero-shot",
    "export",
    "fetch",
    "filter",
    "generate-conversations",
    "generate-mistakes",
    "generate-captions",
    "generate-groups",
    "generate-negatives",
    "generate-orders",
    "generate-positives",
    "generate-rationales",
    "generate-run",
    "generate-triples",
    "index-add",
    "index-build",
    "index-check",
    "index-merge",
    "mix",
    "plan",
    "prompts-ask",
    "refine",
    "retrieve",
    "train",
    "validate",
    "verify",
]


class Terminal:
    """A pseudo-terminal that replaces stderr inside a block; pytest would undo it in a fixture."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self._read: list[bytes] = []
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self._before, sys.stderr = sys.stderr, self.stream
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr = self._before

    def _drain(self) -> None:
        try:
            while data := os.read(self._master, 4096):
                self._read.append(data)
        except OSError:  # Linux says so when the other end is closed
            return

    def text(self) -> str:
        """Close the terminal and return what was written."""
        self.stream.close()
        self._reader.join(10)
        os.close(self._master)
        return b"".join(self._read).decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal of 100 columns, with bars drawn immediately."""
    there = Terminal()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RANK", raising=False)
    yield there
    there.stream.close()


def draw(display: Display, **figures: object) -> None:
    """Draw one bar, when the timer has started the display."""
    display.show("bar", "tagging", done=30, total=120, counted=30, of=120, unit="captions", **figures)
    timer = display._timer
    if timer is not None:
        timer.join()


@pytest.mark.parametrize(
    ("columns", "count"),
    [("140", "30/120 captions"), ("100", "30/120 captions"), ("80", "30/120"), ("60", "30/120"), ("40", "30/120")],
)
def test_a_terminal_of_any_width_shows_every_figure(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: str, count: str
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", columns)
    with terminal, Display() as display:
        display.show("bar", "tagging", done=0, total=120, counted=0, of=120, unit="captions")
        now[0] += 10
        draw(display, note="12 tokens, 3 failed")
    text = terminal.text()
    assert all(
        each in text
        for each in ["tagging", "━", "25%", "30/120", "3.0/s", "12 tokens", "3 failed", "10 s", "30 s left"]
    )
    assert count in text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    # "^C" fits into the line of the cursor: in the next line it would keep the bars from being erased.
    assert max(len(line.rstrip("\r")) for line in re.split(r"[\r\n]", plain)) <= int(columns) - 2


def test_ctrl_c_gives_the_cursor_back(terminal: Terminal) -> None:
    def interrupted() -> None:
        with terminal, Display() as display:
            draw(display)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    text = terminal.text()
    assert HIDE in text
    assert text.rfind(SHOW) > text.rfind(HIDE)


def test_a_step_that_is_over_at_once_draws_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    with terminal, Display() as display:
        display(ProgressReport((1, 1), "reading", 0, 10, "rows"))
        display(ProgressReport((1, 1), "reading", 10, 10, "rows", ended=True))
    assert terminal.text() == ""


def test_a_dumb_terminal_and_ranks_but_the_first_draw_no_bars(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with terminal, Display() as display:
        draw(display)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("RANK", "1")
    with terminal, Display() as display:
        draw(display)
    assert terminal.text() == ""


def test_a_pipe_gets_a_line_at_most_every_thirty_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Display() as display:
        for second in range(100):
            now[0] = 1000.0 + second
            display.show("bar", "tagging", done=second, total=200, counted=second, of=200, unit="captions")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  tagging: 30/200 captions (15%), 1.0/s, 30 s elapsed, 3 min left"
    assert len(lines) == 3


def test_quiet_prints_nothing(terminal: Terminal) -> None:
    with terminal, Display(quiet=True) as display:
        draw(display)
        StageBars().note("Building ...")
    assert terminal.text() == ""


def test_a_command_draws_the_steps_of_the_library_code(terminal: Terminal) -> None:
    @with_progress
    def command() -> None:
        with open_step("tagging", 10, "captions") as done:
            draw(progress.display())
            done.reach(5)

    with terminal:
        command()
    assert "tagging" in terminal.text()


def test_the_lines_of_all_stages_are_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """``balance-positives`` was longer than its column."""

    @with_progress
    def command() -> None:
        bars = StageBars()
        for stage in STAGES:
            bars.begin(stage.name, 1)
            bars.end(stage.name, "SUMMARY")

    command()
    lines = [line for line in capsys.readouterr().err.splitlines() if "SUMMARY" in line]
    assert len(lines) == len(STAGES)
    assert len({line.index("SUMMARY") for line in lines}) == 1


def test_a_stage_of_several_parts_counts_the_fractions_of_those_that_run() -> None:
    stage = RunningStage(4)
    stage.done = 1
    stage.record(ProgressReport((7, 1), "tagging", 50, 100, "captions", ("tag", "00001")))
    name, figures = stage.figures()
    assert (name, figures["done"], figures["total"], figures["unit"]) == ("", 1.5, 4, "parts")
    stage.record(ProgressReport((7, 1), "tagging", 100, 100, "captions", ("tag", "00001"), ended=True))
    assert stage.figures()[1]["done"] == 1


def test_a_stage_of_one_part_shows_the_step_inside() -> None:
    stage = RunningStage(1)
    stage.record(ProgressReport((7, 1), "vectors", 50, 100, "pairs", ("index", "all")))
    name, figures = stage.figures()
    assert (name, figures["done"], figures["of"], figures["unit"]) == ("vectors", 50, 100, "pairs")


def test_every_command_that_may_take_long_has_quiet() -> None:
    group = typer.main.get_command(app)
    found = set()
    for name, command in group.commands.items():  # type: ignore[attr-defined]  # a group
        for sub, leaf in getattr(command, "commands", {"": command}).items():
            if any("--quiet" in parameter.opts for parameter in leaf.params):
                found.add(f"{name}-{sub}".strip("-"))
    assert found == set(LONG)


def test_a_run_that_asks_a_model_shows_cost_tokens_and_failures() -> None:
    spent = RequestTotals(requests=7, cached=2, prompt_tokens=1_200, completion_tokens=34)
    figures = progress.model_run_figures(Snapshot(9, 20, spent, 0.25, 3.0, 3.0, failed=4), 5.0)
    assert figures["note"] == "7 billed + 2 cached, 1,234 tokens, $0.250 of $5.00, 4 failed"
