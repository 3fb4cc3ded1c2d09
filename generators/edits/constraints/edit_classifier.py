"""Logistic regression on features of an edit: whether its text reads naturally, and whether it may be true of the image.

The weights of a classifier are a table of the lexicon, learned from edits that readers marked by
`tools.train_edit_classifier`. A feature without a row weighs nothing: no marked edit, or too few, had it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.lexicon.tables import read_rows

LABELS: Final = ("natural", "possibly_true")
BIAS: Final = "bias"  # row of the weights that counts for every edit
NONE: Final = "-"  # in names of features: no such word; tables are read without the spaces around a cell

PREFERRED_NATURAL: Final = 0.88  # probability of a natural text from which an edit goes before the others
PREFERRED_POSSIBLY_TRUE: Final = 0.02  # probability of a true text up to which it does

FloatArray = npt.NDArray[np.floating[Any]]
Feature = tuple[str, float]
CandidateFeature = tuple[str, FloatArray]  # one value for each candidate
Logits = tuple[float, float]  # of `LABELS`


class Candidates(NamedTuple):
    """Words that may replace those of some slots, of any captions: n candidates.

    Attributes:
        places: an edit for each slot; its new word does not matter.
        at: index into ``places`` of each candidate, int64 (n,).
        new: the words.
        log_probs: natural logarithms of their probabilities by the cloze model, shape (n,).
    """

    places: Sequence[ProposedEdit]
    at: npt.NDArray[np.int64]
    new: Sequence[str]
    log_probs: FloatArray

    @classmethod
    def of_slot(cls, place: ProposedEdit, new: Sequence[str], log_probs: FloatArray) -> "Candidates":
        """Return the candidates of one slot."""
        return cls([place], np.zeros(len(new), np.int64), new, log_probs)


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

    def candidate_logits(self, features: Iterable[CandidateFeature]) -> FloatArray:
        """Return the same for n candidates, float64 (2, n)."""
        found = [np.outer(self._by_feature[name], values) for name, values in features if name in self._by_feature]
        return np.asarray(sum(found))  # in the same order on every processor, whatever is judged together


@lru_cache(maxsize=8)
def load_weights(table: str) -> EditWeights:
    """Return the weights in a table of the lexicon."""
    return EditWeights(table)


def probabilities_of(logits: FloatArray) -> FloatArray:
    """Return the probabilities of logits."""
    return np.asarray(1 / (1 + np.exp(-logits)))


@dataclass(frozen=True)
class EditClassifier:
    """What the rules ask of a classifier.

    Attributes:
        judge: returns the probability of each of `LABELS` for n candidates, float64 (2, n), given what is known of a pool.
        constraints: ids of those that reject unnatural edits, and edits that may be true.
        min_natural: least probability of a natural text.
        max_possibly_true: greatest probability of a text that may be true.
    """

    judge: Callable[[Candidates, Knowledge], FloatArray]
    constraints: tuple[str, str]
    min_natural: float
    max_possibly_true: float

    def demanded_by(self, constraints: Collection[str]) -> "EditClassifier | None":
        """Return it with the bounds that some constraints demand; None if none of them asks it."""
        natural, possible = (each in constraints for each in self.constraints)
        if not natural and not possible:
            return None
        return replace(
            self,
            min_natural=self.min_natural if natural else 0.0,
            max_possibly_true=self.max_possibly_true if possible else 1.0,
        )

    def probabilities(
        self, edit: ProposedEdit, new: Sequence[str], log_probs: FloatArray, known: Knowledge
    ) -> FloatArray:
        """Return the probabilities for the candidates of one slot, float64 (2, n)."""
        return self.judge(Candidates.of_slot(edit, new, log_probs), known)

    def is_unnatural(self, edit: ProposedEdit, known: Knowledge) -> bool:
        """Return whether readers would probably find the text of an edit odd."""
        return self._of_edit(edit, known)[0] < self.min_natural

    def may_be_true(self, edit: ProposedEdit, known: Knowledge) -> bool:
        """Return whether an edit too often holds of the image as well."""
        return self._of_edit(edit, known)[1] > self.max_possibly_true

    def _of_edit(self, edit: ProposedEdit, known: Knowledge) -> list[float]:
        found = self.probabilities(edit, [edit.new], np.array([edit.log_prob]), known)
        return [float(value) for value in found[:, 0]]


def are_preferred(probabilities: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which edits readers would very probably find natural, and false of the image; for (2, n) probabilities."""
    natural, possibly_true = probabilities
    return np.asarray((natural >= PREFERRED_NATURAL) & (possibly_true <= PREFERRED_POSSIBLY_TRUE))
