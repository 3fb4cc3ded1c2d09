"""Groups of rows for the folds of classifiers, in which mirrored rows are together.

In Winoground, ColorSwap, BiVLC and MMVP-VLM the caption of one image is the negative of another. Such a row has the
features of its mirror image with the opposite sign. If a classifier trains on one of the two, it prefers the wrong text of
the other, and is right on all rows when inverted, although text alone cannot tell which text is true.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pairwright.generators.language.vocabulary import IntArray, encode_names


def merge_mirrored_groups(groups: Sequence[str], positives: Sequence[str], negatives: Sequence[str]) -> list[str]:
    """Return the groups of rows, equal for groups with a row whose texts are those of a row of the other, exchanged.

    Args:
        groups: group of each row.
        positives: true text of each row.
        negatives: false text of each row.
    """
    names, numbers = encode_names(groups)
    pairs = list(zip(positives, negatives, strict=True))
    number = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    texts = np.array([number[pair] for pair in pairs], np.int64)
    mirrored = np.array([number.get((negative, positive), -1) for positive, negative in pairs], np.int64)
    return [names[group] for group in merge_mirrored_numbers(numbers, texts, mirrored).tolist()]


def merge_mirrored_numbers(
    groups: IntArray, texts: npt.NDArray[np.integer[Any]], mirrored: npt.NDArray[np.integer[Any]]
) -> IntArray:
    """Return `merge_mirrored_groups` of rows that are given as numbers.

    Args:
        groups: int64 (n,), group of each row.
        texts: (n,), equal for rows of equal texts.
        mirrored: (n,), what ``texts`` is of a row with the same texts exchanged.
    """
    order = np.argsort(texts, kind="stable")  # of equal texts, the last one is found
    place = np.searchsorted(texts[order], mirrored, side="right") - 1
    rows = np.flatnonzero((place >= 0) & (texts[order][place] == mirrored)) if len(texts) else order
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while (above := parent.get(group, group)) != group:
            group = above
        return group

    for group, mirror in zip(groups[rows].tolist(), groups[order[place[rows]]].tolist(), strict=True):
        low, high = sorted((root(group), root(mirror)))
        parent[high] = low
    return np.array([root(group) for group in groups.tolist()], np.int64) if parent else groups
