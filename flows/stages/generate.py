"""Stages ``negatives``, ``positives``, ``conversations`` and third-party ones: a generator over the parts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation
from pairwright.datasets.rng import make_rng
from pairwright.flows.stages.generating import GeneratingStage, generating_stage, remaining_quota
from pairwright.flows.stages.tag import statistics_path
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import drafts_path, pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selection import selection_mask
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edit_checks.unwrapping import sameness
from pairwright.generators.edits.general_english import pool_or_general_english
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.language.wordnet_table import table_path
from pairwright.generators.registry import Materials, build_generator, generator_fingerprint

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun


def generate_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the jobs of a generating stage whose generator works by rules."""
    stage = stage_of_run(run)
    return run.job_per_part(generate_part, stage, state=generator_state(stage.generator))


def stage_of_run(run: "StageRun") -> GeneratingStage:
    """Return the generating stage of a run; in an increment, its counts are what the versions before leave."""
    stage = generating_stage(run.config, run.name)
    counts = stage.options.get("counts")
    if not (run.base and counts) or stage.to_balance:
        return stage
    left = remaining_quota(counts, run.base.manifest, stage.name, "available")
    return replace(stage, options={**stage.options, "counts": left})


def generator_state(generator: str) -> str:
    """Return the state of a generator from outside of pairwright, and of WordNet's table."""
    return f"{generator_fingerprint(generator)} {file_state([path for path in [table_path()] if path.is_file()])}"


def generate_part(root: Path, part: str, stage: GeneratingStage) -> JobResult:
    """Annotate the selected pairs of a part; the unit is an attempt.

    Kept rows are written to ``annotations/``, or to ``drafts/`` or ``candidates/`` if they are balanced or refined
    afterwards; rejected rows, with their reasons, to ``rejected/``.
    """
    generator = build_generator(stage.generator, materials_of(root, stage.seed), stage.options)
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    rows: list[Annotation] = []
    flagged = zip(pairs, tokens, selection_mask(root, pairs, stage.selection), strict=True)
    for pair, words, selected in track(flagged, "writing texts", len(pairs), "captions"):
        if selected:
            rng = make_rng(stage.seed, 0, generator.name, generator.version, pair.key)
            rows += generator.annotate(pair, words, rng)
    rows = reject_positives_among_negatives(root, part, stage, rows)
    counts = AnnotationCounts()
    counts.add(rows)
    kept = sum(row.status == "kept" for row in rows)
    return JobResult(
        stage.write_rows(root, part, rows),
        Counts("attempt", len(rows), kept, counts.reasons()),
        {"generator": f"{generator.name}/{generator.version}", "by_type": counts.by_type()},
    )


def materials_of(root: Path, seed: int) -> Materials:
    """Return the materials of the generators of a build."""
    wordnet = load_wordnet()
    return Materials(wordnet, pool_or_general_english(PoolStatistics.load(statistics_path(root)), wordnet), seed)


def reject_positives_among_negatives(
    root: Path, part: str, stage: GeneratingStage, rows: Sequence[Annotation]
) -> list[Annotation]:
    """Return the rows with those hard positives rejected whose text a hard negative of the same caption has."""
    negatives = {
        (row.key, sameness(row.text))
        for other in stage.exclude_texts_of
        for row in ANNOTATIONS.read(drafts_path(root, other, part))
        if row.kind == "hard_negative"
    }
    return [
        replace(row, status="rejected", reason="on_both_sides")
        if row.status == "kept" and row.kind == "hard_positive" and (row.key, sameness(row.text)) in negatives
        else row
        for row in rows
    ]
