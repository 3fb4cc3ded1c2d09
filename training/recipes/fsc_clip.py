"""FSC-CLIP: hard negatives by whole texts and by tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pairwright.training.recipes.clip import TowerMethod, online_negatives
from pairwright.training.recipes.sections import OnlineNegativeSettings

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import PairBatch
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks


class FscClipMethod(TowerMethod):
    """CLIP with global and local hard-negative losses, focal and with smoothed labels (section 3.4, eq. 11)."""

    kind: Literal["fsc-clip"]
    negatives: int = Field(3, ge=1, description="Maximum per row.")
    online: OnlineNegativeSettings | None = None
    whole_weight: float = Field(0.5, ge=0, description="lambda_g, of the loss over whole texts.")
    local_weight: float = Field(0.2, ge=0, description="lambda_l, of the loss over tokens.")
    focal: float = Field(2.0, ge=0, description="gamma, eq. 9.")
    smoothing: float = Field(0.02, ge=0, le=1, description="beta, eq. 10.")

    def collator(self, seed: int) -> PairCollator:
        """Return the collator with hard negatives, of the shards or generated."""
        from pairwright.training.loading.pairs import PairCollator

        return PairCollator(self.negatives, online=online_negatives(self.online, seed))

    def loss(self, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss
        from pairwright.training.recipes.pair_embeddings import embed_pairs, gather_embeddings, gather_local_features

        out = embed_pairs(model, batch, local=True)
        weights = FscWeights(self.whole_weight, self.local_weight, self.focal, self.smoothing)
        rows, local = gather_embeddings(out, batch, ranks), gather_local_features(out, batch, ranks)
        return fsc_clip_loss(rows, local, out.scale, weights)

    def loss_parts(self) -> tuple[str, ...]:
        """Return the names of the loss's parts."""
        return ("contrastive", "whole", "local")
