"""Progress of a build, told to whoever watches: the command line draws it, a test or a library user ignores it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pairwright.datasets.progress import ProgressReport
    from pairwright.generators.llm.session import Snapshot


class BuildProgress(Protocol):
    """Hears what a build is doing."""

    def begin(self, stage: str, jobs: int) -> None:
        """A stage starts, with so many jobs."""
        ...

    def advance(self, stage: str, *, reused: bool) -> None:
        """One job of the stage is done; ``reused`` when an earlier run had done it."""
        ...

    def inside(self, report: "ProgressReport") -> None:
        """A step inside a job has come so far, or a step of the build itself; called from any thread."""
        ...

    def far(self, stage: str, now: "Snapshot") -> None:
        """A stage that asks a model has come so far; called from another thread, some times a second."""
        ...

    def end(self, stage: str, summary: str) -> None:
        """The stage is done; ``summary`` is a short line of counts."""
        ...

    def note(self, message: str) -> None:
        """Something worth a line of its own."""
        ...


class SilentProgress:
    """The progress that nobody watches."""

    def begin(self, stage: str, jobs: int) -> None:
        """Say nothing."""

    def advance(self, stage: str, *, reused: bool) -> None:
        """Say nothing."""

    def inside(self, report: "ProgressReport") -> None:
        """Say nothing."""

    def far(self, stage: str, now: "Snapshot") -> None:
        """Say nothing."""

    def end(self, stage: str, summary: str) -> None:
        """Say nothing."""

    def note(self, message: str) -> None:
        """Say nothing."""
