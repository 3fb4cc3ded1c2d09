"""NegCLIP: hard negatives of all rows among each image's texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pairwright.training.recipes.clip import HardNegativesMethod, TowerMethod

if TYPE_CHECKING:
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


class NegClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with the hard negatives of all rows among each image's texts (ARO, section 4)."""

    kind: Literal["negclip"]

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the contrastive loss with hard negatives."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.contrastive import negclip_loss

        rows = pairs.rows
        loss = negclip_loss(rows.images, rows.texts, rows.negatives, rows.negatives_mask, pairs.scale, ranks)
        return WeightedLoss(loss, {})
