"""REACT: gated blocks in a frozen CLIP, trained on retrieved pairs (Liu, chapter 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pairwright.datasets.errors import UsageError
from pairwright.training.recipes.clip import PairMethod

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import PairBatch
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks


class ReactMethod(PairMethod):
    """Gated blocks in a frozen CLIP; retrieved pairs with similar texts are positives of each other."""

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

    def loss(self, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.soft_positives import react_loss
        from pairwright.training.recipes.pair_embeddings import embed_pairs, gather_embeddings

        out = embed_pairs(model, batch)
        rows = gather_embeddings(out, batch, ranks)
        return WeightedLoss(react_loss(rows.images, rows.texts, out.scale, self.threshold), {})
