"""Plan (`steps.py`) of the reference method over a pool of any size: its steps, most of which read one part.

The result is that of `refine.refine_rows` for the same rows with all captions as its pool. `parts.encode_part` stores the
texts of each part as numbers of words. Then there are these steps, each of which reads files of earlier ones:

1. `fold_assignment.py`: the fold of each group, the number of each word, and which folds may not train on which
   caption. It reads hashes and names, no texts. A pool of one batch of parts has one step.
2. `parts.count_part`: the word statistics of a part's captions (`language_models.py`).
3. `fold_sums.py`: both models of a fold, which are the sums of all statistics, in ranges of keys if there are many.
4. `parts.score_part`: two numbers for each row of a part.
5. `cell_quotas.py`: the decision from these two numbers, the id and the type of each row.
"""

from collections.abc import Sequence
from pathlib import Path

from pairwright.filters.refinement.reference.cell_quotas import (
    BalancedParts,
    Grids,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
)
from pairwright.filters.refinement.reference.fold_assignment import (
    assign_batch,
    assign_folds,
    count_buckets,
    gather_batch,
    list_batch,
    number_all,
    split_batches,
    unite_bucket,
)
from pairwright.filters.refinement.reference.fold_sums import (
    count_entries,
    count_ranges,
    finish_fold,
    fit_fold,
    sum_range,
)
from pairwright.filters.refinement.reference.parts import count_part, score_part
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.filters.refinement.steps import Facts, Plan, Step, StepResult

BALANCE = "balance"  # the step whose files decide


def name_texts(part: str) -> str:
    """Return the name of the step that stores the texts of a part, which comes before the plan."""
    return f"texts-{part}"


def plan_reference(parts: Sequence[str], texts: Sequence[int], options: RefineOptions) -> Plan[BalancedParts]:
    """Plan the refinement of rows that `parts.encode_part` stored; its last step is `BALANCE`.

    Args:
        parts: names of all parts.
        texts: number of texts of each part.
        options: of the refinement.
    """
    assigned = yield from _plan_folds(parts, texts, options)
    names = {part: f"counts-{part}" for part in parts}
    counts = yield [Step(names[part], count_words, (part,), after=(assigned[part],)) for part in parts]
    models = yield from _plan_models(parts, options.folds, sum(each["entries"] for each in counts), (*names.values(),))
    fitted = [fold for fold, each in enumerate(models) if each["trained"]]
    grids = choose_grids((each["rows"] for each in counts), fitted, options)
    fits = tuple(f"fold-{fold}" for fold in range(options.folds))
    yield [Step(f"gaps-{part}", place_part, (part, fitted, grids, options), after=fits) for part in parts]
    yield [Step(BALANCE, limit_rows, (list(parts),), after=tuple(f"gaps-{part}" for part in parts))]
    return BalancedParts(grids, options)


def _plan_folds(parts: Sequence[str], texts: Sequence[int], options: RefineOptions) -> Plan[dict[str, str]]:
    """Plan the assignment of images to folds; the result is the name of the step with the folds of each part."""
    batches = {f"{number:05d}": batch for number, batch in enumerate(split_batches(parts, texts))}
    if len(batches) == 1:
        yield [Step("folds", assign_folds, (list(parts), options), after=tuple(map(name_texts, parts)))]
        return dict.fromkeys(parts, "folds")
    names = list(batches)
    yield [
        Step(f"names-{name}", list_batch, (name, batch), after=tuple(map(name_texts, batch)))
        for name, batch in batches.items()
    ]
    yield [Step("numbers", number_all, (names, options), after=tuple(f"names-{name}" for name in names))]
    gathered = yield [
        Step(f"hashes-{name}", gather_batch, (name, batch), after=("numbers", f"names-{name}"))
        for name, batch in batches.items()
    ]
    buckets = count_buckets(sum(each["forms"] for each in gathered))
    hashes, answers = tuple(f"hashes-{name}" for name in names), [f"answers-{bucket}" for bucket in range(buckets)]
    yield [
        Step(answer, unite_bucket, (batches, bucket, buckets), after=hashes) for bucket, answer in enumerate(answers)
    ]
    yield [
        Step(f"folds-{name}", assign_batch, (names, name, batch, buckets), after=tuple(answers))
        for name, batch in batches.items()
    ]
    return {part: f"folds-{name}" for name, batch in batches.items() for part in batch}


def _plan_models(parts: Sequence[str], folds: int, entries: int, counts: tuple[str, ...]) -> Plan[Sequence[Facts]]:
    """Plan the models of all folds; the results are the facts of their last steps."""
    ranges = count_ranges(entries)
    if ranges == 1:
        return (yield [Step(f"fold-{fold}", fit_fold, (list(parts), fold), after=counts) for fold in range(folds)])
    sums = [(fold, number) for fold in range(folds) for number in range(ranges)]
    names = tuple(f"sums-{fold}-{number}" for fold, number in sums)
    yield [
        Step(name, sum_range, (list(parts), *each, ranges), after=counts)
        for name, each in zip(names, sums, strict=True)
    ]
    return (yield [Step(f"fold-{fold}", finish_fold, (fold, ranges), after=names) for fold in range(folds)])


def count_words(folder: Path, part: str) -> StepResult:
    """Count the words of the captions of a part; the facts are the numbers of its rows and of its counts."""
    files = count_part(folder, part)
    return files, {"rows": count_rows(folder, part), "entries": count_entries(folder, part)}


def place_part(folder: Path, part: str, folds: Sequence[int], grids: Grids, options: RefineOptions) -> StepResult:
    """Score the rows of a part by the models of ``folds``, and place them in the cells of their grid."""
    return [*score_part(folder, part, folds), list_cells(folder, part, grids, options)], {}
