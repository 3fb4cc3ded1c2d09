"""Proposer of swaps: by caption, with scores of the cloze model in one batch."""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.swaps.attributes import swap_attributes
from pairwright.generators.edits.swaps.fit import ClozeFit, weigh_swaps
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapMaterials, SwapProposal

SWAP_TYPES: Final = {"swap-object": swap_objects, "swap-attribute": swap_attributes}


class Swaps:
    """Proposes swaps.

    Args:
        materials: of the pool.
        types: of `SWAP_TYPES`.
        skip: ids of constraints that are not applied.
    """

    def __init__(self, materials: EditMaterials, types: Sequence[str], skip: frozenset[str]) -> None:
        self._types = types
        self._materials = SwapMaterials(materials.knowledge, skip)
        self._fit = ClozeFit(materials.model.cloze, materials.knowledge.thesaurus)

    def propose(self, captions: Sequence[Caption]) -> dict[str, list[list[SwapProposal | str]]]:
        """Return by type the weighted swaps and rejections of each caption, independent of the other captions."""
        requests = [
            (caption, name) for caption in captions for name in self._types
        ]  # in this order the types of a caption share cached results
        proposed = [[*SWAP_TYPES[name](caption, self._materials)] for caption, name in requests]
        weighed = weigh_swaps(self._fit, [caption for caption, _ in requests], proposed)
        return {name: weighed[at :: len(self._types)] for at, name in enumerate(self._types)}
