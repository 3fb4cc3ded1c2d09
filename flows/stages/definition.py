"""What a stage is (`Stage`, an entry of `flows/graph.py`), and what its jobs are made from (`StageRun`)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairwright.flows.config.build import BuildConfig
from pairwright.flows.runners.engine import Engine, StageJobs
from pairwright.flows.state.build_versions import IncrementBase
from pairwright.flows.state.layout import part_name
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt, count_parts, json_hash, total_counts
from pairwright.generators.llm.budget import SpendingTotals

if TYPE_CHECKING:
    from pairwright.flows.llm.model_access import ModelAccess


@dataclass(frozen=True)
class StageRun:
    """One stage of one build.

    Attributes:
        config: of the build, its inputs on local disk.
        engine: runs the jobs.
        home: the build directory; the engine may work in ``.next/`` below it.
        base: the version that an incremental build adds to; None for a full build.
        retry_failed: retry the rows that the model failed on.
        bill: spending of all stages so far.
        name: of the stage.
        version: hash of the code and the inputs of the stage, part of the fingerprint of each of its jobs.
    """

    config: BuildConfig
    engine: Engine
    home: Path
    base: IncrementBase | None = None
    retry_failed: bool = False
    bill: SpendingTotals = field(default_factory=SpendingTotals)
    name: str = ""
    version: str = ""

    @property
    def root(self) -> Path:
        """The folder that the jobs write into."""
        return self.engine.root

    @property
    def parts(self) -> list[str]:
        """The names of the parts that the stage ``pairs`` wrote, in order."""
        first = len(self.base.parts) if self.base else 0
        count = count_parts(self.engine.done)
        return [part_name(number) for number in range(first, first + count)]

    @property
    def selected_pairs(self) -> int:
        """Number of the pairs that retrieval and fetching keep."""
        stage = "fetch" if self.config.fetch else "retrieve" if self.config.retrieve else "pairs"
        return total_counts(self.engine.done[stage]).kept

    @property
    def base_state(self) -> str:
        """The state of the version that is added to; empty for a full build."""
        return self.base.state if self.base else ""

    @property
    def increment_base(self) -> IncrementBase:
        """The version that is added to, in a stage of incremental builds."""
        assert self.base is not None
        return self.base

    def receipts(self, stage: str, frozen: Sequence[str] = ()) -> Sequence[Receipt]:
        """Return the receipts of an earlier stage; of one that increments do not repeat, its ``frozen`` files'."""
        if self.base and frozen:
            return [self.base.file(name) for name in frozen if self.base.has_file(name)]
        return self.engine.done.get(stage, ())

    def job(  # noqa: PLR0913 - fields of a job
        self,
        run: Callable[..., JobResult],
        *args: object,
        part: str = "all",
        settings: object = None,
        state: str = "",
        after: Sequence[Receipt] = (),
        in_build_process: bool = False,
        multi_core: bool = False,
        asks: "ModelAccess | None" = None,
        shown_as_one: bool = False,
    ) -> Job:
        """Return a job with its fingerprint.

        Args:
            run: called with the folder that the stage writes into, and ``args``.
            args: frozen sections of the config and names, whose ``repr`` states all of their content.
            part: that the job works on.
            settings: stated in the fingerprint instead of ``args``.
            state: of what the job reads from outside the build (`state/inputs.py`).
            after: of earlier jobs of the stage whose outputs the job reads.
            in_build_process: as in `Job`.
            multi_core: as in `Job`.
            asks: as in `Job`.
            shown_as_one: as in `Job`.
        """
        stated = [repr(args) if settings is None else settings, state]
        if after:
            stated.append([receipt.digest for receipt in after])
        function = getattr(run, "__name__", type(run).__name__)
        fingerprint = json_hash([self.name, part, function, stated, self.version])
        return Job(self.name, part, run, args, fingerprint, in_build_process, multi_core, asks, shown_as_one)

    def job_per_part(self, run: Callable[..., JobResult], *args: object, state: str = "") -> list[Job]:
        """Return a job for each part, which gets its part before ``args``."""
        return [self.job(run, part, *args, part=part, state=state) for part in self.parts]

    def total_job(self, counts: Counts, facts: Mapping[str, Any], after: Sequence[Receipt]) -> Job:
        """Return the last job of a stage whose earlier jobs did the work: it states the counts and facts of the stage."""
        stated = [counts.unit, counts.candidates, counts.kept, dict(counts.rejected), dict(facts)]
        return self.job(_state_totals, counts, dict(facts), settings=stated, after=after)


def _state_totals(_: Path, counts: Counts, facts: Mapping[str, Any]) -> JobResult:
    return JobResult([], counts, facts)


JobBuilder = Callable[[StageRun], StageJobs | Awaitable[StageJobs]]


def _always(_: BuildConfig) -> bool:
    return True


@dataclass(frozen=True)
class Stage:
    """A stage of a build, by what graph, runners and documentation have to know of it.

    Attributes:
        name: of the stage; it names its receipts and files.
        about: what it makes, in half a sentence.
        inputs: names of the stages whose outputs it reads. Its jobs run again when one of these changes.
        unit: what it counts.
        scope: what one job works on: a part of the pairs, the whole set, a shard, or first parts and then the set.
        full: builds its jobs in a full build; None where a full build does without it.
        incremental: builds its jobs in an incremental build; None where that does without it.
        depends_on: what else its jobs depend on, besides code and inputs; for the documentation.
        applies: whether a config asks for it.
        applies_incrementally: the same for incremental builds, where these differ.
        own_part: a job depends on its own part of the inputs only, which its builder puts into the state.
        frozen: the files of the last full build, if it has them, that replace its output in an incremental build.
        in_base: it works in the build directory, not in ``.next/``, and belongs to the last full build.
        leftovers: patterns of files to remove after it, unless a job of this build wrote them.
        passes: groups of jobs over the parts, one after the other.
    """

    name: str
    about: str
    inputs: tuple[str, ...]
    unit: str
    scope: Literal["part", "set", "shard", "part, set"]
    full: JobBuilder | None
    incremental: JobBuilder | None
    depends_on: str = ""
    applies: Callable[[BuildConfig], bool] = _always
    applies_incrementally: Callable[[BuildConfig], bool] | None = None
    own_part: bool = False
    frozen: tuple[str, ...] = ()
    in_base: bool = False
    leftovers: tuple[str, ...] = ()
    passes: int = 1
