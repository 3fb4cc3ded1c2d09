"""Stage ``refine``: rejects hard negatives that a text-only model can detect.

All candidates are judged as one set; the captions of the pool train the scorers, and the verdicts are written part by
part. A method stores the texts of each part, takes the steps of its plan, and writes the verdicts on each part:
``reference`` those of `filters/refinement/reference/plan.py`, whose memory is bounded, ``general`` those of
`filters/refinement/general/refine.py`. A step is a job, whose files in ``refinement/`` let a killed build resume. SHUFFLE
rows, which are for training only and easy to detect, are kept without being judged.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
import polars as pl

from pairwright.datasets.option_names import OptionNames
from pairwright.filters.attacks.registry import MEANING, fingerprint_scorers, load_scorer
from pairwright.filters.refinement.general.attacked_rows import store_texts
from pairwright.filters.refinement.general.refine import AllAttacksOptions, plan_refinement
from pairwright.filters.refinement.reference.parts import encode_part
from pairwright.filters.refinement.reference.plan import BALANCE, name_texts, plan_reference
from pairwright.filters.refinement.reference.refine import RefineOptions
from pairwright.filters.refinement.result import RefinedParts
from pairwright.filters.refinement.steps import Facts, Plan, Step
from pairwright.filters.scorers.text_scorers import GapScorer
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import captions_of, read_candidates, summarize_parts, write_part
from pairwright.flows.state.receipts import Counts, Job, JobResult, Receipt

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

FOLDER: Final = "refinement"  # of the steps

Result = TypeVar("Result")
_Jobs = Generator[Sequence[Job], tuple[Receipt, ...], Result]
_STORES: dict[str, Callable[[Path, str, pl.DataFrame, pl.DataFrame], list[Path]]] = {
    "reference": encode_part,
    "general": store_texts,
}


def refine_jobs(run: "StageRun") -> "StageJobs":
    """Yield the jobs of stage ``refine`` in a full build, in groups; return the last one."""
    section, stages, seed = run.config.refine, refined_stages(run.config), run.config.seed
    assert section
    by_reference = section.method == "reference"
    texts = yield [run.job(store_part, section.method, stages, part, part=name_texts(part)) for part in run.parts]
    done = {receipt.part: receipt for receipt in texts}
    refined: RefinedParts
    if by_reference:
        numbers = [receipt.facts["texts"] for receipt in texts]
        refined = yield from _take_steps(
            run, plan_reference(run.parts, numbers, reference_options(section, seed)), done
        )
    else:
        plan = plan_refinement(tuple(run.parts), general_options(section, seed), "pool")
        refined = yield from _take_steps(run, plan, done, state=scorers_state(section), shown_as_one=True)
    decided = [done[BALANCE]] if by_reference else list(done.values())
    written = yield [run.job(write_verdicts, stages, part, refined, part=part, after=decided) for part in run.parts]
    facts = [dict(receipt.facts) for receipt in written]
    return [run.job(sum_up, refined, facts, after=written, in_build_process=True)]


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


def store_part(root: Path, method: str, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part for a method; the fact is their number."""
    captions = captions_of(root, part).unique(maintain_order=True)
    rows = read_candidates(root, stages, part)
    outputs = _STORES[method](root / FOLDER, part, captions, rows)
    return _uncounted(outputs, {"texts": captions.height + rows.height})


def _uncounted(outputs: Sequence[Path], facts: Mapping[str, Any]) -> JobResult:
    return JobResult(outputs, Counts("negative"), facts)


def write_verdicts(root: Path, stages: list[str], part: str, refined: RefinedParts) -> JobResult:
    """Write the kept and the rejected candidates of a part; the fact ``verdicts`` counts them."""
    verdicts, counts = refined.read_verdicts(root / FOLDER, part)
    outputs, facts = write_part(root, stages, part, verdicts)
    return _uncounted(outputs, {**facts, "verdicts": counts})


def sum_up(_: Path, refined: RefinedParts, parts: Sequence[Mapping[str, Any]]) -> JobResult:
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    return summarize_parts([], refined.summarize([part["verdicts"] for part in parts]), parts)


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
