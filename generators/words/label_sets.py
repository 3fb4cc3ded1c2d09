"""Label sets that a source annotates exhaustively: in every image, every thing of these labels has a box.

Only then does a missing box prove that something is absent. Labels stand in groups; what is absent but of a group with
something present is the more plausible thing to ask about.
"""

from collections.abc import Iterable, Mapping

_SURELY = 4  # labels of a set for each one that is seen

_COCO = {
    "person": "person",
    "vehicle": "bicycle|car|motorcycle|airplane|bus|train|truck|boat",
    "outdoor": "traffic light|fire hydrant|stop sign|parking meter|bench",
    "animal": "bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe",
    "accessory": "backpack|umbrella|handbag|tie|suitcase",
    "sports": (
        "frisbee|skis|snowboard|sports ball|kite|baseball bat|baseball glove|skateboard|surfboard|tennis racket"
    ),
    "kitchen": "bottle|wine glass|cup|fork|knife|spoon|bowl",
    "food": "banana|apple|sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake",
    "furniture": "chair|couch|potted plant|bed|dining table|toilet",
    "electronic": "tv|laptop|mouse|remote|keyboard|cell phone",
    "appliance": "microwave|oven|toaster|sink|refrigerator",
    "indoor": "book|clock|vase|scissors|teddy bear|hair drier|toothbrush",
}

GROUP_OF: Mapping[str, str] = {label: group for group, labels in _COCO.items() for label in labels.split("|")}
COCO: tuple[str, ...] = tuple(GROUP_OF)  # the 80 categories of COCO's instances

LABEL_SETS: Mapping[str, tuple[str, ...]] = {"coco": COCO}


def labels_of(vocabulary: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels that a setting names, in lower case: those of the sets whose names stand in it, and all others."""
    named = (name.strip().lower() for name in vocabulary)
    return tuple(dict.fromkeys(label for name in named for label in LABEL_SETS.get(name, (name,)) if label))


def set_of(labels: Iterable[str]) -> str:
    """Return the name of the label set that a source's labels are from; empty: of none that is known.

    All of them are in it, and they are at least a quarter of it, so that it is no chance. It is still a guess: tell
    the user, and let the vocabulary be named.
    """
    seen = {label.strip().lower() for label in labels}
    for name, known in LABEL_SETS.items():
        if seen <= set(known) and len(seen) * _SURELY >= len(known):
            return name
    return ""
