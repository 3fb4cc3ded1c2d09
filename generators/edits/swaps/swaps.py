"""Proposer of swaps: two attributes or the nouns of two phrases are exchanged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.table import applicable_constraints
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import FloatArray
from pairwright.generators.edits.swaps.attributes import swap_attributes, swapped_pairs
from pairwright.generators.edits.swaps.objects import swap_objects

SWAP_TYPES: Final = {"swap-object": swap_objects, "swap-attribute": swap_attributes}


@dataclass(frozen=True, slots=True)
class SwapProposals:
    """Proposed swaps of one caption, equally likely.

    Attributes:
        reasons: reason codes of rejections.
        changes: of each swap.
    """

    reasons: Sequence[str]
    changes: Sequence[tuple[Change, ...]]

    @classmethod
    def of(cls, outcomes: Sequence[EditOutcome]) -> "SwapProposals":
        """Return the swaps and the reason codes among some outcomes."""
        return cls(
            [each for each in outcomes if isinstance(each, str)],
            [each for each in outcomes if not isinstance(each, str)],
        )

    @property
    def log_ratio(self) -> FloatArray:
        """The natural logarithm of the weight of each swap: zeros, float32."""
        return np.zeros(len(self.changes), np.float32)

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

    def propose(self, captions: Sequence[Caption]) -> dict[str, list[SwapProposals]]:
        """Return by type the swaps of each caption, independent of the other captions."""
        proposed = {name: list[SwapProposals]() for name in self._types}
        for caption in captions:
            pairs = swapped_pairs(caption, self._known, self._constraints)
            for name, found in proposed.items():
                swap = SWAP_TYPES[name]
                outcomes = [reason or swap(caption, self._known, one, other) for one, other, reason in pairs]
                found.append(SwapProposals.of(outcomes))
        return proposed
