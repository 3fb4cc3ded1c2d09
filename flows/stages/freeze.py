"""Stage ``freeze`` of an incremental build: fits and saves the scorers of the last full build, once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.flows.stages.generator_stages import refined_stages
from pairwright.flows.stages.judged_parts import ROWS, corpus_of_parts, rows_of
from pairwright.flows.state.build_versions import version_path
from pairwright.flows.state.layout import candidates_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, json_hash

if TYPE_CHECKING:
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.stages.definition import StageRun

FROZEN = "frozen"


def freeze_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``freeze``, which depends on the last full build alone."""
    base, config = run.increment_base, run.config
    full = version_path(base.root, base.manifest["build"]["full"]).read_bytes()
    return [run.job(freeze, refined_stages(config), base.full_parts, config.refine, state=json_hash(full.hex()))]


def freeze(root: Path, stages: list[str], parts: list[str], section: "RefineSection") -> JobResult:
    """Fit the scorers of later rows on the captions and candidates of the last full build; the unit is a caption.

    Args:
        root: the build directory.
        stages: whose candidates were refined.
        parts: of the full build.
        section: of the config; classifiers are fitted for method ``general`` only.
    """
    places = [(root, part) for part in parts]
    corpus = corpus_of_parts(places, pool=True)
    entering = None
    if section.method == "general":
        rows = pl.concat([ROWS.to_frame(), *rows_of(places, stages, candidates_path)])
        columns = (rows[name].to_list() for name in ("positive", "negative", "group", "type"))
        entering = RowTexts(*columns)
    outputs = FrozenScorers.of(corpus, entering).save(root / FROZEN)
    captions = len(corpus.captions)
    facts = {"negatives": len(entering.types) if entering else 0}
    return JobResult(outputs, Counts("caption", captions, captions), facts)
