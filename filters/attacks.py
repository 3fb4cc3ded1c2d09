"""How well a blind rule tells positives from negatives: the number that refinement has to bring to one half.

An *attack* picks the text of each row that a scorer likes better, without seeing the image. Its accuracy is
*folded*: a rule that is wrong in 70% of the rows is right in 70% when turned around, so it counts as 0.7. A tie,
or a row that the scorer could not score, is a coin toss and counts half.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairwright.generators.language.vocabulary import FloatArray, coded


@dataclass(frozen=True, slots=True)
class Attack:
    """Folded accuracy of one scorer on all rows and on the kept ones, each in 0.5-1."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Rows that came in, rows kept, and the attack of each scorer on them."""

    rows: int
    kept: int
    attacks: Mapping[str, Attack]

    def as_json(self) -> dict[str, object]:
        """Return this as JSON: ``in``, ``kept``, ``attacks`` (name to before and after)."""
        attacks = {name: {"before": each.before, "after": each.after} for name, each in self.attacks.items()}
        return {"in": self.rows, "kept": self.kept, "attacks": attacks}


def attack_accuracy(gaps: FloatArray) -> float:
    """Return the folded accuracy of picking the text with the higher score, in 0.5-1; 0.5 for no rows.

    Args:
        gaps: float64 (n,), score of the positive minus score of the negative; NaN for no score.
    """
    if not len(gaps):
        return 0.5
    wins, losses = int(np.count_nonzero(gaps > 0)), int(np.count_nonzero(gaps < 0))
    return 0.5 + abs(wins - losses) / (2 * len(gaps))


def standing(gaps: Mapping[str, FloatArray], kept: npt.NDArray[np.bool_]) -> Standing:
    """Return how the scorers fare on all rows and on the kept ones."""
    attacks = {name: Attack(attack_accuracy(gap), attack_accuracy(gap[kept])) for name, gap in gaps.items()}
    return Standing(len(kept), int(np.count_nonzero(kept)), attacks)


def standing_by(
    types: Sequence[str], gaps: Mapping[str, FloatArray], kept: npt.NDArray[np.bool_]
) -> dict[str, Standing]:
    """Return the `standing` of the rows of each type, types in alphabetical order."""
    names, member = coded(types)
    return {
        name: standing({scorer: gap[member == number] for scorer, gap in gaps.items()}, kept[member == number])
        for number, name in enumerate(names)
    }
