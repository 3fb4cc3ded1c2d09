"""Which generating stages a build has, in order, and which pairs reach them."""

from collections.abc import Mapping
from typing import Any

from pairwright.flows.chosen import Choice
from pairwright.flows.config import BuildConfig
from pairwright.flows.sections import ConversationsSection, NegativesSection, PositivesSection
from pairwright.flows.stages.generate import Generation


def choice_of(config: BuildConfig) -> Choice:
    """Return which pairs of a build go on after retrieval and fetching."""
    if config.fetch:
        return "fetched"
    return "retrieved" if config.retrieve else "all"


def generations(config: BuildConfig) -> list[Generation]:
    """Return the generating stages of a build, in order."""
    choice = choice_of(config)

    def stage(name: str, generator: str, options: Mapping[str, Any], *, to_refine: bool = False) -> Generation:
        unlike = ("negatives",) if name == "positives" and config.negatives else ()
        to_balance = limited_section(config, name) is not None
        return Generation(name, generator, options, config.seed, choice, to_refine, to_balance, unlike)

    stages = []
    if config.negatives:
        made = stage("negatives", *_maker(config.negatives, "negatives"), to_refine=config.refine is not None)
        stages.append(made)
    if config.positives:
        stages.append(stage("positives", *_maker(config.positives, "positives")))
    if config.conversations:
        method = "llm" if config.conversations.method == "llm" else "template"
        stages.append(stage("conversations", f"{method}-conversations", config.conversations.options()))
    to_refine = config.refine is not None  # a generator of the user's own may make hard negatives too
    return stages + [stage(extra.name, extra.name, extra.options, to_refine=to_refine) for extra in config.generators]


def limited_section(
    config: BuildConfig, stage: str
) -> NegativesSection | PositivesSection | ConversationsSection | None:
    """Return the section that limits what a stage made; None where there is none.

    A model is asked for no more conversations than are wanted, so there is nothing to limit afterwards.
    """
    talks = config.conversations
    if stage == "conversations":
        return talks if talks and talks.counts and talks.method == "templates" else None
    if stage == "negatives":
        return config.negatives
    return config.positives if stage == "positives" else None


def _maker(section: NegativesSection | PositivesSection, what: str) -> tuple[str, dict[str, Any]]:
    """Return the generator that a section names, and its options."""
    return f"{section.method}-{what}", section.options()
