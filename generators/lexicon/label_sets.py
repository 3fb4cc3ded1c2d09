"""Label sets that a source annotates exhaustively: every instance of these labels has a box.

Only then does a missing box prove absence. Labels are grouped; an absent label of a group with a present one is the
more plausible subject of a question.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pairwright.generators.lexicon.tables import cell_words, grouped, read_rows

_SURELY = 4  # a set is recognised by at least one in so many of its labels

_ROWS: Final = tuple(
    (row["set"], row["group"], label) for row in read_rows("label_sets") for label in cell_words(row["labels"])
)
GROUP_OF: Final[Mapping[str, str]] = {label: group for _, group, label in _ROWS}
LABEL_SETS: Final[Mapping[str, tuple[str, ...]]] = grouped((name, label) for name, _, label in _ROWS)
COCO: Final = LABEL_SETS["coco"]  # the 80 categories of COCO's instances


def labels_of(vocabulary: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of a vocabulary in lower case, with names of label sets expanded."""
    named = (name.strip().lower() for name in vocabulary)
    return tuple(dict.fromkeys(label for name in named for label in LABEL_SETS.get(name, (name,)) if label))


def set_of(labels: Iterable[str]) -> str:
    """Return the name of the label set of a source, inferred from its labels; empty if unknown.

    All labels must be in the set and cover at least a quarter of it. This is a guess: report it to the user, who can
    name the vocabulary.
    """
    seen = {label.strip().lower() for label in labels}
    for name, known in LABEL_SETS.items():
        if seen <= set(known) and len(seen) * _SURELY >= len(known):
            return name
    return ""
