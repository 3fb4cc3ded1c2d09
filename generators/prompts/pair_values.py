"""What prompts are given of a pair, under the names that our prompts use."""

from typing import Any

from pairwright.datasets.records import Pair

DECIMALS = 3  # of box corners: a thousandth of the width, as LLaVA's contexts have them


def pair_values(pair: Pair) -> dict[str, Any]:
    """Return the values of a pair.

    Returns:
        ``caption``: the caption. ``captions``: it and the others, in order. ``known``: what else is said of the image,
        the other captions and then the labels of boxes, each once. ``boxes``: ``[label, [x1, y1, x2, y2]]`` each, all
        of them, so that ``more``, the labels and numbers of those left out, is empty. ``sees``: False, since the image
        itself is not shown. ``types``: empty, since all are wanted.
    """
    labels = (box.label for box in pair.boxes)
    return {
        "caption": pair.caption,
        "captions": [pair.caption, *pair.captions],
        "known": [text for text in dict.fromkeys((*pair.captions, *labels)) if text != pair.caption],
        "boxes": [
            [box.label, [round(edge, DECIMALS) for edge in (box.x1, box.y1, box.x2, box.y2)]] for box in pair.boxes
        ],
        "more": [],
        "sees": False,
        "types": [],
    }
