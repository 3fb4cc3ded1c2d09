"""Default vocabulary of template conversations: the categories of a COCO instances file, else a hint.

Existence questions can only be answered "no" for labels that a source annotates exhaustively. COCO's instances annotate
their categories exhaustively. LVIS, in the same layout, does not, and states so in its images.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pairwright.datasets.readers.coco import list_instance_files, read_categories
from pairwright.generators.lexicon.label_sets import set_of

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig

_GENERATOR = "template-conversations"


def coco_vocabulary(instances: str) -> tuple[tuple[str, ...], str]:
    """Return the exhaustively annotated categories of COCO instances, a file or a brace pattern of them, and a message.

    Raises:
        InputError: when it is not a COCO JSON.
    """
    first, *others = map(read_categories, list_instance_files(instances))
    labels = tuple(label for label in first if all(label in each for each in others))
    if not labels:
        return (), f"{instances}: has no exhaustively annotated categories to use as vocabulary."
    source = f"the {len(labels):,} categories of {instances}"
    return labels, f"Vocabulary: {source}, assumed to be annotated exhaustively. Name another one if they are not."


def config_with_vocabulary(config: "BuildConfig") -> "tuple[BuildConfig, str]":
    """Return a config with the vocabulary of its COCO instances if it needs one, and a message, or a hint.

    Raises:
        InputError: when the instances are not a COCO JSON.
    """
    section = config.conversations
    if section is None or not wants_vocabulary(_GENERATOR if section.method == "templates" else "", section.options()):
        return config, ""
    labels, message = coco_vocabulary(config.input.instances) if config.input.instances else ((), "")
    if not labels:
        return config, f"{message} {vocabulary_hint((), 'conversations.vocabulary')}".strip()
    return config.model_copy(update={"conversations": section.model_copy(update={"vocabulary": labels})}), message


def wants_vocabulary(generator: str, options: Mapping[str, Any]) -> bool:
    """Return whether a generator makes more questions with a vocabulary than with these options."""
    return generator == _GENERATOR and not options.get("vocabulary") and set(options.get("types", ())) != {"brief"}


def vocabulary_hint(labels: Collection[str], setting: str = "--vocabulary") -> str:
    """Return a message on what is missing without a vocabulary, and how to set one.

    Args:
        labels: of the boxes in the data.
        setting: name of the option or key.
    """
    known = set_of(labels) if labels else ""
    how = f"If the source annotates some labels exhaustively, set them with {setting} (coco: COCO's 80)."
    if known:
        how = f"The labels look like those of {known.upper()}: {setting} {known}."
    return f"{setting} is not set: existence and counting questions are skipped. {how}"
