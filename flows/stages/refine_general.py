"""Jobs of stage ``refine`` for method ``general``: one for each step of `filters/refinement/all_attacks.py`.

Parts are stored and written by jobs of their own; a fold of the scorers is one job, too. All rounds are one job that uses
several cores, or from 500,000 candidates on each classifier of a round, and the choice of a round in one type, is one job.
How many rounds there are is decided by the facts of earlier ones.
"""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl

from pairwright.filters.refinement.all_attacks import AllAttacksOptions, JudgedRows, plan_refinement
from pairwright.filters.refinement.attacked_rows import read_ids, store_texts
from pairwright.filters.refinement.steps import Facts, Step
from pairwright.flows.stages.judged_parts import ROWS, captions_of, rows_of, summarize_parts, write_part
from pairwright.flows.stages.refine_folds import FOLDER, step
from pairwright.flows.state.layout import candidates_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

_Jobs = Generator[Sequence[Job], tuple[Receipt, ...], Any]


def general_jobs(
    run: "StageRun", stages: list[str], options: AllAttacksOptions, state: str
) -> Generator[Sequence[Job], tuple[Receipt, ...], Sequence[Job]]:
    """Yield the jobs of a build's refinement in groups; return the last one.

    Args:
        run: of the stage.
        stages: whose candidates are refined.
        options: of the refinement.
        state: of the scorers of other packages.
    """
    texts = yield [run.job(store_part, stages, part, part=f"texts-{part}") for part in run.parts]
    judged, earlier = yield from _take_steps(run, options, texts, state)
    written = yield [
        run.job(write_verdicts, stages, number, judged, part=part, after=earlier)
        for number, part in enumerate(run.parts)
    ]
    facts = [dict(receipt.facts) for receipt in written]
    return [run.job(sum_up, judged, options, facts, after=written, in_build_process=True)]


def _take_steps(
    run: "StageRun", options: AllAttacksOptions, texts: Sequence[Receipt], state: str
) -> Generator[Sequence[Job], tuple[Receipt, ...], tuple[JudgedRows, list[Receipt]]]:
    """Yield the steps of the plan as jobs; return its result, and the receipts of all jobs so far."""
    plan = plan_refinement(tuple(run.parts), options, "pool")
    earlier, facts = list(texts), list[Facts]()
    try:
        while True:
            group = plan.send(facts) if facts else next(plan)
            receipts = yield [
                run.job(
                    take_step,
                    each,
                    part=each.name,
                    settings=[each.run.__name__, repr(each.args)],
                    state=state,
                    after=earlier,
                    shown_as_one=True,
                    multi_core=each.multi_core,
                )
                for each in group
            ]
            earlier += receipts
            facts = [receipt.facts for receipt in receipts]
    except StopIteration as end:
        return end.value, earlier


def store_part(root: Path, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part."""
    rows = pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)])
    return step(store_texts(root / FOLDER, part, captions_of(root, part).unique(maintain_order=True), rows))


def take_step(root: Path, each: Step) -> JobResult:
    """Take a step of the plan."""
    outputs, facts = each.run(root / FOLDER, *each.args)
    # As they are read from a receipt: what is planned from them is part of the fingerprints of later jobs.
    return step(outputs, orjson.loads(orjson.dumps(facts)))


def write_verdicts(root: Path, stages: list[str], number: int, judged: JudgedRows) -> JobResult:
    """Write the kept and the rejected candidates of a part; the fact ``reasons`` counts them by type and reason."""
    part = judged.parts[number]
    places, reasons = judged.read_reasons(root / FOLDER, number)
    rows = read_ids(root / FOLDER, part)
    gaps = judged.read_gaps(root / FOLDER, places)
    verdicts = rows.select("id", pl.Series("reason", reasons, pl.String), *(pl.Series(*each) for each in gaps.items()))
    outputs, facts = write_part(root, stages, part, verdicts)
    counted: dict[str, Counter[str]] = {}
    for kind, reason in zip(rows["type"], reasons, strict=True):
        counted.setdefault(kind, Counter())[reason] += 1
    return JobResult(
        outputs, Counts("negative"), {**facts, "reasons": {kind: dict(each) for kind, each in counted.items()}}
    )


def sum_up(_: Path, judged: JudgedRows, options: AllAttacksOptions, parts: Sequence[Mapping[str, Any]]) -> JobResult:
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    counts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for kind, reasons in part["reasons"].items():
            counts.update({(kind, reason): number for reason, number in reasons.items()})
    return summarize_parts([], judged.summarize(counts, options).as_json(counts), parts)
