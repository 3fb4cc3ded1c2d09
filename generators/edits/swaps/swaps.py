"""Proposer of swaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.table import Constraint
from pairwright.generators.edits.floors import SWAP_FLOORS
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.swaps.attributes import Modifier, swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.objects import swap_objects

SWAP_TYPES: Final = {"swap-object": swap_objects, "swap-attribute": swap_attributes}


@dataclass(frozen=True, slots=True)
class SwapProposals:
    """Proposed swaps of one caption.

    Attributes:
        log_ratio: natural logarithm of the weight of each swap, float32.
    """

    reasons: Sequence[str]
    changes: Sequence[tuple[Change, ...]]
    log_ratio: FloatArray

    def outcome(self, at: int) -> tuple[Change, ...]:
        """Return the changes of swap ``at``."""
        return self.changes[at]


def propose_swaps(
    materials: EditMaterials, types: Sequence[str], constraints: Sequence[Constraint], captions: Sequence[Caption]
) -> dict[str, list[SwapProposals]]:
    """Return by type (of `SWAP_TYPES`) the weighted swaps of each caption, independent of the other captions."""
    pairs = [(caption, swapped_pairs(caption, materials.knowledge, constraints)) for caption in captions]
    return {name: [_proposals(name, materials, *each) for each in pairs] for name in types}


def _proposals(
    name: str, materials: EditMaterials, caption: Caption, pairs: Sequence[tuple[Modifier, Modifier, str]]
) -> SwapProposals:
    """Return the swaps of one type, without those below the floor."""
    found = [reason or SWAP_TYPES[name](caption, materials, one, other) for one, other, reason in pairs]
    reasons = [each for each in found if isinstance(each, str)]
    swaps = [each for each in found if not isinstance(each, str)]
    likely = [each for each in swaps if each.weight >= SWAP_FLOORS[name]]
    if len(likely) < len(swaps):
        reasons.append("no_candidate")
    weights = np.array([each.weight for each in likely], np.float32)
    return SwapProposals(reasons, [each.changes for each in likely], np.log(weights))
