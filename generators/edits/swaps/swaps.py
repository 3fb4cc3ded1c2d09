"""Proposer of swaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.floors import SWAP_FLOORS
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.swaps.attributes import Swap, swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.moves import move_attribute, moved_pairs
from pairwright.generators.edits.swaps.objects import swap_objects
from pairwright.generators.edits.swaps.roles import swap_roles

SWAP_TYPES: Final = ("swap-object", "swap-attribute")


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
    materials: EditMaterials, types: Sequence[str], captions: Sequence[Caption], skip: frozenset[str] = frozenset()
) -> dict[str, list[SwapProposals]]:
    """Return by type (of `SWAP_TYPES`) the weighted swaps of each caption, independent of the other captions.

    ``skip`` are ids of constraints that are not applied.
    """
    qualities, things = (
        applicable_constraints("hard_negative", "swap", target, by_rules=True, skip=skip)
        for target in ("attribute", "object")
    )
    by_type: dict[str, list[SwapProposals]] = {name: [] for name in types}
    for caption in captions:
        pairs = swapped_pairs(caption, materials.knowledge, qualities)
        if "swap-attribute" in by_type:
            found = [reason or swap_attributes(caption, materials, *each) for *each, reason in pairs]
            moved = moved_pairs(caption, materials.knowledge, qualities)
            found += (reason or move_attribute(caption, materials, *each) for *each, reason in moved)
            by_type["swap-attribute"].append(_proposals(found))
        if "swap-object" in by_type:
            found = [reason or swap_objects(caption, materials, *each) for *each, reason in pairs]
            by_type["swap-object"].append(
                _proposals([*dict.fromkeys((*found, *swap_roles(caption, materials, things)))])
            )
    return by_type


def _proposals(found: Sequence[Swap | str]) -> SwapProposals:
    """Return the swaps of one type, without those below the floor."""
    reasons = [each for each in found if isinstance(each, str)]
    swaps = [each for each in found if not isinstance(each, str)]
    likely = [each for each in swaps if each.weight >= SWAP_FLOORS[each.kind]]
    if len(likely) < len(swaps):
        reasons.append("no_candidate")
    weights = np.array([each.weight for each in likely], np.float32)
    return SwapProposals(reasons, [each.changes for each in likely], np.log(weights))
