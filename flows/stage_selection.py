"""Which stages a run of a build makes: all that need it, one alone, or all from one on.

``from`` makes stages again that would be taken over: receipts know the code and the inputs, not what lies outside them
(a model's new weights under the old name, a generator of the user's own). Answers of models come from the cache still.
``only`` makes one stage and ends there; what is before it has to stand, so that a look at one stage costs nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.generating_stages import generating_stages, quota_section
from pairwright.flows.stages.balance import balance_stage
from pairwright.flows.stages.rationales import STAGE as RATIONALES
from pairwright.flows.state.receipts import Job, receipt_path, valid_receipt


def stage_names(config: BuildConfig) -> tuple[str, ...]:
    """Return the stages of a build in the order in which they run."""
    made = [this.stage for this in generating_stages(config)]
    return (
        "pairs",
        *(("index",) if config.index_section else ()),
        *(("retrieve",) if config.retrieve else ()),
        *(("fetch",) if config.fetch else ()),
        *("tag", "words"),
        *made,
        *(balance_stage(name) for name in made if quota_section(config, name)),
        *(("refine",) if config.refine else ()),
        *((RATIONALES,) if config.rationales else ()),
        *("shards", "sizes"),
    )


class RequestedStageDone(Exception):  # noqa: N818 - no error: the stage that was asked for is done
    """The one stage that was asked for is done."""


@dataclass(frozen=True)
class StageSelection:
    """What to make; without either, what is not there or no longer fits.

    Attributes:
        only: the one stage to make; empty for all.
        begin: the stage from which on all are made again; empty for none.
    """

    only: str = ""
    begin: str = ""

    def check(self, config: BuildConfig) -> None:
        """Refuse a stage that the build has not.

        Raises:
            UsageError: naming those that it has.
        """
        if self.only and self.begin:
            raise UsageError("--only makes one stage, --from makes that and all that follow. Give one of them.")
        names = stage_names(config)
        for option, stage in (("--only", self.only), ("--from", self.begin)):
            require_known(f"{option}: this build has no such stage:", [stage] if stage else [], names)

    def enter(self, root: Path, jobs: Sequence[Job], done: Sequence[str]) -> None:
        """Prepare a stage: forget what shall be made again.

        Args:
            root: the build directory.
            jobs: of the stage.
            done: the stages before it.

        Raises:
            UsageError: when another stage alone shall be made, and this one is not there for it.
        """
        stage = jobs[0].stage
        if self.begin and self.begin in {stage, *done}:
            for job in jobs:
                receipt_path(root, job.stage, job.part).unlink(missing_ok=True)
        if self.only and stage != self.only and not all(valid_receipt(root, job) for job in jobs):
            raise UsageError(
                f"--only {self.only}: {stage} comes before it, and has to be made first. "
                f"Run with --only {stage}, or without --only."
            )

    def leave(self, stage: str) -> None:
        """End the run where it shall end.

        Raises:
            EndedAsAsked: when ``stage`` is the one that was asked for.
        """
        if stage == self.only:
            raise RequestedStageDone
