"""Stage ``audit`` of an incremental build: runs every text-only attack on all kept negatives, old and new."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_bytes
from pairwright.filters.audit.verdict import run_audit
from pairwright.flows.stages.generator_stages import generating_stages
from pairwright.flows.stages.judged_parts import ROWS, corpus_of_parts, rows_of
from pairwright.flows.state.build_versions import AUDIT
from pairwright.flows.state.layout import annotations_path
from pairwright.flows.state.receipts import Counts, Job, JobResult

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.stages.definition import StageRun

MAX_ACCURACY = 0.55


def has_negatives(config: "BuildConfig") -> bool:
    """Return whether a build may have hard negatives."""
    return bool(config.negatives or config.generators)


def audit_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``audit``."""
    base, config = run.increment_base, run.config
    extra = {generator.name for generator in config.generators}
    stages = [
        stage.name
        for stage in generating_stages(config)
        if stage.to_refine or stage.name == "negatives" or stage.name in extra
    ]
    return [run.job(audit_all, base.root, stages, base.parts, run.parts, config.seed, state=base.state)]


def audit_all(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path, home: Path, stages: list[str], old: list[str], new: list[str], seed: int
) -> JobResult:
    """Audit all kept hard negatives, old and new, except SHUFFLE rows; the unit is a negative."""
    places = [*((home, part) for part in old), *((root, part) for part in new)]
    rows = pl.concat([ROWS.to_frame(), *rows_of(places, stages, annotations_path)])
    report = (
        run_audit(rows, corpus_of_parts(places, pool=True), limit=MAX_ACCURACY, seed=seed).as_json()
        if rows.height
        else {}
    )
    write_bytes(root / AUDIT, orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    shown = ("rows", "verdict", "max", "attacks", "by_type", "breaks", "identical", "repeated", "format_leaks")
    counts = Counts("negative", rows.height, rows.height)
    return JobResult([root / AUDIT], counts, {"audit": {name: report[name] for name in shown if name in report}})
