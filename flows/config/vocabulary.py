"""The vocabulary of template conversations where none is named: that of a COCO instances file, or a hint how to name one.

Only where a source marks every thing of a label does a missing box prove that there is none, so that a question can be
answered "no". COCO's instances do so for their categories. LVIS, in the same layout, does not, and says so in its images.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.readers.coco import read_categories
from pairwright.flows.config.build import BuildConfig
from pairwright.generators.words.label_sets import set_of

_MAKER = "template-conversations"


def coco_vocabulary(instances: str) -> tuple[tuple[str, ...], str]:
    """Return the categories of a COCO instances file that can serve as vocabulary, and a line that says so.

    Raises:
        InputError: when it is no COCO JSON.
    """
    labels = read_categories(Path(instances))
    if not labels:
        return (), f"{instances}: holds no categories of which it marks every thing, so it gives no vocabulary."
    many = f"the {len(labels):,} categories of {instances}"
    return labels, f"Vocabulary: {many}, as if every thing of theirs were marked. Name another one if not."


def config_with_vocabulary(config: BuildConfig) -> tuple[BuildConfig, str]:
    """Return a build's config with the vocabulary of its COCO instances where it names none, and a line on it, or a hint.

    Raises:
        InputError: when the instances are no COCO JSON.
    """
    talks = config.conversations
    if talks is None or not wants_vocabulary(_MAKER if talks.method == "templates" else "", talks.options()):
        return config, ""
    labels, told = coco_vocabulary(config.input.instances) if config.input.instances else ((), "")
    if not labels:
        return config, f"{told} {vocabulary_hint((), 'conversations.vocabulary')}".strip()
    return config.model_copy(update={"conversations": talks.model_copy(update={"vocabulary": labels})}), told


def wants_vocabulary(generator: str, options: Mapping[str, Any]) -> bool:
    """Say whether a generator would ask more with a vocabulary than with these options."""
    return generator == _MAKER and not options.get("vocabulary") and set(options.get("types", ())) != {"brief"}


def vocabulary_hint(labels: Collection[str], setting: str = "--vocabulary") -> str:
    """Return what is missing without a vocabulary, and how to name one.

    Args:
        labels: of the boxes that were seen.
        setting: that names it.
    """
    known = set_of(labels) if labels else ""
    how = f"If the source marks every thing of some labels, name these with {setting} (coco: COCO's 80)."
    if known:
        how = f"The labels look like {known.upper()}'s: {setting} {known}."
    return f"No vocabulary: nobody asks what is there or how many, and nothing is said not to be there. {how}"
