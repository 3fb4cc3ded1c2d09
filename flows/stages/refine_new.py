"""Stage ``refine`` of an incremental build: judges the negatives of new pairs with the frozen scorers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.appended.refine import (
    AppendedRefinement,
    CarriedPreferences,
    refine_appended_against_all,
    refine_appended_with_two_scorers,
)
from pairwright.filters.refinement.result import Refinement
from pairwright.flows.stages.freeze import FROZEN
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import corpus_of_parts, refine_with
from pairwright.flows.stages.refine import added_scorers, general_options, reference_options, scorers_state
from pairwright.flows.state.receipts import Job, JobResult

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.stages.definition import StageRun


def refine_new_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``refine`` in an incremental build."""
    base, config = run.increment_base, run.config
    carried = base.manifest["stages"]["refine"]["facts"].get("carried", {})
    args = (base.root, refined_stages(config), run.parts, base.full_parts, config.refine, config.seed, carried)
    return [run.job(refine_new, *args, state=base.state + scorers_state(config.refine))]


def refine_new(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    home: Path,
    stages: list[str],
    parts: list[str],
    full: list[str],
    section: "RefineSection",
    seed: int,
    carried: CarriedPreferences,
) -> JobResult:
    """Refine the hard negatives of new pairs with the frozen scorers; otherwise like `judged_parts.refine_with`.

    Args:
        root: the folder of the new parts.
        home: the build directory.
        stages: whose candidates are refined.
        parts: the new ones.
        full: the parts of the last full build.
        section: of the config.
        seed: of the build.
        carried: preferences that earlier increments carry over; those of this one are among the facts.
    """
    frozen = FrozenScorers.load(home / FROZEN)
    corpus = corpus_of_parts([(home, part) for part in full])
    carried_over: dict[str, Any] = {"carried": carried}

    def judge(rows: pl.DataFrame) -> Refinement:
        if section.method == "reference":
            found: AppendedRefinement = refine_appended_with_two_scorers(
                rows, frozen, corpus, reference_options(section, seed)
            )
        else:
            scorers = added_scorers(section)
            options = general_options(section, seed)
            found = refine_appended_against_all(rows, frozen, corpus, options, carried, scorers=scorers)
        carried_over["carried"] = found.carried
        return found.refinement

    outcome = refine_with(root, stages, parts, judge)
    return JobResult(outcome.outputs, outcome.counts, {**outcome.facts, **carried_over})
