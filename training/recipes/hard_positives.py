"""Hard positives and hard negatives (The Hard Positive Truth)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pairwright.training.recipes.clip import TowerMethod

if TYPE_CHECKING:
    from pairwright.training.loading.pairs import PairCollator
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.pair_embeddings import PairEmbeddings


class HardPositivesMethod(TowerMethod):
    """CLIP with one loss for hard negatives and one for hard positives (section 5.1, appendix D.1)."""

    kind: Literal["hp-hn"]
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
        return hp_hn_loss(pairs.rows, pairs.scale, **weights, ranks=ranks)

    def loss_parts(self) -> tuple[str, ...]:
        """Return the names of the loss's parts."""
        return ("contrastive", "negatives", "positives")
