"""Bars of a build: one line per stage, and a bar for the running one."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pairwright.cli.output.progress import display, model_run_figures
from pairwright.datasets.progress import ProgressReport
from pairwright.flows.progress import BuildProgress

if TYPE_CHECKING:
    from pairwright.generators.llm.session import Snapshot


@cache
def _name_width() -> int:
    from pairwright.flows.graph import STAGES  # slow to import; a running build has it

    return max(len(stage.name) for stage in STAGES)


class StageBars(BuildProgress):
    """Listener of a build that draws its bars.

    A stage of one job shows the step inside it; a stage of several shows parts, with fractions of the running ones.
    """

    def __init__(self) -> None:
        self._display = display()
        self._stages: dict[str, RunningStage] = {}

    def begin(self, stage: str, jobs: int) -> None:
        """Open the bar of a stage, or add a further group of jobs to it."""
        if stage in self._stages:
            self._stages[stage].jobs += jobs
        else:
            self._stages[stage] = RunningStage(jobs)
        self._draw(stage)

    def advance(self, stage: str, *, reused: bool) -> None:
        """Count one job as done."""
        current = self._stages[stage]
        current.done += 1
        current.reused += reused
        self._draw(stage)

    def report_step(self, report: ProgressReport) -> None:
        """Update the bar of a stage by a report from one of its jobs."""
        if not report.owner:
            self._display(report)
            return
        stage, _ = report.owner
        if stage in self._stages:
            self._stages[stage].record(report)
            self._draw(stage)

    def report_model(self, stage: str, now: "Snapshot") -> None:
        """Update the bar of a stage that asks a model."""
        self._display.show(stage, stage, **model_run_figures(now))

    def end(self, stage: str, summary: str) -> None:
        """Close the bar and print the stage's line."""
        ended = self._stages.pop(stage)
        self._display.end(stage)
        earlier = f" ({ended.reused} of {ended.jobs} parts from an earlier run)" if ended.reused else ""
        self.note(f"  {stage:<{_name_width()}}{time.monotonic() - ended.started:6.1f} s  {summary}{earlier}")

    def note(self, message: str) -> None:
        """Print one line."""
        if not self._display.quiet:
            self._display.note(message)

    def _draw(self, stage: str) -> None:
        name, figures = self._stages[stage].figures()
        self._display.show(stage, f"{stage}: {name}" if name else stage, **figures)


@dataclass
class RunningStage:
    """State of a running stage."""

    jobs: int
    done: int = 0
    reused: int = 0
    counted: int = 0
    started: float = field(default_factory=time.monotonic)
    open: dict[tuple[int, int], ProgressReport] = field(default_factory=dict)

    def record(self, report: ProgressReport) -> None:
        """Record the report of a step."""
        if report.ended:
            self.open.pop(report.id, None)
            self.counted += report.done
        else:
            self.open[report.id] = report

    def figures(self) -> tuple[str, Mapping[str, Any]]:
        """Return the name of the step and the figures of the bar."""
        steps = list(self.open.values())
        if self.jobs == 1 and steps:
            now = steps[-1]
            return now.name, {
                "done": now.done,
                "total": now.total,
                "counted": now.done,
                "of": now.total,
                "unit": now.unit,
            }
        within = sum(min(1.0, each.done / each.total) for each in steps if each.total)
        return "", {
            "done": min(self.jobs, self.done + within),
            "total": self.jobs,
            "counted": self.done,
            "of": self.jobs,
            "unit": "parts" if self.jobs > 1 else "part",
        }
