"""Stage ``refine``: rejects hard negatives that a text-only model can detect.

All candidates are judged as one set; the captions of the pool train the scorers, and the verdicts are written part by
part. Both methods have many jobs, whose files in ``refinement/`` let a killed build resume: those of ``reference``
(SugarCrepe, Algorithm 1) have bounded memory (`filters/refinement/out_of_core.py`); those of ``general`` are in
`refine_general.py`. SHUFFLE rows, which are for training only and easy to detect, are kept without being judged.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.datasets.option_names import OptionNames
from pairwright.filters.attacks.registry import MEANING, fingerprint_scorers, load_scorer
from pairwright.filters.refinement.all_attacks import AllAttacksOptions
from pairwright.filters.refinement.cell_quotas import (
    Grids,
    choose_grids,
    count_rows,
    limit_rows,
    list_cells,
    read_verdicts,
    sum_verdicts,
)
from pairwright.filters.refinement.fold_sums import count_entries
from pairwright.filters.refinement.out_of_core import count_part, encode_part, score_part
from pairwright.filters.refinement.two_scorers import RefineOptions
from pairwright.filters.scorers.text_scorers import GapScorer
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import ROWS, captions_of, rows_of, summarize_parts, write_part
from pairwright.flows.stages.refine_folds import FOLDER, fold_jobs, model_jobs, step
from pairwright.flows.stages.refine_general import general_jobs
from pairwright.flows.state.layout import candidates_path
from pairwright.flows.state.receipts import Counts, JobResult

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun


def refine_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``refine`` in a full build."""
    config = run.config
    if config.refine and config.refine.method == "reference":
        return _reference_jobs(run, reference_options(config.refine, config.seed))
    assert config.refine
    return general_jobs(
        run, refined_stages(config), general_options(config.refine, config.seed), scorers_state(config.refine)
    )


def _reference_jobs(run: "StageRun", options: RefineOptions) -> "StageJobs":
    """Yield the steps of `filters/refinement/out_of_core.py`; the last job sums up."""
    stages, parts = refined_stages(run.config), run.parts
    texts = yield [run.job(encode_texts, stages, part, part=f"texts-{part}") for part in parts]
    assigned = yield from fold_jobs(run, options, texts)
    counts = yield [run.job(count_words, part, part=f"counts-{part}", after=[assigned[part]]) for part in parts]
    models = yield from model_jobs(run, options, counts)
    fitted = [fold for fold, receipt in enumerate(models) if receipt.facts["trained"]]
    grids = choose_grids((receipt.facts["rows"] for receipt in counts), fitted, options)
    gaps = yield [
        run.job(score_texts, part, fitted, grids, options, part=f"gaps-{part}", after=models) for part in parts
    ]
    (limits,) = yield [run.job(limit_cells, parts, part="balance", after=gaps)]
    written = yield [run.job(write_verdicts, stages, part, grids, options, part=part, after=[limits]) for part in parts]
    return [run.job(sum_up, [dict(receipt.facts) for receipt in written], after=written)]


def encode_texts(root: Path, stages: list[str], part: str) -> JobResult:
    """Store the captions and the candidates of a part as numbers; the fact is their number."""
    captions = captions_of(root, part)
    rows = pl.concat([ROWS.to_frame(), *rows_of([(root, part)], stages, candidates_path)])
    return step(encode_part(root / FOLDER, part, captions, rows), {"texts": captions.height + rows.height})


def count_words(root: Path, part: str) -> JobResult:
    """Count the words of the captions of a part, and its rows."""
    folder = root / FOLDER
    outputs = count_part(folder, part)
    return step(outputs, {"rows": count_rows(folder, part), "entries": count_entries(folder, part)})


def score_texts(root: Path, part: str, folds: list[int], grids: Grids, options: RefineOptions) -> JobResult:
    """Score the candidates of a part by the models of ``folds``, and place them in the cells of their grid."""
    folder = root / FOLDER
    return step([*score_part(folder, part, folds), list_cells(folder, part, grids, options)])


def limit_cells(root: Path, parts: list[str]) -> JobResult:
    """Decide how many candidates of each cell are kept."""
    return step(limit_rows(root / FOLDER, parts))


def write_verdicts(root: Path, stages: list[str], part: str, grids: Grids, options: RefineOptions) -> JobResult:
    """Write the kept and the rejected candidates of a part."""
    verdicts, counts = read_verdicts(root / FOLDER, part, grids, options)
    outputs, facts = write_part(root, stages, part, verdicts)
    return JobResult(outputs, Counts("negative"), {**facts, "verdicts": counts})


def sum_up(root: Path, parts: list[dict[str, Any]]) -> JobResult:  # noqa: ARG001 - a job's
    """Return the counts and the facts of the stage; the unit is a negative that a generator kept."""
    return summarize_parts([], sum_verdicts([part["verdicts"] for part in parts]), parts)


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
