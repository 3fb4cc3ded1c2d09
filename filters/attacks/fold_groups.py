"""Groups of rows for the folds of classifiers, in which mirrored rows are together.

In Winoground, ColorSwap, BiVLC and MMVP-VLM the caption of one image is the negative of another. Such a row has the
features of its mirror image with the opposite sign. If a classifier trains on one of the two, it prefers the wrong text of
the other, and is right on all rows when inverted, although text alone cannot tell which text is true.
"""

from collections.abc import Sequence


def merge_mirrored_groups(groups: Sequence[str], positives: Sequence[str], negatives: Sequence[str]) -> list[str]:
    """Return the groups of rows, equal for groups with a row whose texts are those of a row of the other, exchanged.

    Args:
        groups: group of each row.
        positives: true text of each row.
        negatives: false text of each row.
    """
    parent: dict[str, str] = {}

    def root(group: str) -> str:
        while (above := parent.get(group, group)) != group:
            group = above
        return group

    group_of = dict(zip(zip(positives, negatives, strict=True), groups, strict=True))
    for positive, negative, group in zip(positives, negatives, groups, strict=True):
        mirror = group_of.get((negative, positive))
        if mirror is not None:
            low, high = sorted((root(group), root(mirror)))
            parent[high] = low
    return [root(group) for group in groups] if parent else list(groups)
