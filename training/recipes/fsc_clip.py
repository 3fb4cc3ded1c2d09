"""FSC-CLIP: hard negatives by whole texts and by tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pairwright.training.recipes.clip import HardNegativesMethod, TowerMethod

if TYPE_CHECKING:
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


class FscClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with global and local hard-negative losses, focal and with smoothed labels (section 3.4, eq. 11)."""

    kind: Literal["fsc-clip"]
    local_features: ClassVar[bool] = True
    negatives: int = Field(3, ge=1, description="Maximum per row.")
    whole_weight: float = Field(0.5, ge=0, description="lambda_g, of the loss over whole texts.")
    local_weight: float = Field(0.2, ge=0, description="lambda_l, of the loss over tokens.")
    focal: float = Field(2.0, ge=0, description="gamma, eq. 9.")
    smoothing: float = Field(0.02, ge=0, le=1, description="beta, eq. 10.")

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the weighted sum of the three losses."""
        from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

        assert pairs.local is not None
        weights = FscWeights(self.whole_weight, self.local_weight, self.focal, self.smoothing)
        return fsc_clip_loss(pairs.rows, pairs.local, pairs.scale, weights, ranks)

    def loss_parts(self) -> tuple[str, ...]:
        """Return the names of the loss's parts."""
        return ("contrastive", "whole", "local")
