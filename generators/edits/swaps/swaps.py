"""The swaps of captions: proposed one caption at a time, weighed by the cloze model for all captions at once."""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.swaps.attributes import swap_attributes
from pairwright.generators.edits.swaps.fit import ClozeFit, weigh_swaps
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.proposal import SwapMaterials, SwapProposal

SWAPPED: Final = {"swap-object": swap_objects, "swap-attribute": swap_attributes}


class Swaps:
    """Proposes swaps.

    Args:
        materials: of the pool.
        types: of `SWAPPED`.
        skip: ids of constraints that are not applied.
    """

    def __init__(self, materials: EditMaterials, types: Sequence[str], skip: frozenset[str]) -> None:
        self._types = types
        self._materials = SwapMaterials(materials.knowledge, skip)
        self._fit = ClozeFit(materials.model.cloze, materials.knowledge.thesaurus)

    def propose(self, captions: Sequence[Caption]) -> dict[str, list[list[SwapProposal | str]]]:
        """Return, by type, the swaps of each caption with their weights, and reasons; no caption's depend on others."""
        asked = [
            (caption, name) for caption in captions for name in self._types
        ]  # types of a caption share what it says
        proposed = [[*SWAPPED[name](caption, self._materials)] for caption, name in asked]
        weighed = weigh_swaps(self._fit, [caption for caption, _ in asked], proposed)
        return {name: weighed[at :: len(self._types)] for at, name in enumerate(self._types)}
