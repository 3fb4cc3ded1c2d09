"""Generating stages: ``negatives``, ``positives``, ``conversations`` and third-party generators, one job per part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation
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
from pairwright.generators.language.token_table import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.protocols import LLMGenerator, RuleGenerator, pair_rng
from pairwright.generators.registry import Materials, build_generator


@dataclass(frozen=True)
class GeneratingStage:
    """Settings of a generating stage.

    Attributes:
        stage: name of the stage and of its files.
        generator: name of the generator in the registry.
        options: options of the generator.
        seed: seed of the build.
        choice: which pairs are annotated.
        to_refine: whether kept rows are refined later.
        to_balance: whether kept rows are balanced first.
        unlike: stages with rows in ``drafts/`` whose hard negatives must not equal this stage's hard positives.
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
        """Return the file of the kept rows of a part."""
        path = drafts_path if self.to_balance else candidates_path if self.to_refine else annotations_path
        return path(root, self.stage, part)


@dataclass
class PartOutputs:
    """Rows of a generating stage, written by part and counted.

    Attributes:
        root: folder of the build.
        stage: the stage.
        files: written so far.
        counts: of the rows written so far.
    """

    root: Path
    stage: GeneratingStage
    files: list[Path] = field(default_factory=list)
    counts: AnnotationCounts = field(default_factory=AnnotationCounts)

    def write(self, part: str, made: Iterable[Sequence[Annotation]]) -> None:
        """Write the rows of a part, kept and rejected in separate files.

        Kept rows go to ``annotations/``, or to ``drafts/`` or ``candidates/`` if they are balanced or refined later;
        rejected ones, with their reasons, to ``rejected/``.
        """
        rows = _reject_positives_among_negatives(self.root, part, self.stage, [row for each in made for row in each])
        files = {
            self.stage.place(self.root, part): "kept",
            rejected_path(self.root, self.stage.stage, part): "rejected",
        }
        for path, status in files.items():
            ANNOTATIONS.write([row for row in rows if row.status == status], path)
        self.files += files
        self.counts.add(rows)

    def result(self, generator: RuleGenerator | LLMGenerator, **facts: Any) -> JobResult:
        """Return the result of the job; the unit is an attempt."""
        by_type = self.counts.by_type()
        made, kept = (sum(counts[name] for counts in by_type.values()) for name in ("made", "kept"))
        counts = Counts("attempt", made, kept, self.counts.reasons())
        return JobResult(
            self.files, counts, {"generator": f"{generator.name}/{generator.version}", "by_type": by_type, **facts}
        )


def generate_part(root: Path, part: str, this: GeneratingStage) -> JobResult:
    """Run a generator over the selected pairs of a part; see `PartOutputs`."""
    generator = build_generator(this.generator, materials_of(root, this.seed), this.options)
    outputs = PartOutputs(root, this)
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    flagged = zip(pairs, tokens, selection_mask(root, pairs, this.choice), strict=True)
    outputs.write(
        part,
        (
            generator.annotate(pair, words, pair_rng(generator, this.seed, pair))
            for pair, words, selected in track(flagged, "writing texts", len(pairs), "captions")
            if selected
        ),
    )
    return outputs.result(generator)


def materials_of(root: Path, seed: int) -> Materials:
    """Return the resources of a build's generators."""
    wordnet = load_wordnet()
    return Materials(wordnet, pool_or_general_english(PoolStatistics.load(statistics_path(root)), wordnet), seed)


def _reject_positives_among_negatives(
    root: Path, part: str, this: GeneratingStage, rows: Sequence[Annotation]
) -> list[Annotation]:
    """Return the rows, with hard positives rejected that equal a hard negative of the same caption."""
    negatives = {
        (row.key, sameness(row.text))
        for stage in this.unlike
        for row in ANNOTATIONS.read(drafts_path(root, stage, part))
        if row.kind == "hard_negative"
    }
    return [
        replace(row, status="rejected", reason="on_both_sides")
        if row.status == "kept" and row.kind == "hard_positive" and (row.key, sameness(row.text)) in negatives
        else row
        for row in rows
    ]
