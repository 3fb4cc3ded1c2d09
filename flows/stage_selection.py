"""Selection of the stages and jobs that a build runs: ``--only`` one stage, ``--from`` one on, or ``--part`` of the jobs.

``--from`` repeats stages whose receipts are valid: receipts cover code and inputs, not a model's new weights under its
old name, for example. Answers of models still come from the cache. ``--only`` runs one stage and stops; the stages before
it must be done, so that looking at one stage costs nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.flows.state.receipts import Job, receipt_path, valid_receipt


class RequestedStageDone(Exception):  # noqa: N818 - not an error
    """The stage that ``--only`` names is done."""


class OtherPartsLeft(Exception):  # noqa: N818 - not an error
    """The share of this process is done, and a stage needs jobs of other shares.

    Attributes:
        stage: that is not complete.
        jobs: number of its jobs that are not done.
        first: share of the first of them.
    """

    def __init__(self, stage: str, jobs: int, first: "Share") -> None:
        super().__init__(stage, jobs, first)
        self.stage, self.jobs, self.first = stage, jobs, first


@dataclass(frozen=True)
class Share:
    """Share ``number`` of ``of`` of the jobs of each stage: every ``of``-th job; the only job of a stage is share 1's.

    Attributes:
        number: from 1.
        of: number of shares.
        wait: seconds to wait for other shares before the process ends.
    """

    number: int
    of: int
    wait: float = 0.0

    @classmethod
    def parse(cls, written: str, wait: float = 0.0) -> Self:
        """Return the share that is written as I/N.

        Raises:
            UsageError: for another form, or numbers out of range.
        """
        number, slash, of = written.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise UsageError(f"--part {written}: give I/N with 1 <= I <= N, such as 3/16.")
        return cls(int(number), int(of), wait)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, position: int) -> bool:
        """Return whether the job at this position, from 0, belongs to the share."""
        return position % self.of == self.number - 1

    def left(self, stage: str, done: Sequence[bool]) -> OtherPartsLeft | None:
        """Return what of a stage is left to other shares; None if all jobs are done."""
        missing = [position for position, each in enumerate(done) if not each]
        return OtherPartsLeft(stage, len(missing), Share(missing[0] % self.of + 1, self.of)) if missing else None


@dataclass(frozen=True)
class StageSelection:
    """The stages to run; by default those without a valid receipt.

    Attributes:
        only: the only stage to run; empty for all.
        begin: the first of the stages to repeat; empty for none.
        share: the jobs to run; None for all.
    """

    only: str = ""
    begin: str = ""
    share: Share | None = None

    def check(self, names: Sequence[str]) -> None:
        """Check the selection against the names of the stages of a build.

        Raises:
            UsageError: for an unknown stage, or options that exclude each other.
        """
        if self.share and (self.only or self.begin):
            raise UsageError(f"--part and {'--only' if self.only else '--from'} are mutually exclusive.")
        if self.only and self.begin:
            raise UsageError("--only and --from are mutually exclusive.")
        for option, stage in (("--only", self.only), ("--from", self.begin)):
            require_known(f"{option}: this build has no such stage:", [stage] if stage else [], names)

    def begin_stage(self, root: Path, stage: str, jobs: Sequence[Job], done: Sequence[str]) -> None:
        """Remove the receipts of a stage that is to be repeated.

        Args:
            root: the build directory.
            stage: that begins.
            jobs: of the stage.
            done: the stages before it.

        Raises:
            UsageError: when only a later stage is to run, and this one is not done.
        """
        if self.begin and self.begin in {stage, *done}:
            for job in jobs:
                receipt_path(root, job.stage, job.part).unlink(missing_ok=True)
        if self.only and stage != self.only and not all(valid_receipt(root, job) for job in jobs):
            made = all(receipt_path(root, job.stage, job.part).is_file() for job in jobs)
            state = "is out of date: its input, settings or code have changed" if made else "is not done"
            raise UsageError(
                f"--only {self.only}: the earlier stage {stage} {state}. "
                f"Run with --only {stage} first, or without --only."
            )

    def end_stage(self, stage: str) -> None:
        """End the run after the requested stage.

        Raises:
            RequestedStageDone: when ``stage`` is the requested one.
        """
        if stage == self.only:
            raise RequestedStageDone
