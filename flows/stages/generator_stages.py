"""Stages of a build that run a generator: which one, on which pairs, and where its rows go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.records import Annotation
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.config.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.state.layout import annotations_path, candidates_path, drafts_path, rejected_path
from pairwright.flows.state.selected_pairs import PairSelection


@dataclass(frozen=True)
class GeneratingStage:
    """A generating stage.

    Attributes:
        name: of the stage; it names its files.
        generator: a name in the registry.
        options: of the generator.
        seed: of the build.
        selection: the pairs that get texts.
        to_refine: whether refinement judges the kept rows afterwards.
        to_balance: whether they are balanced first.
        exclude_texts_of: stages whose hard negatives, in ``drafts/``, its hard positives must not repeat.
    """

    name: str
    generator: str
    options: Mapping[str, Any]
    seed: int
    selection: PairSelection
    to_refine: bool
    to_balance: bool = False
    exclude_texts_of: tuple[str, ...] = ()

    def kept_path(self, root: Path, part: str) -> Path:
        """Return the file of the kept rows of a part."""
        path = drafts_path if self.to_balance else candidates_path if self.to_refine else annotations_path
        return path(root, self.name, part)

    def write_rows(self, root: Path, part: str, rows: Sequence[Annotation]) -> list[Path]:
        """Write the rows of a part, kept and rejected ones into a file each; return the files."""
        files = {self.kept_path(root, part): "kept", rejected_path(root, self.name, part): "rejected"}
        for path, status in files.items():
            ANNOTATIONS.write([row for row in rows if row.status == status], path)
        return list(files)


def selection_of(config: BuildConfig) -> PairSelection:
    """Return which pairs of a build remain after retrieval and fetching."""
    if config.fetch:
        return "fetched"
    return "retrieved" if config.retrieve else "all"


def generating_stages(config: BuildConfig) -> list[GeneratingStage]:
    """Return the generating stages of a build, in order."""
    selection, refined = selection_of(config), config.refine is not None

    def stage(name: str, generator: str, options: Mapping[str, Any], *, to_refine: bool = False) -> GeneratingStage:
        excluded = ("negatives",) if name == "positives" and config.negatives else ()
        to_balance = quota_section(config, name) is not None
        return GeneratingStage(name, generator, options, config.seed, selection, to_refine, to_balance, excluded)

    stages = []
    if section := config.negatives:
        stages.append(stage("negatives", f"{section.method}-negatives", section.options(), to_refine=refined))
    if positives := config.positives:
        stages.append(stage("positives", f"{positives.method}-positives", positives.options()))
    if conversations := config.conversations:
        method = "llm" if conversations.method == "llm" else "template"
        stages.append(stage("conversations", f"{method}-conversations", conversations.options()))
    # A third-party generator may make hard negatives too.
    return stages + [stage(extra.name, extra.name, extra.options, to_refine=refined) for extra in config.generators]


def generating_stage(config: BuildConfig, name: str) -> GeneratingStage:
    """Return the generating stage ``name`` of a build."""
    return next(stage for stage in generating_stages(config) if stage.name == name)


def refined_stages(config: BuildConfig) -> list[str]:
    """Return the names of the generating stages whose rows refinement judges."""
    return [stage.name for stage in generating_stages(config) if stage.to_refine]


def quota_section(config: BuildConfig, stage: str) -> NegativesSection | PositivesSection | ConversationsSection | None:
    """Return the section that limits what a generating stage made; None where no limit applies.

    A model is asked for no more conversations than are wanted, so nothing is limited afterwards.
    """
    conversations = config.conversations
    if stage == "conversations":
        limited = conversations and conversations.counts and conversations.method == "templates"
        return conversations if limited else None
    if stage == "negatives":
        return config.negatives
    return config.positives if stage == "positives" else None


def remaining_quota(quota: Mapping[str, int], before: Mapping[str, Any], stage: str, used: str) -> dict[str, int]:
    """Return what an increment may still add to each type.

    Args:
        quota: texts of each type in all versions together.
        before: manifest of the version before.
        stage: whose ``limits`` in that manifest count.
        used: key of the count there: ``given`` (kept) or ``available`` (made).
    """
    limits = before["stages"].get(stage, {}).get("facts", {}).get("limits", {})
    return {kind: max(0, most - limits.get(kind, {}).get(used, 0)) for kind, most in quota.items()}
