"""Stages of an incremental build that a full build does not have, or has in another form.

``freeze``   fits and saves the scorers of the last full build, once
``refine``   judges new negatives with the frozen scorers
``sizes``    adds the new shards to the sizes and checksums of all shards
``audit``    runs every text-only attack on all kept negatives, old and new
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.build_manifest import shard_paths
from pairwright.datasets.errors import StorageError
from pairwright.datasets.shards.layout import SIZES_FILE, ShardInfo, read_sizes
from pairwright.datasets.shards.writing import append_shards
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.audit.verdict import run_audit
from pairwright.filters.refinement.appended.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.appended.refine import (
    AppendedRefinement,
    CarriedPreferences,
    refine_appended_against_all,
    refine_appended_with_two_scorers,
)
from pairwright.filters.refinement.result import Refinement
from pairwright.flows.stages.generator_stages import generating_stages, refined_stages
from pairwright.flows.stages.judged_parts import ROWS, corpus_of_parts, refine_with, rows_of
from pairwright.flows.stages.refine import added_scorers, general_options, reference_options, scorers_state
from pairwright.flows.stages.shards import sizes_result, written_shards
from pairwright.flows.state.build_versions import AUDIT, finished_manifest, version_path
from pairwright.flows.state.layout import annotations_path, candidates_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, json_hash
from pairwright.flows.state.shard_store import forget_lost_outputs

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.config.sections import RefineSection
    from pairwright.flows.stages.definition import StageRun

FROZEN = "frozen"
MAX_ACCURACY = 0.55


def has_negatives(config: "BuildConfig") -> bool:
    """Return whether a build may have hard negatives."""
    return bool(config.negatives or config.generators)


def freeze_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``freeze``, which depends on the last full build alone."""
    base, config = run.increment_base, run.config
    full = version_path(base.root, base.manifest["build"]["full"]).read_bytes()
    return [run.job(freeze, refined_stages(config), base.full_parts, config.refine, state=json_hash(full.hex()))]


def refine_new_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``refine`` in an incremental build."""
    base, config = run.increment_base, run.config
    carried = base.manifest["stages"]["refine"]["facts"].get("carried", {})
    args = (base.root, refined_stages(config), run.parts, base.full_parts, config.refine, config.seed, carried)
    return [run.job(refine_new, *args, state=base.state + scorers_state(config.refine))]


def new_sizes_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``sizes`` in an incremental build."""
    base = run.increment_base
    written, to = written_shards(run.receipts("shards")), run.config.shards.to
    forget_lost_outputs(run.root, run.name, to)
    image_ext = base.manifest["shards"]["image_ext"]
    return [run.job(write_sizes, base.root, image_ext, written, to, state=base.state)]


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


def write_sizes(root: Path, home: Path, image_ext: str, new: Sequence[ShardInfo], to: str) -> JobResult:
    """Write ``sizes.json`` and the checksums of all shards, old and new; the unit is a new sample.

    Args:
        root: the folder of the new shards.
        home: the build directory.
        image_ext: of the old shards.
        new: the new shards.
        to: URL of the folder of a store that has the shards; empty if they are here.
    """
    written = append_shards(root / "shards", _finished_shards(home, image_ext), new, kept=not to)
    samples = sum(shard.count for shard in new)
    return sizes_result(written, to, Counts("sample", samples, samples))


def _finished_shards(home: Path, image_ext: str) -> list[ShardInfo]:
    """Return the shards of the finished version in ``home``, by its manifest and sizes."""
    manifest = finished_manifest(home)
    files, stored = manifest["files"], manifest["shards"].get("sizes")
    names = [tar.name for tar in shard_paths(home, files)]
    sizes = read_sizes(home / "shards" / SIZES_FILE) if stored is None else stored
    if sizes is None or not sizes.keys() >= set(names):
        raise StorageError(f"{home / 'shards' / SIZES_FILE}: does not list the shards. Build with --full.")
    entries = [(name, files[f"shards/{name}"]) for name in names]
    return [ShardInfo(name, sizes[name], each["bytes"], each["sha256"], image_ext) for name, each in entries]
