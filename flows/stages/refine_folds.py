"""Jobs of stage ``refine`` for method ``reference`` that assign images to folds, and that fit the models of the folds.

A pool of one batch has one job that assigns images; a larger one has jobs for its batches of parts and for buckets of
hashes (`filters/refinement/fold_assignment.py`). A fold is one job; in a larger pool it has jobs for ranges of keys of its
counts (`filters/refinement/fold_sums.py`).
"""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pairwright.filters.refinement.fold_assignment import (
    assign_batch,
    assign_folds,
    count_buckets,
    gather_batch,
    list_batch,
    number_all,
    split_batches,
    unite_bucket,
)
from pairwright.filters.refinement.fold_sums import count_ranges, finish_fold, fit_fold, sum_range
from pairwright.filters.refinement.two_scorers import RefineOptions
from pairwright.flows.state.layout import part_name
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

FOLDER: Final = "refinement"  # of the steps of method ``reference``


def step(outputs: Sequence[Path], facts: Mapping[str, Any] | None = None) -> JobResult:
    """Return the result of a step, which counts nothing."""
    return JobResult(outputs, Counts("negative"), facts or {})


def fold_jobs(
    run: "StageRun", options: RefineOptions, texts: Sequence[Receipt]
) -> Generator[Sequence[Job], tuple[Receipt, ...], dict[str, Receipt]]:
    """Yield the steps of `filters/refinement/fold_assignment.py`; return the receipt with the folds of each part."""
    batches = split_batches(run.parts, [receipt.facts["texts"] for receipt in texts])
    if len(batches) == 1:
        (folds,) = yield [run.job(assign_all_folds, run.parts, options, part="folds", after=texts)]
        return dict.fromkeys(run.parts, folds)
    named = {part_name(number): batch for number, batch in enumerate(batches)}
    names = list(named)
    encoded = dict(zip(run.parts, texts, strict=True))
    listed = yield [
        run.job(list_names, name, batch, part=f"names-{name}", after=[encoded[part] for part in batch])
        for name, batch in named.items()
    ]
    (numbered,) = yield [run.job(number_names, names, options, part="numbers", after=listed)]
    gathered = yield [
        run.job(gather_hashes, name, batch, part=f"hashes-{name}", after=[numbered, receipt])
        for (name, batch), receipt in zip(named.items(), listed, strict=True)
    ]
    buckets = count_buckets(sum(receipt.facts["forms"] for receipt in gathered))
    united = yield [
        run.job(unite_hashes, named, bucket, buckets, part=f"answers-{bucket}", after=gathered)
        for bucket in range(buckets)
    ]
    assigned = yield [
        run.job(assign_parts, names, name, batch, buckets, part=f"folds-{name}", after=united)
        for name, batch in named.items()
    ]
    return {part: receipt for batch, receipt in zip(batches, assigned, strict=True) for part in batch}


def model_jobs(
    run: "StageRun", options: RefineOptions, counts: Sequence[Receipt]
) -> Generator[Sequence[Job], tuple[Receipt, ...], tuple[Receipt, ...]]:
    """Yield the steps of `filters/refinement/fold_sums.py`; return the last receipt of each fold."""
    folds, parts = range(options.folds), run.parts
    ranges = count_ranges(sum(receipt.facts["entries"] for receipt in counts))
    if ranges == 1:
        return (yield [run.job(fit_models, parts, fold, part=f"fold-{fold}", after=counts) for fold in folds])
    summed = yield [
        run.job(sum_counts_of, parts, fold, number, ranges, part=f"sums-{fold}-{number}", after=counts)
        for fold in folds
        for number in range(ranges)
    ]
    return (yield [run.job(finish_models, fold, ranges, part=f"fold-{fold}", after=summed) for fold in folds])


def assign_all_folds(root: Path, parts: list[str], options: RefineOptions) -> JobResult:
    """Assign all images to folds, of a pool that is one batch."""
    return step(assign_folds(root / FOLDER, parts, options))


def list_names(root: Path, batch: str, parts: list[str]) -> JobResult:
    """List the names of images and the words of a batch of parts."""
    return step(list_batch(root / FOLDER, batch, parts))


def number_names(root: Path, batches: list[str], options: RefineOptions) -> JobResult:
    """Assign all images to folds, and number all words."""
    return step(number_all(root / FOLDER, batches, options))


def gather_hashes(root: Path, batch: str, parts: list[str]) -> JobResult:
    """List the hashes of a batch of parts; the fact is the number of texts of its rows."""
    outputs, forms = gather_batch(root / FOLDER, batch, parts)
    return step(outputs, {"forms": forms})


def unite_hashes(root: Path, batches: dict[str, list[str]], bucket: int, buckets: int) -> JobResult:
    """Find the folds of each text, and repeated captions, in a bucket of the hashes of all parts."""
    return step(unite_bucket(root / FOLDER, batches, bucket, buckets))


def assign_parts(root: Path, batches: list[str], batch: str, parts: list[str], buckets: int) -> JobResult:
    """Store the folds of the rows and captions of a batch of parts."""
    return step(assign_batch(root / FOLDER, batches, batch, parts, buckets))


def fit_models(root: Path, parts: list[str], fold: int) -> JobResult:
    """Fit the models that judge the rows of a fold; the fact is whether it has captions to train on."""
    outputs, trained = fit_fold(root / FOLDER, parts, fold)
    return step(outputs, {"trained": trained})


def sum_counts_of(root: Path, parts: list[str], fold: int, number: int, ranges: int) -> JobResult:
    """Sum the counts of a fold in one range of keys."""
    return step(sum_range(root / FOLDER, parts, fold, number, ranges))


def finish_models(root: Path, fold: int, ranges: int) -> JobResult:
    """Finish the models that judge the rows of a fold; the fact is whether it has captions to train on."""
    outputs = finish_fold(root / FOLDER, fold, ranges)
    return step(outputs, {"trained": bool(outputs)})
