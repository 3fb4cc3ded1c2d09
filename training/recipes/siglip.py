"""SigLIP finetuning, without and with hard negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pairwright.training.recipes.clip import HardNegativesMethod, PairMethod

if TYPE_CHECKING:
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


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

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.sigmoid import siglip_loss

        assert pairs.bias is not None
        return WeightedLoss(siglip_loss(pairs.rows.images, pairs.rows.texts, pairs.scale, pairs.bias, ranks), {})


class SiglipHnMethod(HardNegativesMethod, SiglipTowerMethod):
    """SigLIP with the hard negatives of all rows as texts that match no image."""

    kind: Literal["siglip-hn"]

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss with hard negatives."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.sigmoid import siglip_hn_loss

        assert pairs.bias is not None
        rows = pairs.rows
        wrong = (rows.negatives, rows.negatives_mask)
        return WeightedLoss(siglip_hn_loss(rows.images, rows.texts, *wrong, pairs.scale, pairs.bias, ranks), {})
