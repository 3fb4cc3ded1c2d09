"""How far reviewers agree: Cohen's kappa.

Kappa (Cohen 1960) is the share of agreement beyond what two people would reach by chance who use the words as often as
these two do: (observed - expected) / (1 - expected). 1 is full agreement, 0 chance, below 0 less than that.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two people's words on the same rows.

    Attributes:
        rows: on which both said something.
        agreed: share on which they said the same, 0-1; NaN without rows.
        kappa: -1 to 1; NaN without rows, and when both said one and the same word throughout.
        table: (word of the first, word of the second) to number of rows.
    """

    rows: int
    agreed: float
    kappa: float
    table: Counter[tuple[str, str]]


def reviewer_agreement(pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Return how far two people agree.

    Args:
        pairs: the word of the first and of the second, row by row.
    """
    rows, table = len(pairs), Counter(pairs)
    if not rows:
        return Agreement(0, math.nan, math.nan, table)
    first, second = (Counter(words) for words in zip(*pairs, strict=True))
    same = sum(count for (one, other), count in table.items() if one == other)
    by_chance = sum(count * second[word] for word, count in first.items())  # of rows * rows
    kappa = (same * rows - by_chance) / (rows * rows - by_chance) if by_chance < rows * rows else math.nan
    return Agreement(rows, same / rows, kappa, table)
