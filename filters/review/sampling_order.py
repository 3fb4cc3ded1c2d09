"""The order in which rows are reviewed, such that any beginning of it is a fair sample.

Rows of each type are put into an order by chance (of the seed and their ids alone, so that the order of the input
changes nothing), and spread evenly over the whole: row k of n rows of a type stands at (k + u) / n, with one u in [0, 1)
a type by chance. So the first N rows hold each type in its proportion, give or take one; every row is in them with the
same probability; and a larger sample begins with the smaller one, whose decisions stay of use.
"""

from collections import defaultdict
from collections.abc import Sequence

from pairwright.datasets.rng import make_rng

NAME = "review"


def review_order(ids: Sequence[str], types: Sequence[str], seed: int) -> list[int]:
    """Return the positions of the rows in the order of review.

    Args:
        ids: of the rows; each once.
        types: of the rows.
        seed: another seed, another order.
    """
    members: defaultdict[str, list[int]] = defaultdict(list)
    for row, kind in enumerate(types):
        members[kind].append(row)
    places: list[tuple[float, str, int]] = []
    for kind, rows in members.items():
        drawn = sorted(rows, key=lambda row: (make_rng(seed, NAME, ids[row]).random(), ids[row]))
        start = make_rng(seed, f"{NAME}-start", kind).random()
        places += [((k + start) / len(rows), kind, row) for k, row in enumerate(drawn)]
    return [row for _, _, row in sorted(places)]
