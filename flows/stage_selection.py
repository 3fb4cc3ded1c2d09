"""Selection of the stages that a build runs: ``--only`` one, or ``--from`` one on.

``--from`` repeats stages whose receipts are valid: receipts cover code and inputs, not a model's new weights under its
old name, for example. Answers of models still come from the cache. ``--only`` runs one stage and stops; the stages before
it must be done, so that looking at one stage costs nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.flows.state.receipts import Job, receipt_path, valid_receipt


class RequestedStageDone(Exception):  # noqa: N818 - not an error
    """The stage that ``--only`` names is done."""


@dataclass(frozen=True)
class StageSelection:
    """The stages to run; by default those without a valid receipt.

    Attributes:
        only: the only stage to run; empty for all.
        begin: the first of the stages to repeat; empty for none.
    """

    only: str = ""
    begin: str = ""

    def check(self, names: Sequence[str]) -> None:
        """Check the selection against the names of the stages of a build.

        Raises:
            UsageError: for an unknown stage, or both options.
        """
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
            raise UsageError(
                f"--only {self.only}: the earlier stage {stage} is not done. "
                f"Run with --only {stage} first, or without --only."
            )

    def end_stage(self, stage: str) -> None:
        """End the run after the requested stage.

        Raises:
            RequestedStageDone: when ``stage`` is the requested one.
        """
        if stage == self.only:
            raise RequestedStageDone
