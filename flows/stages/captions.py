"""Stage ``captions``: a model writes captions of the images of the input that have none.

A job per piece of the input writes ``captions/PIECE.parquet`` and, with their reasons, rejected captions into
``rejected/captions-PIECE.parquet``; then ``captions/all.parquet`` is made, from which the stage ``pairs`` adds its pairs to
the others. With the Batch API and local models it is one job. The input is read once here and once by the stage
``pairs``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.pieces import Piece, PieceSummary, plan_pieces, read_piece
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.remote.store_path import to_path
from pairwright.flows.llm.answer_client import AnswerSource, ServiceModel
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import RowRun
from pairwright.flows.stages.generate import generator_state
from pairwright.flows.stages.generate_with_model import (
    SET_UP,
    ModelTotals,
    build_model_access,
    ignore_message,
    jobs_that_ask,
    run_part,
    write_answers,
)
from pairwright.flows.state.inputs import files_state, input_state, read_options
from pairwright.flows.state.layout import captions_path, failed_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm_captions import NAME, captioned_pairs
from pairwright.generators.protocols import AnyLLMGenerator
from pairwright.generators.registry import Materials, build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.progress import BuildProgress
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

STAGE = "captions"


def captions_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of the stage over the whole input."""
    access, task = build_model_access(run), _Captioning.of(run.config)
    job = CaptionsStage(task, access, run.engine.progress, run.engine.stop)
    settings = [repr(task), access.stage_identity(), generator_state(NAME)]
    return [run.job(job, settings=settings, state=input_state(run.config.input), in_build_process=True)]


def captions_part_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of the stage: one per piece of the input, then one that puts their pairs into one file."""
    access = model_access_for_build(run.config.llm, run.home, run.bill, seed=run.config.seed)
    task = _Captioning.of(run.config)
    pieces = {part_name(number): piece for number, piece in enumerate(plan_pieces(task.read))}
    identity = [repr(task), access.stage_identity(), generator_state(NAME)]
    instances = run.config.input.instances
    states = {
        part: [*identity, files_state([to_path(stretch.file) for stretch in piece.stretches], instances)]
        for part, piece in pieces.items()
    }
    return jobs_that_ask(
        run, access, states, lambda served, part: CaptionsPart(task, pieces[part], served, len(pieces)), CaptionTotals
    )


@dataclass(frozen=True)
class _Captioning:
    """Which images are captioned, and how.

    Attributes:
        read: of the input, including images without a caption.
        options: of the generator.
        seed: of the build.
    """

    read: ReadOptions
    options: Mapping[str, Any]
    seed: int

    @classmethod
    def of(cls, config: "BuildConfig") -> Self:
        """Return what a build captions."""
        assert config.captions is not None
        return cls(read_options(config.input, without_caption=True), config.captions.model_dump(), config.seed)

    def generator(self, access: ModelAccess) -> AnyLLMGenerator:
        """Return the generator of captions."""
        wordnet = load_wordnet()
        materials = Materials(wordnet, GeneralEnglish(wordnet), self.seed)
        return build_llm_generator(NAME, access.materials(materials, load_tagger()), self.options)

    def write(self, root: Path, part: str, done: Sequence[tuple[Pair, Sequence[Annotation]]]) -> list[Path]:
        """Write the captioned pairs and the rejected captions of a part; return the files."""
        files = [captions_path(root, part), rejected_path(root, STAGE, part)]
        PAIRS.write([each for pair, rows in done for each in captioned_pairs(pair, rows)], files[0])
        ANNOTATIONS.write([row for _, rows in done for row in rows if row.status == "rejected"], files[1])
        return files


def _result(
    outputs: Sequence[Path],
    done: Sequence[tuple[Pair, Sequence[Annotation]]],
    generator: AnyLLMGenerator,
    bill: Mapping[str, Any],
) -> JobResult:
    counts = AnnotationCounts()
    for _, rows in done:
        counts.add(rows)
    by_type = counts.by_type()
    made, kept = (sum(each[name] for each in by_type.values()) for name in ("made", "kept"))
    name = f"{generator.name}/{generator.version}"
    facts = {"generator": name, "by_type": by_type, "images": len(done), "llm": bill}
    return JobResult(outputs, Counts("attempt", made, kept, counts.reasons()), facts)


@dataclass(frozen=True)
class CaptionsPart:
    """The job of a piece of the input.

    Attributes:
        task: what is captioned.
        piece: of the input.
        access: the model, without its address.
        pieces: number of pieces.
    """

    task: _Captioning
    piece: Piece
    access: ModelAccess
    pieces: int

    def __call__(self, root: Path, part: str) -> JobResult:
        """Caption the images of the piece and write their pairs; the unit is an attempt.

        Raises:
            PairwrightError: what stopped the job.
        """
        service = ServiceModel(AnswerSource(root, STAGE, part))
        access = self.access.for_job(service)
        with SET_UP:
            batches = read_piece(self.task.read, self.piece, PieceSummary())
            images = [pair for batch in batches for pair in batch.pairs if not pair.caption]
            generator = self.task.generator(access)
        done = list[tuple[Pair, Sequence[Annotation]]]()
        asked = PairTask(generator, access, self.task.seed, self.task.options)
        with RowRun(access, failed_path(root, STAGE, part), ignore_message, service.report) as run:
            rows, take = asked.rows(images), nullcontext(lambda pair, rows: done.append((pair, rows)))
            bill = run_part(run, service, self.pieces, len(images), lambda: run.run(asked, rows, len(images), take))
        outputs = [*write_answers(root, STAGE, part, service), *self.task.write(root, part, done)]
        return _result(outputs, done, generator, bill)


@dataclass(frozen=True)
class CaptionTotals(ModelTotals):
    """The last job of the stage."""

    def __call__(self, root: Path) -> JobResult:
        """Write the captioned pairs of all pieces, each key once, and return counts and facts of the stage."""
        pairs = pl.concat([PAIRS.read_frame(captions_path(root, part)) for part in self.facts])
        PAIRS.write_frame(pairs.unique("key", keep="first", maintain_order=True), captions_path(root))
        return replace(super().__call__(root), outputs=[captions_path(root)])


@dataclass(frozen=True)
class CaptionsStage:
    """The job over the whole input.

    Attributes:
        task: what is captioned.
        access: the model.
        progress: receives messages and progress.
        stop: ends the stage when it is set; finished rows are in the cache.
    """

    task: _Captioning
    access: ModelAccess
    progress: "BuildProgress"
    stop: Event

    def __call__(self, root: Path) -> JobResult:
        """Caption the images and write their pairs; the unit is an attempt.

        Raises:
            PairwrightError: what stopped the stage.
        """
        generator, done = self.task.generator(self.access), list[tuple[Pair, Sequence[Annotation]]]()
        failed, read = failed_path(root, STAGE), self.task.read
        total = sum(1 for _ in uncaptioned_images(read))
        with RowRun(
            self.access, failed, self.progress.note, partial(self.progress.report_model, STAGE), self.stop
        ) as run:
            asked = PairTask(generator, self.access, self.task.seed, self.task.options)
            take = nullcontext(lambda pair, rows: done.append((pair, rows)))
            run.run(asked, asked.rows(uncaptioned_images(read)), total, take)
            bill = {**run.bill(), "failed": run.failed.counts.total()}
        return _result([*self.task.write(root, "all", done), failed], done, generator, bill)


def uncaptioned_images(read: ReadOptions) -> Iterator[Pair]:
    """Yield the images of an input that have no caption."""
    for batch in read_pairs(read):
        yield from (pair for pair in batch.pairs if not pair.caption)
