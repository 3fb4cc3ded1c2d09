"""A maker that asks a model, over any input, without a build: what ``pairwright generate --method llm`` runs.

The input is read through first, so that a broken row stops the run before money is spent, and so that the rest of the
time can be told. What is written while it runs, or when it is stopped (Ctrl-C, a budget, a server that is gone), stands
in ``OUT.partial``; OUT itself appears when it is whole. Answers are kept either way: the same command goes on.

Memory: the rows under way, some thousands, however long the input is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.readers.pairs import read_pairs
from pairwright.flows.commands.annotation_files import open_balanced_writer, refuse_training_rows
from pairwright.flows.commands.generate import (
    GenerateCounts,
    GenerateRequest,
    count_pairs,
    load_materials,
    tagged_pairs,
)
from pairwright.flows.llm.context import ContextProvider
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.quotas import QuotaPasses, missing_message, quota_verdict
from pairwright.flows.llm.steps import PairSteps
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import Session, Snapshot
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import build_llm_generator


def run_llm_generator(
    request: GenerateRequest, asking: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Let a maker ask its model about every pair of an input, and write the rows.

    Args:
        request: which maker, over what, into which file.
        asking: of which model, and how.
        note: told in one line what concerns the whole run.
        watch: told how far it is.

    Returns:
        As `flows.generating.Work.result`, with ``llm`` (model, requests, tokens, cost) and ``failed``: how many rows
        failed, the file that names them, and why.

    Raises:
        PairwrightError: what stopped the run, in one line; what is done stands in ``OUT.partial``.
    """
    refuse_overwriting(request.out, request.read.input, request.pool)
    refuse_training_rows(request.out, request.options.get("types", ()))
    asking.check()
    captions = count_pairs(request.read)
    tagger = load_tagger()
    made = asking.materials(load_materials(request, note), tagger)
    filling = QuotaPasses(
        request.options, lambda: (pair.key for batch in read_pairs(request.read) for pair in batch.pairs), request.seed
    )
    partial = request.out.with_suffix(f".partial{request.out.suffix}")
    remove_stale_temporaries(partial, failed_rows_path(request.out), request.out)
    with asking.session(watch=watch, say=note) as session:
        run = _GenerationPass(request, asking, session, tagger, partial, captions, note)
        passed = RequestTotals()
        work, failed = run(build_llm_generator(request.generator, made, filling.now()), retry=asking.retry_failed)
        while filling.goes_on(work.tally, captions):
            passed = session.totals().spent
            note(f"Rejected answers are made up for from further pairs: {_told(filling.missing(work.tally))}.")
            work, failed = run(build_llm_generator(request.generator, made, filling.now()), retry=False)
        totals = {"captions_per_second": round(session.totals().rate, 1)}
        spent = asking.told(session.totals().spent.since(passed))  # the last pass rests on all answers
    partial.replace(request.out)
    for told in (failed.summary(work.captions), missing_message(filling.missing(work.tally))):
        if told:
            note(told)
    if request.options.get("counts"):
        work.judged(quota_verdict(request.options, work.tally))
    reasons = dict(sorted(failed.counts.items()))
    return {
        **work.result(request.out),
        "llm": {**spent, **totals},
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


@dataclass(frozen=True)
class _GenerationPass:
    """One pass over all pairs, which writes ``partial`` and the file of failed rows anew."""

    request: GenerateRequest
    asking: ModelAccess
    session: Session
    tagger: Tagger
    partial: Path
    captions: int
    note: Callable[[str], None]

    def __call__(self, maker: LLMGenerator, *, retry: bool) -> tuple[GenerateCounts, FailedRows]:
        request, work = self.request, GenerateCounts.of(self.request.generator)
        run = self.asking.identity(maker, request.options, request.seed)
        stopped: BaseException | None = None
        with (
            FailedRows(failed_rows_path(request.out), run=run, retry=retry) as failed,
            ContextProvider(self.asking.context) as given,
        ):
            talks = PairSteps(maker, request.seed, failed, given)
            pairs = tagged_pairs(request.read, self.tagger, work.broken)
            with open_balanced_writer(self.partial, request.generator, request.limits, work.add, work.judged) as write:
                try:
                    for pair, rows in talks.hold(self.session, pairs, of=self.captions):
                        write(pair, rows)
                except (PairwrightError, KeyboardInterrupt) as error:
                    stopped = error
            if stopped is not None:
                done = work.captions if failed.counts.total() < work.captions else 0
                self.note(_left(done, self.captions, self.partial))
                raise stopped
        return work, failed


def _told(missing: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(missing.items()))


def _left(done: int, of: int, partial: Path) -> str:
    if not done:
        partial.unlink(missing_ok=True)
        return "No caption is done."
    return f"{done:,} of {of:,} captions are done: {partial}. The same command goes on from there."


def failed_rows_path(out: Path) -> Path:
    """Return where the rows of OUT that failed are named."""
    return out.with_suffix(".failed.jsonl")
