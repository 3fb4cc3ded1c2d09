"""Proposer of swaps: by caption, with scores of the cloze model in one batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.floors import SWAP_FLOOR
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.swaps.attributes import swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.fit import ClozeFit, SpanSwap
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapProposal

SWAP_TYPES: Final = {"swap-object": swap_objects, "swap-attribute": swap_attributes}
MAX_COMPARED: Final = 512  # swaps of a caption whose fit is compared; photographs' captions of 5,000 characters have 80


@dataclass(frozen=True, slots=True)
class SwapProposals:
    """Proposed swaps of one caption.

    Attributes:
        reasons: reason codes of rejections.
        changes: of each swap.
        log_ratio: natural logarithm of the weight of each swap, float32.
    """

    reasons: Sequence[str]
    changes: Sequence[tuple[Change, ...]]
    log_ratio: FloatArray

    def outcome(self, at: int) -> tuple[Change, ...]:
        """Return the changes of swap ``at``."""
        return self.changes[at]


class Swaps:
    """Proposes swaps.

    Args:
        materials: of the pool.
        types: of `SWAP_TYPES`.
        skip: ids of constraints that are not applied.
    """

    def __init__(self, materials: EditMaterials, types: Sequence[str], skip: frozenset[str] = frozenset()) -> None:
        self._types, self._known = types, materials.knowledge
        self._constraints = applicable_constraints("hard_negative", "swap", "attribute", by_rules=True, skip=skip)
        self._fit = ClozeFit(materials.model.cloze, materials.knowledge.thesaurus)

    def propose(self, captions: Sequence[Caption]) -> dict[str, list[SwapProposals]]:
        """Return by type the weighted swaps of each caption, independent of the other captions."""
        proposed = {name: list[list[SwapProposal | str]]() for name in self._types}
        for caption in captions:
            pairs = swapped_pairs(caption, self._known, self._constraints)
            for name, found in proposed.items():
                swaps = [reason or SWAP_TYPES[name](caption, self._known, one, other) for one, other, reason in pairs]
                found.append(_nearest(swaps))
        return {name: self._weighed(captions, found) for name, found in proposed.items()}

    def _weighed(
        self, captions: Sequence[Caption], proposed: Sequence[Sequence[SwapProposal | str]]
    ) -> list[SwapProposals]:
        """Return the proposed swaps of each caption with their weights, without those below the floor."""
        exchanges = [
            SpanSwap(caption, *each.spans)
            for caption, found in zip(captions, proposed, strict=True)
            for each in found
            if not isinstance(each, str) and each.spans is not None
        ]
        ratios, weighed = iter(self._fit.ratios(exchanges)), list[SwapProposals]()
        for found in proposed:
            reasons, changes, weights = list[str](), list[tuple[Change, ...]](), list[float]()
            for each in found:
                if isinstance(each, str):
                    reasons.append(each)
                    continue
                weight = each.weight if each.spans is None else next(ratios)
                if weight >= SWAP_FLOOR:
                    changes.append(each.changes)
                    weights.append(weight)
                else:
                    reasons.append("no_candidate")
            weighed.append(SwapProposals(reasons, changes, np.log(np.array(weights, np.float32))))
        return weighed


def _nearest(swaps: Sequence[SwapProposal | str]) -> list[SwapProposal | str]:
    """Return the swaps of a caption with a reason for each one beyond the `MAX_COMPARED` nearest.

    A dense text has so many that comparing all would take minutes: a list of coloured things, that of every two of them.
    """
    found = list(swaps)
    distance = {
        at: each.spans[1][0] - each.spans[0][1]
        for at, each in enumerate(swaps)
        if not isinstance(each, str) and each.spans is not None
    }
    for at in sorted(distance, key=distance.__getitem__)[MAX_COMPARED:]:
        found[at] = "no_candidate"
    return found
