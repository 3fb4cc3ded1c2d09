"""NegCLIP: hard negatives of all rows among each image's texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pairwright.training.recipes.clip import TowerMethod, online_negatives
from pairwright.training.recipes.sections import OnlineNegativeSettings

if TYPE_CHECKING:
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


class NegClipMethod(TowerMethod):
    """CLIP with the hard negatives of all rows among each image's texts (ARO, section 4)."""

    kind: Literal["negclip"]
    negatives: int = Field(1, ge=1, description="Maximum per row; each epoch draws again.")
    online: OnlineNegativeSettings | None = None

    def collator(self, seed: int) -> PairCollator:
        """Return the collator with hard negatives, of the shards or generated."""
        from pairwright.training.loading.pairs import PairCollator

        return PairCollator(self.negatives, online=online_negatives(self.online, seed))

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the contrastive loss with hard negatives."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.contrastive import negclip_loss

        rows = pairs.rows
        loss = negclip_loss(rows.images, rows.texts, rows.negatives, rows.negatives_mask, pairs.scale, ranks)
        return WeightedLoss(loss, {})
