"""Label sets that a source annotates exhaustively: in every image, every thing of these labels has a box.

Only then does a missing box prove that something is absent. Labels stand in groups; what is absent but of a group with
something present is the more plausible thing to ask about.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pairwright.generators.lexicon.nouns import cell_words
from pairwright.generators.lexicon.tables import read_rows

_SURELY = 4  # labels of a set for each one that is seen

_ROWS: Final = tuple(
    (row["set"], row["group"], label) for row in read_rows("label_sets") for label in cell_words(row["labels"])
)
GROUP_OF: Final[Mapping[str, str]] = {label: group for _, group, label in _ROWS}
LABEL_SETS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(label for other, _, label in _ROWS if other == name) for name in dict.fromkeys(row[0] for row in _ROWS)
}
COCO: Final = LABEL_SETS["coco"]  # the 80 categories of COCO's instances


def labels_of(vocabulary: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels that a setting names, in lower case: those of the sets whose names stand in it, and all others."""
    named = (name.strip().lower() for name in vocabulary)
    return tuple(dict.fromkeys(label for name in named for label in LABEL_SETS.get(name, (name,)) if label))


def set_of(labels: Iterable[str]) -> str:
    """Return the name of the label set that a source's labels are from; empty: of none that is known.

    All of them are in it, and they are at least a quarter of it, so that it is no chance. It is still a guess: tell
    the user, and let the vocabulary be named.
    """
    seen = {label.strip().lower() for label in labels}
    for name, known in LABEL_SETS.items():
        if seen <= set(known) and len(seen) * _SURELY >= len(known):
            return name
    return ""
