"""A maker that asks a model, over any input, without a build: what ``pairwright generate --method llm`` runs.

The input is read through first, so that a broken row stops the run before money is spent, and so that the rest of the
time can be told. What is written while it runs, or when it is stopped (Ctrl-C, a budget, a server that is gone), stands
in ``OUT.partial``; OUT itself appears when it is whole. Answers are kept either way: the same command goes on.

Memory: the rows under way, some thousands, however long the input is.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.reading import read_pairs
from pairwright.flows.annotation_files import refuse_overwriting, refuse_training_rows
from pairwright.flows.balanced_writing import open_balanced
from pairwright.flows.counting import asked_and_given, counted
from pairwright.flows.generating import Request, Work, materials, tagged_pairs
from pairwright.flows.llm import Asking
from pairwright.flows.talking import Talks
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.registry import build_llm_generator


def run_llm_generator(
    request: Request, asking: Asking, note: Callable[[str], None], watch: Callable[[Snapshot], None]
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
    work = Work.of(request.generator)
    captions = sum(len(batch.pairs) for batch in read_pairs(request.read))
    tagger = load_tagger()
    keys = (pair.key for batch in read_pairs(request.read) for pair in batch.pairs)
    options = counted(request.options, keys, request.seed)
    maker = build_llm_generator(request.generator, asking.materials(materials(request, tagger, note), tagger), options)
    run = asking.identity(maker, request.options, request.seed)
    partial = request.out.with_suffix(f".partial{request.out.suffix}")
    stopped: BaseException | None = None
    with FailedRows(failed_path(request.out), run=run, retry=asking.retry_failed) as failed:
        talks = Talks(maker, request.seed, failed)
        with (
            asking.session(watch=watch, say=note) as session,
            open_balanced(partial, request.generator, request.limits, work.add, work.judged) as write,
        ):
            try:
                for pair, rows in talks.hold(session, tagged_pairs(request.read, tagger, work.broken), of=captions):
                    write(pair, rows)
            except (PairwrightError, KeyboardInterrupt) as error:
                stopped = error
        if stopped is not None:
            note(_left(work.captions, captions, partial))
            raise stopped
    partial.replace(request.out)
    if summary := failed.summary(work.captions):
        note(summary)
    if request.options.get("counts"):
        work.judged(asked_and_given(request.options, work.tally))
    totals = {"captions_per_second": round(session.totals().rate, 1)}
    reasons = dict(sorted(failed.counts.items()))
    return {
        **work.result(request.out),
        "llm": {**asking.told(session.totals().spent), **totals},
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


def _left(done: int, of: int, partial: Path) -> str:
    if not done:
        partial.unlink(missing_ok=True)
        return "No caption is done."
    return f"{done:,} of {of:,} captions are done: {partial}. The same command goes on from there."


def failed_path(out: Path) -> Path:
    """Return where the rows of OUT that failed are named."""
    return out.with_suffix(".failed.jsonl")
