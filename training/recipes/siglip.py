"""SigLIP finetuning, without and with hard negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pairwright.training.recipes.clip import PairMethod, online_negatives
from pairwright.training.recipes.sections import OnlineNegativeSettings

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import PairBatch
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks


class SiglipTowerMethod(PairMethod):
    """An objective that finetunes SigLIP's towers."""

    locked_text: bool = Field(default=False, description="Freeze the text tower.")

    def open_model(self, model: str) -> Clip:
        """Return a SigLIP, with its text tower frozen if locked."""
        from pairwright.training.models.siglip import Siglip
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import open_clip

        siglip = open_clip(model, (Siglip,))
        train_only(siglip, "siglip-locked-text" if self.locked_text else "clip")
        return siglip


class SiglipMethod(SiglipTowerMethod):
    """Decide for each image and caption of a batch whether they match (SigLIP, section 3.2)."""

    kind: Literal["siglip"]
    compares_samples: ClassVar[bool] = True

    def loss(self, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss of the whole batch."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.sigmoid import siglip_loss
        from pairwright.training.recipes.pair_embeddings import embed_pairs, gather_embeddings

        out = embed_pairs(model, batch)
        assert out.bias is not None
        rows = gather_embeddings(out, batch, ranks)
        return WeightedLoss(siglip_loss(rows.images, rows.texts, out.scale, out.bias), {})


class SiglipHnMethod(SiglipTowerMethod):
    """SigLIP with the hard negatives of all rows as texts that match no image."""

    kind: Literal["siglip-hn"]
    negatives: int = Field(1, ge=1, description="Maximum per row; each epoch draws again.")
    online: OnlineNegativeSettings | None = None

    def collator(self, seed: int) -> PairCollator:
        """Return the collator with hard negatives, of the shards or generated."""
        from pairwright.training.loading.pairs import PairCollator

        return PairCollator(self.negatives, online=online_negatives(self.online, seed))

    def loss(self, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss of the whole batch."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.sigmoid import siglip_hn_loss
        from pairwright.training.recipes.pair_embeddings import embed_pairs, gather_embeddings

        out = embed_pairs(model, batch)
        assert out.bias is not None
        rows = gather_embeddings(out, batch, ranks)
        loss = siglip_hn_loss(rows.images, rows.texts, rows.negatives, rows.negatives_mask, out.scale, out.bias)
        return WeightedLoss(loss, {})
