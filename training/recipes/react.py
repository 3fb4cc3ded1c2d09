"""REACT: gated blocks in a frozen CLIP, trained on retrieved pairs (Liu, chapter 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from pairwright.datasets.errors import UsageError
from pairwright.training.recipes.clip import PairMethod

if TYPE_CHECKING:
    from pairwright.training.models.clip import Clip
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


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

    def compare(self, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
        """Return the bidirectional loss with similar texts as positives."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.soft_positives import react_loss

        return WeightedLoss(react_loss(pairs.rows.images, pairs.rows.texts, pairs.scale, self.threshold, ranks), {})
