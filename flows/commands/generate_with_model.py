"""An LLM generator over any input, without a build: ``pairwright generate --method llm``.

The input is read once before the first request, so that a broken row stops the run before it costs anything and the
remaining time is known. Rows are written to ``OUT.partial``, which is renamed to OUT when it is complete and kept when the
run is stopped (Ctrl-C, budget, unreachable server). Answers are in the cache: the same command continues the run.
"""

from collections.abc import Callable
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.readers.pairs import read_pairs
from pairwright.flows.commands.annotation_files import open_balanced_writer, refuse_training_rows
from pairwright.flows.commands.generate import (
    GenerateCounts,
    GenerateRequest,
    count_pairs,
    load_materials,
    read_counted_pairs,
)
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.quotas import QuotaPasses, restrict_to_counts
from pairwright.flows.llm.row_run import RowRun, failed_rows_path
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.registry import build_llm_generator


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
    tagger = load_tagger()
    materials = access.materials(load_materials(request, note), tagger)
    passes = QuotaPasses(
        request.options,
        lambda: (pair.key for batch in read_pairs(request.read) for pair in batch.pairs),
        captions,
        request.seed,
    )
    partial = request.out.with_suffix(f".partial{request.out.suffix}")
    remove_stale_temporaries(partial, failed_rows_path(request.out), request.out)
    counts = GenerateCounts.of(request.generator)
    with RowRun(access, failed_rows_path(request.out), note, watch) as run:
        for number, options in enumerate(passes):
            if number:
                note(f"Asking about further pairs to replace rejected answers: {passes.missing_text()}.")
            generator = build_llm_generator(request.generator, materials, options)
            task = PairTask(generator, access, request.seed, request.options)
            counts = GenerateCounts.of(request.generator)
            rows = task.rows(read_counted_pairs(request.read, counts.broken))
            sink = open_balanced_writer(partial, request.generator, request.limits, counts.add, counts.judged)
            run.run(task, rows, captions, sink, unit="captions", partial=partial)
            passes.counts = counts.tally
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


def plan_llm_generator(request: GenerateRequest, access: ModelAccess, note: Callable[[str], None]) -> StagePlan:
    """Return an estimate of `run_llm_generator`.

    Raises:
        PairwrightError: the run could not start.
    """
    access.settings()  # reports invalid settings before any work
    tagger = load_tagger()
    materials = access.materials(load_materials(request, note), tagger)
    keys = (pair.key for batch in read_pairs(request.read) for pair in batch.pairs)
    options = restrict_to_counts(request.options, keys, request.seed)
    generator = build_llm_generator(request.generator, materials, options)
    pairs = (pair for batch in read_pairs(request.read) for pair in batch.pairs)
    return PairTask(generator, access, request.seed).estimate(pairs)
