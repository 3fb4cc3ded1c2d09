"""What the loop asks of a method: a model, batches, and the loss of a batch.

One file beside this one a family of methods; `methods.py` tells which of them a recipe means. A method sees one rank's
batch and gathers what its loss compares over the whole one.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from pairwright.training.loading.collation import Collator as Rows
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.recipes.schema import Recipe


@dataclass(frozen=True, slots=True)
class PreparedMethod:
    """A model to be trained, and what its batches are like.

    Attributes:
        model: its parameters are frozen or not, as the recipe says.
        rows: makes batches of samples.
        texts: how texts become tokens.
        images: how images become pixels.
    """

    model: nn.Module
    rows: Rows[Any]
    texts: TextOptions
    images: ImageOptions


class Method(Protocol):
    """A family of recipes."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open ``model``, a folder or a name, and freeze what the recipe does not train.

        Raises:
            PairwrightError: there is no such model, or it does not go with the recipe.
        """

    def loss(self, recipe: Recipe, model: nn.Module, batch: Any, ranks: Ranks) -> WeightedLoss:
        """Return the loss of a step, the same on every rank up to rounding, and its parts.

        Args:
            recipe: that `ready` was given.
            model: the model, as it may be wrapped for several processes: only to be called, once.
            batch: of this rank.
            ranks: all processes.
        """

    def finished(self, model: nn.Module) -> nn.Module:
        """Return what is saved at the end of a run; may change ``model``."""


def rank_weighted_mean(value: Tensor, counted: Tensor, ranks: Ranks) -> Tensor:
    """Return this rank's mean, weighted so that the mean over ranks is the mean over all that counts.

    Args:
        value: 0-d, the mean over what counts on this rank.
        counted: 0-d, how much that is.
        ranks: all processes.
    """
    return value if ranks.count == 1 else value * counted * ranks.count / ranks.total(counted).clamp(min=1)
