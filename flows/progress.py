"""Progress of a build: its listener."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairwright.datasets.progress import ProgressReport
    from pairwright.generators.llm.session import Snapshot


class BuildProgress:
    """Listener of a build; this one ignores everything."""

    def begin(self, stage: str, jobs: int) -> None:
        """Begin a stage of so many jobs; called for each of its groups of jobs."""

    def advance(self, stage: str, *, reused: bool) -> None:
        """Count a job as done, by this run or, if ``reused``, by an earlier one."""

    def report_step(self, report: "ProgressReport") -> None:
        """Report the progress of a step inside a job or of the build itself; called from any thread."""

    def report_model(self, stage: str, now: "Snapshot") -> None:
        """Report the progress of a stage that asks a model; called from another thread, several times per second."""

    def end(self, stage: str, summary: str) -> None:
        """End a stage; ``summary`` is a short line of counts."""

    def note(self, message: str) -> None:
        """Report a message."""
