"""Stage ``captions``: a model writes captions of the images of the input that have none.

Their pairs go to ``captions/all.parquet``, from which the stage ``pairs`` adds them to the others; rejected captions to
``rejected/captions-all.parquet``, each with its reason. The input is read once here and once by the stage ``pairs``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import RowRun
from pairwright.flows.stages.generate import generator_state
from pairwright.flows.stages.generate_with_model import build_model_access
from pairwright.flows.state.inputs import input_state, read_options
from pairwright.flows.state.layout import captions_path, failed_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm_captions import NAME, captioned_pairs
from pairwright.generators.registry import Materials, build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.stages.definition import StageRun

STAGE = "captions"


def captions_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of the stage."""
    config = run.config
    assert config.captions is not None
    access = build_model_access(run)
    read = read_options(config.input, without_caption=True)
    job = CaptionsStage(read, config.captions.model_dump(), config.seed, access, run.engine.progress, run.engine.stop)
    settings = [repr(read), repr(job.options), config.seed, access.stage_identity(), generator_state(NAME)]
    return [run.job(job, settings=settings, state=input_state(config.input), in_build_process=True)]


@dataclass(frozen=True)
class CaptionsStage:
    """The job of the stage.

    Attributes:
        read: of the input, including images without a caption.
        options: of the generator.
        seed: of the build.
        access: the model.
        progress: receives messages and progress.
        stop: ends the stage when it is set; finished rows are in the cache.
    """

    read: ReadOptions
    options: Mapping[str, Any]
    seed: int
    access: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path) -> JobResult:
        """Caption the images and write their pairs; the unit is an attempt.

        Raises:
            PairwrightError: what stopped the stage.
        """
        wordnet = load_wordnet()
        materials = Materials(wordnet, GeneralEnglish(wordnet), self.seed)
        generator = build_llm_generator(NAME, self.access.materials(materials, load_tagger()), self.options)
        counts, pairs, rejected = AnnotationCounts(), list[Pair](), list[Annotation]()

        def take(pair: Pair, rows: Sequence[Annotation]) -> None:
            counts.add(rows)
            pairs.extend(captioned_pairs(pair, rows))
            rejected.extend(row for row in rows if row.status == "rejected")

        failed = failed_path(root, STAGE)
        total = sum(1 for _ in uncaptioned_images(self.read))
        with RowRun(self.access, failed, self.progress.note, partial(self.progress.far, STAGE), self.stop) as run:
            task = PairTask(generator, self.access, self.seed, self.options)
            run.run(task, task.rows(uncaptioned_images(self.read)), total, nullcontext(take))
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        files = [captions_path(root), rejected_path(root, STAGE, "all")]
        PAIRS.write(pairs, files[0])
        ANNOTATIONS.write(rejected, files[1])
        by_type = counts.by_type()
        made, kept = (sum(each[name] for each in by_type.values()) for name in ("made", "kept"))
        facts = {"generator": f"{generator.name}/{generator.version}", "by_type": by_type, "images": total, "llm": bill}
        return JobResult([*files, failed], Counts("attempt", made, kept, counts.reasons()), facts)


def uncaptioned_images(read: ReadOptions) -> Iterator[Pair]:
    """Yield the images of an input that have no caption."""
    for batch in read_pairs(read):
        yield from (pair for pair in batch.pairs if not pair.caption)
