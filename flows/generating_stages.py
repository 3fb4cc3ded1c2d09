"""Which generating stages a build has, in order, and which pairs reach them."""

from collections.abc import Mapping
from typing import Any

from pairwright.flows.config.build import BuildConfig
from pairwright.flows.config.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.stages.generate import GeneratingStage
from pairwright.flows.state.selection import PairSelection


def selection_of(config: BuildConfig) -> PairSelection:
    """Return which pairs of a build go on after retrieval and fetching."""
    if config.fetch:
        return "fetched"
    return "retrieved" if config.retrieve else "all"


def generating_stages(config: BuildConfig) -> list[GeneratingStage]:
    """Return the generating stages of a build, in order."""
    choice = selection_of(config)

    def stage(name: str, generator: str, options: Mapping[str, Any], *, to_refine: bool = False) -> GeneratingStage:
        unlike = ("negatives",) if name == "positives" and config.negatives else ()
        to_balance = quota_section(config, name) is not None
        return GeneratingStage(name, generator, options, config.seed, choice, to_refine, to_balance, unlike)

    stages = []
    if config.negatives:
        made = stage("negatives", *_generator_of(config.negatives, "negatives"), to_refine=config.refine is not None)
        stages.append(made)
    if config.positives:
        stages.append(stage("positives", *_generator_of(config.positives, "positives")))
    if config.conversations:
        method = "llm" if config.conversations.method == "llm" else "template"
        stages.append(stage("conversations", f"{method}-conversations", config.conversations.options()))
    to_refine = config.refine is not None  # a generator of the user's own may make hard negatives too
    return stages + [stage(extra.name, extra.name, extra.options, to_refine=to_refine) for extra in config.generators]


def quota_section(config: BuildConfig, stage: str) -> NegativesSection | PositivesSection | ConversationsSection | None:
    """Return the section that limits what a stage made; None where there is none.

    A model is asked for no more conversations than are wanted, so there is nothing to limit afterwards.
    """
    talks = config.conversations
    if stage == "conversations":
        return talks if talks and talks.counts and talks.method == "templates" else None
    if stage == "negatives":
        return config.negatives
    return config.positives if stage == "positives" else None


def _generator_of(section: NegativesSection | PositivesSection, what: str) -> tuple[str, dict[str, Any]]:
    """Return the generator that a section names, and its options."""
    return f"{section.method}-{what}", section.options()
