"""Logistic regression on features of an edit: whether its text reads naturally, and whether it may be true of the image.

The weights of a classifier are a table of the lexicon, learned from edits that readers marked by
`tools.train_edit_classifier`. A feature without a row weighs nothing: no marked edit, or too few, had it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.tables import read_rows

LABELS: Final = ("natural", "possibly_true")
BIAS: Final = "bias"  # row of the weights that counts for every edit
NONE: Final = "-"  # in names of features: no such word; tables are read without the spaces around a cell

# Edits with at least the first probability of a natural text and at most the second of a true one go before the others.
PREFERRED_NATURAL: Final = 0.88
PREFERRED_POSSIBLY_TRUE: Final = 0.02

Feature = tuple[str, float]
Logits = tuple[float, float]  # of `LABELS`


class EditWeights:
    """The weights of a classifier.

    Args:
        table: name of the table in the lexicon.
    """

    def __init__(self, table: str) -> None:
        natural, possible = LABELS
        self._by_feature = {row["feature"]: (float(row[natural]), float(row[possible])) for row in read_rows(table)}
        self.bias: Logits = self._by_feature.pop(BIAS)

    def logits(self, features: Iterable[Feature]) -> Logits:
        """Return the sum of the weighted features for each label, without the bias."""
        weights, natural, possible = self._by_feature, 0.0, 0.0
        for name, value in features:
            if name in weights:
                of_natural, of_possible = weights[name]
                natural += value * of_natural
                possible += value * of_possible
        return natural, possible


@lru_cache(maxsize=8)
def load_weights(table: str) -> EditWeights:
    """Return the weights in a table of the lexicon."""
    return EditWeights(table)


def probabilities_of(parts: Iterable[Logits]) -> tuple[float, float]:
    """Return the probability of each of `LABELS`, given the logits of all features and the bias."""
    natural = possible = 0.0
    for of_natural, of_possible in parts:
        natural += of_natural
        possible += of_possible
    return 1 / (1 + math.exp(-natural)), 1 / (1 + math.exp(-possible))


@dataclass(frozen=True)
class EditClassifier:
    """What the constraints ask of a classifier.

    Attributes:
        probabilities: of each of `LABELS` for an edit.
        min_natural: least probability of a natural text.
        max_possibly_true: greatest probability of a text that may be true.
    """

    probabilities: Callable[[ProposedEdit, Knowledge], tuple[float, float]]
    min_natural: float
    max_possibly_true: float

    def judged(self, edit: ProposedEdit, known: Knowledge) -> ProposedEdit:
        """Return an edit with its probabilities."""
        return ProposedEdit(*edit[:-1], self.probabilities(edit, known))

    def is_unnatural(self, edit: ProposedEdit, known: Knowledge) -> bool:
        """Return whether readers would probably find the text of an edit odd."""
        return (edit.probabilities or self.probabilities(edit, known))[0] < self.min_natural

    def may_be_true(self, edit: ProposedEdit, known: Knowledge) -> bool:
        """Return whether an edit too often holds of the image as well."""
        return (edit.probabilities or self.probabilities(edit, known))[1] > self.max_possibly_true

    def prefers(self, edit: ProposedEdit, known: Knowledge) -> bool:
        """Return whether readers would very probably find the text of an edit natural, and false of the image."""
        natural, possibly_true = edit.probabilities or self.probabilities(edit, known)
        return natural >= PREFERRED_NATURAL and possibly_true <= PREFERRED_POSSIBLY_TRUE
