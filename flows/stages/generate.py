"""Stages ``negatives``, ``positives``, ``conversations`` and third-party ones: a generator over the parts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation
from pairwright.flows.stages.generator_stages import GeneratingStage, generating_stage, remaining_quota
from pairwright.flows.stages.tag import load_pool, statistics_path
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import drafts_path, pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selected_pairs import selection_mask
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.edit_model import EditModel, pool_or_bundled
from pairwright.generators.edits.written.sentence_extraction import comparison_key
from pairwright.generators.language.token_storage import read_tokens
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.language.wordnet_table import table_path
from pairwright.generators.protocols import AnyLLMGenerator, RuleGenerator, annotate_pairs
from pairwright.generators.registry import BUILT_IN, Materials, build_generator, generator_fingerprint

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
        self.files += self.stage.write_rows(self.root, part, rows)
        self.counts.add(rows)

    def result(self, generator: RuleGenerator | AnyLLMGenerator, **facts: Any) -> JobResult:
        """Return the result of the job; the unit is an attempt."""
        by_type = self.counts.by_type()
        made, kept = (sum(counts[name] for counts in by_type.values()) for name in ("made", "kept"))
        counts = Counts("attempt", made, kept, self.counts.reasons())
        return JobResult(
            self.files, counts, {"generator": f"{generator.name}/{generator.version}", "by_type": by_type, **facts}
        )


def generate_part(root: Path, part: str, stage: GeneratingStage) -> JobResult:
    """Run a generator over the selected pairs of a part; see `PartOutputs`."""
    generator = _generator_of(root, stage)
    outputs = PartOutputs(root, stage)
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    flagged = zip(pairs, tokens, selection_mask(root, part, pairs, stage.selection), strict=True)
    selected = (
        (pair, words) for pair, words, chosen in track(flagged, "writing texts", len(pairs), "captions") if chosen
    )
    outputs.write(part, annotate_pairs(generator, selected, stage.seed))
    return outputs.result(generator)


def _generator_of(root: Path, stage: GeneratingStage) -> RuleGenerator:
    """Return the generator of a stage; a process keeps one of ours, which remembers words and edits, for its next part.

    What it remembers changes no text. A third-party generator may count what it has made: it starts again in each part.
    """
    materials = materials_of(root, stage.seed)
    if stage.generator not in BUILT_IN:
        return build_generator(stage.generator, materials, stage.options)
    return _keep_generator(_Construction(stage.generator, id(materials), repr(stage.options), materials, stage.options))


@dataclass(frozen=True)
class _Construction:
    """How a generator is constructed; compared by name, identity of the materials and text of the options."""

    name: str
    materials_id: int
    written_options: str
    materials: Materials = field(compare=False)
    options: Mapping[str, Any] = field(compare=False)


@lru_cache(maxsize=1)
def _keep_generator(construction: _Construction) -> RuleGenerator:
    return build_generator(construction.name, construction.materials, construction.options)


def materials_of(root: Path, seed: int) -> Materials:
    """Return the resources of a build's generators, which a process keeps for its next part."""
    path = statistics_path(root)
    files = [file for file in (path, *EditModel.files(path.parent)) if file.is_file()]
    return _load_materials(path, seed, file_state(files))


@lru_cache(maxsize=1)
def _load_materials(path: Path, seed: int, _state: str) -> Materials:
    wordnet = load_wordnet()
    pool = pool_or_bundled(load_pool(path))
    return Materials(wordnet, pool, seed, EditModel.for_statistics(path))


def _reject_positives_among_negatives(
    root: Path, part: str, stage: GeneratingStage, rows: Sequence[Annotation]
) -> list[Annotation]:
    """Return the rows, with hard positives rejected that equal a hard negative of the same caption."""
    negatives = {
        (key, comparison_key(text))
        for other in stage.exclude_texts_of
        for key, text, kind in ANNOTATIONS.read_frame(
            drafts_path(root, other, part), ("key", "text", "kind")
        ).iter_rows()
        if kind == "hard_negative"
    }
    return [
        replace(row, status="rejected", reason="on_both_sides")
        if row.status == "kept" and row.kind == "hard_positive" and (row.key, comparison_key(row.text)) in negatives
        else row
        for row in rows
    ]
