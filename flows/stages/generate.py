"""Stages ``negatives``, ``positives``, ``conversations`` and the user's own: a generator over the parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation
from pairwright.datasets.rng import make_rng
from pairwright.flows.stages.tag import statistics_path
from pairwright.flows.state.layout import (
    annotations_path,
    candidates_path,
    drafts_path,
    pairs_path,
    rejected_path,
    tokens_path,
)
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.flows.state.selection import PairSelection, selection_mask
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edit_checks.unwrapping import sameness
from pairwright.generators.edits.general_english import pool_or_general_english
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.token_storage import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import Materials, build_generator


@dataclass(frozen=True)
class GeneratingStage:
    """What a generating stage does.

    Attributes:
        stage: its name, which names its files.
        generator: a name in the registry.
        options: for the generator.
        seed: of the build.
        choice: which pairs go on.
        to_refine: whether refinement judges the kept rows afterwards.
        to_balance: whether they are balanced first.
        unlike: stages, whose rows stand in ``drafts/``, whose hard negatives its hard positives must not say again.
    """

    stage: str
    generator: str
    options: Mapping[str, Any]
    seed: int
    choice: PairSelection
    to_refine: bool
    to_balance: bool = False
    unlike: tuple[str, ...] = ()

    def place(self, root: Path, part: str) -> Path:
        """Return where the kept rows of a part go."""
        path = drafts_path if self.to_balance else candidates_path if self.to_refine else annotations_path
        return path(root, self.stage, part)


def generate_part(root: Path, part: str, this: GeneratingStage) -> JobResult:
    """Let a generator annotate the chosen pairs of a part.

    Kept rows go to ``annotations/``, or to ``drafts/`` or ``candidates/`` when they shall be balanced or refined; the
    others, with their reasons, to ``rejected/``. The unit is an attempt.
    """
    maker = build_generator(this.generator, materials_of(root, this.seed), this.options)
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    rows: list[Annotation] = []
    flagged = zip(pairs, tokens, selection_mask(root, pairs, this.choice), strict=True)
    for pair, words, goes_on in track(flagged, "writing texts", len(pairs), "captions"):
        if goes_on:
            rows += maker.annotate(pair, words, make_rng(this.seed, 0, maker.name, maker.version, pair.key))
    rows = reject_positives_among_negatives(root, part, this, rows)
    tally = AnnotationCounts()
    tally.add(rows)
    kept = sum(row.status == "kept" for row in rows)
    return JobResult(
        write_rows(root, part, this, rows),
        Counts("attempt", len(rows), kept, tally.reasons()),
        {"generator": f"{maker.name}/{maker.version}", "by_type": tally.by_type()},
    )


def materials_of(root: Path, seed: int) -> Materials:
    """Return what the generators of a build draw on."""
    wordnet = load_wordnet()
    return Materials(wordnet, pool_or_general_english(PoolStatistics.load(statistics_path(root)), wordnet), seed)


def reject_positives_among_negatives(
    root: Path, part: str, this: GeneratingStage, rows: Sequence[Annotation]
) -> list[Annotation]:
    """Return the rows with those hard positives rejected that say what a negative of the same caption says."""
    said = {
        (row.key, sameness(row.text))
        for stage in this.unlike
        for row in ANNOTATIONS.read(drafts_path(root, stage, part))
        if row.kind == "hard_negative"
    }
    return [
        replace(row, status="rejected", reason="on_both_sides")
        if row.status == "kept" and row.kind == "hard_positive" and (row.key, sameness(row.text)) in said
        else row
        for row in rows
    ]


def write_rows(root: Path, part: str, this: GeneratingStage, rows: Sequence[Annotation]) -> list[Path]:
    """Write the rows of a part, kept and rejected apart; return the files."""
    files = {this.place(root, part): "kept", rejected_path(root, this.stage, part): "rejected"}
    for path, status in files.items():
        ANNOTATIONS.write([row for row in rows if row.status == status], path)
    return list(files)
