"""Stage ``refine`` of an incremental build: judges the negatives of new pairs with the frozen scorers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.appended.refine import (
    CarriedPreferences,
    refine_appended_against_all,
    refine_appended_with_two_scorers,
)
from pairwright.flows.stages.freeze import FROZEN
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import ROWS, corpus_of_parts, read_candidates, summarize_parts, write_part
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
    """Refine the hard negatives of new pairs with the frozen scorers; the unit is a negative that a generator kept.

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
    of_parts = [read_candidates(root, stages, part) for part in parts]
    rows = pl.concat([ROWS.to_frame(), *of_parts])
    if section.method == "reference":
        found = refine_appended_with_two_scorers(rows, frozen, corpus, reference_options(section, seed))
    else:
        options, scorers = general_options(section, seed), added_scorers(section)
        found = refine_appended_against_all(rows, frozen, corpus, options, carried, scorers=scorers)
    verdicts = found.refinement.gaps.with_columns(reason=pl.Series(found.refinement.reasons, dtype=pl.String))
    outputs, facts, start = list[Path](), [], 0
    for part, own in zip(parts, of_parts, strict=True):
        written, counted = write_part(root, stages, part, verdicts.slice(start, own.height))
        outputs += written
        facts.append(counted)
        start += own.height
    summary = summarize_parts(outputs, found.refinement.as_json(), facts)
    return replace(summary, facts={**summary.facts, "carried": found.carried})
