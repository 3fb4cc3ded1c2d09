"""Objectives over image-text pairs: CLIP, NegCLIP, hard positives, FSC-CLIP, SigLIP with and without negatives, REACT."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, cast

from pydantic import Field, model_validator

from pairwright.datasets.errors import UsageError
from pairwright.training.objectives.batch_embeddings import PairEmbeddings, WeightedLoss
from pairwright.training.recipes.method import Method, PreparedMethod
from pairwright.training.recipes.sections import LoraSettings, OnlineNegativeSettings

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import PairBatch
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.schema import Recipe


class PairMethod(Method):
    """An objective over image-text pairs for a CLIP; a subclass opens the model and compares the embeddings.

    Rows are embedded separately and compared afterwards, in batches of one shape.
    """

    local_features: ClassVar[bool] = False
    """Whether the loss also compares patches and tokens."""

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a CLIP and freeze what is not trained."""
        from pairwright.training.recipes.model_options import image_options, text_options

        clip = self.open_model(model)
        return PreparedMethod(
            clip, self.collator(recipe.seed), text_options(clip, model, recipe), image_options(clip, recipe)
        )

    def open_model(self, model: str) -> Clip:
        """Return the model with parameters frozen as the settings say."""
        raise NotImplementedError

    def collator(self, seed: int) -> PairCollator:  # noqa: ARG002 - for those that generate negatives
        """Return the collator: images and captions alone."""
        from pairwright.training.loading.pairs import PairCollator

        return PairCollator()

    def embed(self, model: nn.Module, batch: PairBatch) -> PairEmbeddings:
        """Return what `compare` needs of a batch or a part of it; calls the model once."""
        from pairwright.training.recipes.pair_embeddings import embed_pairs

        return embed_pairs(model, batch, local=self.local_features)

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the loss of this rank's rows among those of all ranks."""
        raise NotImplementedError

    def loss(self, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of this rank's rows among those of all ranks."""
        return self.compare(self.embed(model, batch), ranks)


class TowerMethod(PairMethod):
    """An objective that finetunes CLIP's towers, whole or by LoRA."""

    lora: LoraSettings | None = None
    locked_text: bool = Field(default=False, description="Freeze the text tower.")

    @model_validator(mode="after")
    def _one_share(self) -> Self:
        if self.lora and self.locked_text:
            raise ValueError("`lora` and `locked_text` are mutually exclusive")
        return self

    def open_model(self, model: str) -> Clip:
        """Return a CLIP with LoRA, or with its text tower frozen if locked."""
        from pairwright.training.models.clip import Clip
        from pairwright.training.models.lora import add_lora
        from pairwright.training.recipes.model_options import open_clip

        if not self.lora:
            return open_clip(model, (Clip,), "clip-locked-text" if self.locked_text else "clip")
        clip = open_clip(model, (Clip,))
        add_lora(clip, self.lora.rank, alpha=self.lora.alpha)
        return clip

    def finish(self, model: nn.Module) -> nn.Module:
        """Return the model with low-rank matrices merged into its weights."""
        from pairwright.training.models.lora import merge_lora

        if self.lora:
            merge_lora(cast("Clip", model))
        return model


class SiglipTowerMethod(PairMethod):
    """An objective that finetunes SigLIP's towers."""

    locked_text: bool = Field(default=False, description="Freeze the text tower.")

    def open_model(self, model: str) -> Clip:
        """Return a SigLIP, with its text tower frozen if locked."""
        from pairwright.training.models.siglip import Siglip
        from pairwright.training.recipes.model_options import open_clip

        return open_clip(model, (Siglip,), "siglip-locked-text" if self.locked_text else "clip")


class HardNegativesMethod(PairMethod):
    """Settings of objectives with hard negatives, of the shards or generated during training."""

    negatives: int = Field(1, ge=1, description="Maximum per row; each epoch draws again.")
    online: OnlineNegativeSettings | None = None

    def collator(self, seed: int) -> PairCollator:
        """Return the collator with hard negatives.

        Raises:
            UsageError: the pool's file is missing.
        """
        from pairwright.generators.online import OnlineNegatives
        from pairwright.training.loading.pairs import PairCollator

        if self.online is None:
            return PairCollator(self.negatives)
        if not Path(self.online.pool).is_file():
            raise UsageError(f"method.online.pool: {self.online.pool} does not exist.")
        pool, types = self.online.pool, self.online.types
        online = OnlineNegatives(pool, types, seed=seed) if types else OnlineNegatives(pool, seed=seed)
        return PairCollator(self.negatives, online=online)


class ClipMethod(TowerMethod):
    """Match images and captions (CLIP, section 2.3)."""

    kind: Literal["clip"]
    compares_samples: ClassVar[bool] = True

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the symmetric contrastive loss."""
        from pairwright.training.objectives.contrastive import clip_loss

        return WeightedLoss(clip_loss(pairs.images, pairs.texts, pairs.scale, ranks))


class NegClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with the hard negatives of all rows among each image's texts (ARO, section 4)."""

    kind: Literal["negclip"]

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the contrastive loss with hard negatives."""
        from pairwright.training.objectives.contrastive import negclip_loss

        return WeightedLoss(
            negclip_loss(pairs.images, pairs.texts, pairs.negatives, pairs.negatives_mask, pairs.scale, ranks)
        )


class HardPositivesMethod(TowerMethod):
    """CLIP with one loss for hard negatives and one for hard positives (The Hard Positive Truth, section 5.1, appendix D.1)."""

    kind: Literal["hp-hn"]
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "negatives", "positives")
    negatives: int = Field(1, ge=1, description="Maximum per row.")
    positives: int = Field(1, ge=1, description="Maximum per row.")
    negatives_weight: float = Field(1.0, ge=0, description="Of the hard-negative loss; table 3 goes from 0 to 1.")
    positives_weight: float = Field(1.0, ge=0, description='Of the analogy loss; 0: hard negatives alone ("HN").')

    def collator(self, seed: int) -> PairCollator:  # noqa: ARG002 - nothing is generated
        """Return the collator with hard negatives and hard positives of the shards."""
        from pairwright.training.loading.pairs import PairCollator

        return PairCollator(self.negatives, self.positives)

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the weighted sum of the three losses."""
        from pairwright.training.objectives.hard_positives import hp_hn_loss

        weights = {"negatives": self.negatives_weight, "positives": self.positives_weight}
        return hp_hn_loss(pairs, **weights, ranks=ranks)


class FscClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with global and local hard-negative losses, focal and with smoothed labels (FSC-CLIP, section 3.4, eq. 11)."""

    kind: Literal["fsc-clip"]
    local_features: ClassVar[bool] = True
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "whole", "local")
    negatives: int = Field(3, ge=1, description="Maximum per row.")
    whole_weight: float = Field(0.5, ge=0, description="lambda_g, of the loss over whole texts.")
    local_weight: float = Field(0.2, ge=0, description="lambda_l, of the loss over tokens.")
    focal: float = Field(2.0, ge=0, description="gamma, eq. 9.")
    smoothing: float = Field(0.02, ge=0, le=1, description="beta, eq. 10.")

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the weighted sum of the three losses."""
        from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

        weights = FscWeights(self.whole_weight, self.local_weight, self.focal, self.smoothing)
        return fsc_clip_loss(pairs, weights, ranks)


class SiglipMethod(SiglipTowerMethod):
    """Decide for each image and caption of a batch whether they match (SigLIP, section 3.2)."""

    kind: Literal["siglip"]
    compares_samples: ClassVar[bool] = True

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss."""
        from pairwright.training.objectives.sigmoid import siglip_loss

        return WeightedLoss(siglip_loss(pairs.images, pairs.texts, pairs.scale, pairs.bias, ranks))


class SiglipHnMethod(HardNegativesMethod, SiglipTowerMethod):
    """SigLIP with the hard negatives of all rows as texts that match no image."""

    kind: Literal["siglip-hn"]

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the sigmoid loss with hard negatives."""
        from pairwright.training.objectives.sigmoid import siglip_hn_loss

        wrong = (pairs.negatives, pairs.negatives_mask)
        return WeightedLoss(siglip_hn_loss(pairs.images, pairs.texts, *wrong, pairs.scale, pairs.bias, ranks))


class ReactMethod(PairMethod):
    """Gated blocks in a frozen CLIP; retrieved pairs with similar texts are positives of each other (Liu, chapter 2)."""

    kind: Literal["react"]
    compares_samples: ClassVar[bool] = True
    blocks: int = Field(6, ge=1, description="Gated blocks, before the last layers of the image tower.")
    threshold: float = Field(
        0.9, ge=-1, le=2, description="gamma, eq. 2.5 and 2.6: minimum cosine of similar texts; above 1: CLIP's loss."
    )

    def open_model(self, model: str) -> Clip:
        """Return a CLIP with gated blocks added, or a REACT model to continue with."""
        from pairwright.training.models.clip import Clip
        from pairwright.training.models.react_clip import ReactClip
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import open_clip

        gated = open_clip(model, (Clip, ReactClip))
        if not isinstance(gated, ReactClip):
            gated = ReactClip(gated, self.blocks)
        elif len(gated.blocks) != self.blocks:
            raise UsageError(
                f"{model} has {len(gated.blocks)} gated blocks. Pass --set method.blocks={len(gated.blocks)}."
            )
        train_only(gated, "react")
        return gated

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the bidirectional loss with similar texts as positives."""
        from pairwright.training.objectives.soft_positives import react_loss

        return WeightedLoss(react_loss(pairs.images, pairs.texts, pairs.scale, self.threshold, ranks))
