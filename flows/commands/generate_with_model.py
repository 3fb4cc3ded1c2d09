"""An LLM generator over any input, without a build: ``pairwright generate --method llm``.

The input is read once before the first request, so that a broken row stops the run before it costs anything and the
remaining time is known. Word statistics are counted while the first requests are under way, unless an earlier run over the
same captions saved them, and answers are checked in worker processes (`flows.llm.check_workers`); the rows do not depend
on their number. Rows are written to ``OUT.partial``, which is renamed to OUT when it is complete and kept when the run is
stopped (Ctrl-C, budget, unreachable server). Answers are in the cache: the same command continues the run.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.readers.pairs import read_pairs
from pairwright.flows.commands.annotation_files import open_balanced_writer, refuse_training_rows
from pairwright.flows.commands.generate import (
    GenerateCounts,
    GenerateRequest,
    check_pool,
    load_materials,
)
from pairwright.flows.commands.pair_inputs import count_pairs, read_counted_pairs
from pairwright.flows.llm.answer_checks import CHECKED_AT_ONCE, in_background
from pairwright.flows.llm.check_workers import PRELOADED, CheckWorkers
from pairwright.flows.llm.failed_rows import failed_rows_path
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.quotas import QuotaPasses, restrict_to_counts
from pairwright.flows.llm.row_run import RowRun
from pairwright.flows.runners.ordered_pool import MAX_JOBS_ALONE, OrderedPool
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.protocols import AnyLLMGenerator, CheckedLLMGenerator
from pairwright.generators.registry import LLMMaterials, Materials, build_llm_generator

FEW_CAPTIONS: Final = 2 * CHECKED_AT_ONCE  # which take less time than processes take to start


def run_llm_generator(
    request: GenerateRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Run an LLM generator over every pair of an input and write the rows.

    Args:
        request: generator, input and output.
        access: the model.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        As `GenerateCounts.result`, with ``llm`` (model, requests, tokens, cost) and ``failed``: number of failed rows, by
        reason, and the file that names them.

    Raises:
        PairwrightError: what stopped the run; finished rows are in ``OUT.partial``.
    """
    refuse_overwriting(request.out, request.read.input, request.pool)
    refuse_training_rows(request.out, request.options.get("types", ()))
    access.check()
    captions = count_pairs(request.read)
    passes = QuotaPasses(
        request.options,
        lambda: (pair.key for batch in read_pairs(request.read) for pair in batch.pairs),
        captions,
        request.seed,
    )
    partial = request.out.with_suffix(f".partial{request.out.suffix}")
    remove_stale_temporaries(partial, failed_rows_path(request.out), request.out)
    many = captions > FEW_CAPTIONS
    with (
        OrderedPool(request.workers, 1 if many else MAX_JOBS_ALONE, preload=PRELOADED, deaf=True) as processes,
        CheckWorkers(processes.executor() if many and processes.workers > 1 else None, processes.workers) as checking,
        RowRun(access, failed_rows_path(request.out), note, watch) as run,
    ):
        check_pool(request)
        tagger = load_tagger()
        materials = in_background(
            lambda: access.materials(load_materials(request, processes, note, access.cache), tagger)
        )
        counts = _run_passes(_Passes(request, access, passes, run, checking, materials), captions, partial, note)
    partial.replace(request.out)
    run.note_failures()
    if missing := passes.missing_message():
        note(missing)
    if verdict := passes.verdict():
        counts.judged(verdict)
    return {
        **counts.result(request.out),
        "llm": {**run.bill(), "captions_per_second": run.rows_per_second},
        "failed": run.failures(),
    }


@dataclass(frozen=True)
class _Passes:
    """What the passes of a run share: its request and model, quotas, the session, checks, and what these need."""

    request: GenerateRequest
    access: ModelAccess
    quotas: QuotaPasses
    run: RowRun
    checking: CheckWorkers
    materials: Future[LLMMaterials]


def _run_passes(shared: _Passes, captions: int, partial: Path, note: Callable[[str], None]) -> GenerateCounts:
    """Ask about all pairs, as often as the quotas want; return the counts of the last pass."""
    request, access = shared.request, shared.access
    counts = GenerateCounts.of(request.generator)
    for number, options in enumerate(shared.quotas):
        if number:
            note(f"Asking about further pairs to replace rejected answers: {shared.quotas.missing_text()}.")
        generator = _generator(request, access, options, shared.materials.result)
        checks = shared.checking.checks(request.generator, options, shared.materials)
        task = PairTask(generator, access, request.seed, request.options, checks)
        counts = GenerateCounts.of(request.generator)
        rows = task.rows(read_counted_pairs(request.read, counts.broken))
        sink = open_balanced_writer(partial, request.generator, request.limits, counts.add, counts.judged)
        shared.run.run(task, rows, captions, sink, unit="captions", partial=partial)
        shared.quotas.counts = counts.tally
    return counts


def _generator(
    request: GenerateRequest, access: ModelAccess, options: Mapping[str, Any], materials: Callable[[], LLMMaterials]
) -> AnyLLMGenerator:
    """Return the generator that asks; only one without a check waits for the statistics of the pool."""
    wordnet = load_wordnet()
    without_pool = Materials(wordnet, load_bundled_statistics(), request.seed)
    generator = build_llm_generator(request.generator, access.materials(without_pool, load_tagger()), options)
    if isinstance(generator, CheckedLLMGenerator):
        return generator
    return build_llm_generator(request.generator, materials(), options)


def plan_llm_generator(request: GenerateRequest, access: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return an estimate of `run_llm_generator`.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work

    def materials() -> LLMMaterials:
        with OrderedPool(request.workers) as processes:
            return access.materials(load_materials(request, processes, note, access.cache), load_tagger())

    keys = (pair.key for batch in read_pairs(request.read) for pair in batch.pairs)
    options = restrict_to_counts(request.options, keys, request.seed)
    generator = _generator(request, access, options, materials)
    pairs = (pair for batch in read_pairs(request.read) for pair in batch.pairs)
    return PairTask(generator, access, request.seed, request.options).estimate(pairs, request.out)
