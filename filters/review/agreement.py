"""How far reviewers agree, and what a sample says of the rest: Cohen's kappa and Wilson's interval.

Kappa (Cohen 1960) is the share of agreement beyond what two people would reach by chance who use the words as often as
these two do: (observed - expected) / (1 - expected). 1 is full agreement, 0 chance, below 0 less than that.

Wilson's score interval (Wilson 1927) bounds a share that was seen in a sample. Unlike the plain normal interval it is
right where nothing or everything was found: 0 of 100 is at most 3.7%, not 0%.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist


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


def agreement(pairs: Sequence[tuple[str, str]]) -> Agreement:
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


def wilson(found: int, seen: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the bounds, 0-1, of a share of which ``found`` of ``seen`` were found; (0, 1) when none was seen."""
    if not seen:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = found / seen, z * z / seen
    middle = share + spread / 2
    reach = z * math.sqrt(share * (1 - share) / seen + spread / seen / 4)
    low = 0.0 if not found else (middle - reach) / (1 + spread)
    high = 1.0 if found == seen else (middle + reach) / (1 + spread)
    return low, high
