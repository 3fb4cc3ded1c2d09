"""Base class of the objectives: settings, batches and loss.

An objective is one class in `pairs.py` or `focallens.py` (settings with a ``loss``), one YAML file, and one line in
`schema.py`.
Settings are read without torch; methods import it when they are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pairwright.training.recipes.sections import RecipeSection

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.collation import Collator
    from pairwright.training.loading.image_transforms import ImageOptions
    from pairwright.training.loading.tokenization import TextOptions
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.schema import Recipe


@dataclass(frozen=True, slots=True)
class PreparedMethod:
    """A model to train, and the form of its batches."""

    model: nn.Module  # with parameters frozen as the recipe says
    rows: Collator[Any]  # collates samples to batches
    texts: TextOptions  # tokenization
    images: ImageOptions  # image transforms


class Method(RecipeSection):
    """The ``method`` section of a recipe. A subclass adds ``kind``, its settings, `prepare` and `loss`."""

    compares_samples: ClassVar[bool] = False
    """Whether the loss compares the samples of a step, so that a batch needs two or more."""
    loss_parts: ClassVar[tuple[str, ...]] = ()
    """Names of the loss's parts, which are columns of the log."""

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open ``model``, a folder or a name, and freeze what the recipe does not train.

        Raises:
            PairwrightError: there is no such model, or it does not fit the recipe.
        """
        raise NotImplementedError

    def loss(self, model: nn.Module, batch: Any, ranks: Ranks) -> WeightedLoss:
        """Return the loss of a step and its parts; the mean over ranks is that of the whole batch.

        Args:
            model: the model, possibly wrapped for several processes; call it exactly once.
            batch: of this rank.
            ranks: all processes.
        """
        raise NotImplementedError

    def finish(self, model: nn.Module) -> nn.Module:
        """Return the model to save at the end of a run; may change ``model``."""
        return model
