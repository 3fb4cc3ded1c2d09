"""Stage ``refine``: rejects hard negatives that a text-only model can detect.

All candidates are judged as one set; the captions of the pool train the scorers, and the verdicts are written part by
part. A method stores the texts of each part, takes the steps of its plan, and writes the verdicts on each part:
``reference`` those of `filters/refinement/reference/plan.py`, whose memory is bounded, ``general`` those of
`filters/refinement/general/refine.py`. A step is a job, whose files in ``refinement/`` let a killed build resume. SHUFFLE
rows, which are for training only and easy to detect, are kept without being judged.
"""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
import polars as pl

from pairwright.datasets.option_names import OptionNames
from pairwright.filters.attacks.registry import MEANING, fingerprint_scorers, load_scorer
from pairwright.filters.refinement.general.attacked_rows import read_ids, store_texts
from pairwright.filters.refinement.general.refine import AllAttacksOptions, JudgedRows, plan_refinement
from pairwright.filters.refinement.reference.cell_quotas import Grids, read_verdicts, sum_verdicts
from pairwright.filters.refinement.reference.parts import encode_part
from pairwright.filters.refinement.reference.plan import name_texts, plan_reference
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.filters.refinement.steps import Facts, Plan, Step
from pairwright.filters.scorers.text_scorers import GapScorer
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import ROWS, captions_of, rows_of, summarize_parts, write_part
from pairwright.flows.state.layout import candidates_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

FOLDER: Final = "refinement"  # of the steps

Result = TypeVar("Result")
_Jobs = Generator[Sequence[Job], tuple[Receipt, ...], Result]


def refine_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``refine`` in a full build."""
    section, stages, seed = run.config.refine, refined_stages(run.config), run.config.seed
    assert section
    if section.method == "reference":
        return reference_jobs(run, stages, reference_options(section, seed))
    return general_jobs(run, stages, general_options(section, seed), scorers_state(section))


def reference_jobs(run: "StageRun", stages: list[str], options: RefineOptions) -> _Jobs[Sequence[Job]]:
    """Yield the jobs of method ``reference`` in groups; return the last one.

    Args:
        run: of the stage.
        stages: whose candidates are refined.
        options: of the refinement.
    """
    texts = yield [run.job(encode_texts, stages, part, part=name_texts(part)) for part in run.parts]
    done = {receipt.part: receipt for receipt in texts}
    grids = yield from _take_steps(
        run, plan_reference(run.parts, [receipt.facts["texts"] for receipt in texts], options), done
    )
    limits = [done["balance"]]
    written = yield [
        run.job(write_reference_verdicts, stages, part, grids, options, part=part, after=limits) for part in run.parts
    ]
    return [run.job(sum_up_reference, [dict(receipt.facts) for receipt in written], after=written)]


def general_jobs(run: "StageRun", stages: list[str], options: AllAttacksOptions, state: str) -> _Jobs[Sequence[Job]]:
    """Yield the jobs of method ``general`` in groups; return the last one.

    Args:
        run: of the stage.
        stages: whose candidates are refined.
        options: of the refinement.
        state: of the scorers of other packages.
    """
    texts = yield [run.job(store_part, stages, part, part=name_texts(part)) for part in run.parts]
    done = {receipt.part: receipt for receipt in texts}
    plan = plan_refinement(tuple(run.parts), options, "pool")
    judged = yield from _take_steps(run, plan, done, state=state, shown_as_one=True)
    written = yield [
        run.job(write_general_verdicts, stages, number, judged, part=part, after=list(done.values()))
        for number, part in enumerate(run.parts)
    ]
    facts = [dict(receipt.facts) for receipt in written]
    return [run.job(sum_up_general, judged, options, facts, after=written, in_build_process=True)]


def _take_steps(
    run: "StageRun", plan: Plan[Result], done: dict[str, Receipt], *, state: str = "", shown_as_one: bool = False
) -> _Jobs[Result]:
    """Yield the steps of a plan as jobs; return its result.

    Args:
        run: of the stage.
        plan: whose steps are taken.
        done: receipts of the jobs before, by part; those of the steps are added.
        state: as in `StageRun.job`.
        shown_as_one: likewise.
    """
    facts: list[Facts] | None = None
    try:
        while True:
            group = next(plan) if facts is None else plan.send(facts)
            receipts = yield [
                run.job(
                    take_step,
                    each,
                    part=each.name,
                    settings=[each.run.__name__, repr(each.args)],
                    state=state,
                    after=list(done.values()) if each.after is None else [done[name] for name in each.after],
                    shown_as_one=shown_as_one,
                    multi_core=each.multi_core,
                )
                for each in group
            ]
            done |= {receipt.part: receipt for receipt in receipts}
            facts = [receipt.facts for receipt in receipts]
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def take_step(root: Path, each: Step) -> JobResult:
    """Take a step of a plan."""
    outputs, facts = each.run(root / FOLDER, *each.args)
    # As they are read from a receipt: what is planned from them is part of the fingerprints of later jobs.
    return _uncounted(outputs, orjson.loads(orjson.dumps(facts)))


def encode_texts(root: Path, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part for method ``reference``; the fact is their number."""
    captions, rows = captions_of(root, part), _candidates(root, stages, part)
    return _uncounted(encode_part(root / FOLDER, part, captions, rows), {"texts": captions.height + rows.height})


def store_part(root: Path, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part for method ``general``."""
    captions = captions_of(root, part).unique(maintain_order=True)
    return _uncounted(store_texts(root / FOLDER, part, captions, _candidates(root, stages, part)))


def _candidates(root: Path, stages: list[str], part: str) -> pl.DataFrame:
    return pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)])


def _uncounted(outputs: Sequence[Path], facts: Mapping[str, Any] | None = None) -> JobResult:
    return JobResult(outputs, Counts("negative"), facts or {})


def write_reference_verdicts(
    root: Path, stages: list[str], part: str, grids: Grids, options: RefineOptions
) -> JobResult:
    """Write the kept and the rejected candidates of a part; the fact ``verdicts`` counts them."""
    verdicts, counts = read_verdicts(root / FOLDER, part, grids, options)
    outputs, facts = write_part(root, stages, part, verdicts)
    return _uncounted(outputs, {**facts, "verdicts": counts})


def write_general_verdicts(root: Path, stages: list[str], number: int, judged: JudgedRows) -> JobResult:
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
    return _uncounted(outputs, {**facts, "reasons": {kind: dict(each) for kind, each in counted.items()}})


def sum_up_reference(root: Path, parts: list[dict[str, Any]]) -> JobResult:  # noqa: ARG001 - a job's
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    return summarize_parts([], sum_verdicts([part["verdicts"] for part in parts]), parts)


def sum_up_general(
    _: Path, judged: JudgedRows, options: AllAttacksOptions, parts: Sequence[Mapping[str, Any]]
) -> JobResult:
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    counts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for kind, reasons in part["reasons"].items():
            counts.update({(kind, reason): number for reason, number in reasons.items()})
    return summarize_parts([], judged.summarize(counts, options).as_json(counts), parts)


def reference_options(section: "RefineSection", seed: int) -> RefineOptions:
    """Return the options of method ``reference``."""
    return RefineOptions(cells=section.cells, by_type=section.by_type, seed=seed)


def general_options(section: "RefineSection", seed: int) -> AllAttacksOptions:
    """Return the options of method ``general``."""
    return AllAttacksOptions(
        target=section.target,
        min_keep=section.min_keep,
        by_type=section.by_type,
        seed=seed,
        meaning=MEANING in section.add_attacks,
        added=tuple(name for name in section.add_attacks if name != MEANING),
        wording=OptionNames("under refine"),
    )


def added_scorers(section: "RefineSection") -> list[GapScorer]:
    """Return the scorers that ``add_attacks`` names, loaded."""
    return [load_scorer(name) for name in section.add_attacks if name != MEANING]


def scorers_state(section: "RefineSection | None") -> str:
    """Return a text that changes when a scorer of another package changes."""
    return fingerprint_scorers(section.add_attacks) if section else ""
