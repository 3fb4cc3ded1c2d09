"""CLIP finetuning, the base of the objectives over pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pairwright.datasets.errors import UsageError
from pairwright.training.recipes.method import Method, PreparedMethod
from pairwright.training.recipes.sections import LoraSettings, OnlineNegativeSettings

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import PairBatch
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings
    from pairwright.training.recipes.schema import Recipe


class PairMethod(Method):
    """An objective over image-text pairs for a CLIP; a subclass opens the model and compares the embeddings."""

    splits_rows: ClassVar[bool] = True
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
            raise ValueError("`lora` and `locked_text` are mutually exclusive. Remove one")
        return self

    def open_model(self, model: str) -> Clip:
        """Return a CLIP with LoRA, or with its text tower frozen if locked."""
        from pairwright.training.models.clip import Clip
        from pairwright.training.models.lora import add_lora
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import open_clip

        clip = open_clip(model, (Clip,))
        if self.lora:
            add_lora(clip, self.lora.rank, alpha=self.lora.alpha)
        else:
            train_only(clip, "clip-locked-text" if self.locked_text else "clip")
        return clip

    def finish(self, model: nn.Module) -> nn.Module:
        """Return the model with low-rank matrices merged into its weights."""
        from pairwright.training.models.clip import Clip
        from pairwright.training.models.lora import merge_lora

        if isinstance(model, Clip) and any(".lora_" in name for name, _ in model.named_parameters()):
            merge_lora(model)
        return model


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
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.contrastive import clip_loss

        return WeightedLoss(clip_loss(pairs.rows.images, pairs.rows.texts, pairs.scale, ranks), {})
