"""FocalLens-CLIP: an image, read under an instruction, finds the answer among those of the batch."""

from typing import cast

from torch import nn

from pairwright.training.loading.batches import TripletBatch
from pairwright.training.loading.triplets import Triplets
from pairwright.training.methods.contrastive import images_for, open_clip, texts_for
from pairwright.training.methods.method import Ready
from pairwright.training.models.clip import Clip, ClipOutput
from pairwright.training.models.focallens import FocalLensClip
from pairwright.training.models.trained import train_only
from pairwright.training.objectives.conditional import conditional_loss
from pairwright.training.objectives.embedded import Total
from pairwright.training.ranks import Ranks
from pairwright.training.recipe import FocalLensClipMethod, Recipe


class FocalLens:
    """The method of triplets."""

    def ready(self, recipe: Recipe, model: str) -> Ready:
        """Open a CLIP, or a FocalLens-CLIP to go on with.

        Raises:
            UsageError: ``model`` is of another kind; the sizes do not fit.
        """
        method = cast("FocalLensClipMethod", recipe.method)
        clip = open_clip(model, (Clip, FocalLensClip))
        lens = clip if isinstance(clip, FocalLensClip) else FocalLensClip(clip)
        train_only(lens, "focallens-clip")
        rows = Triplets(method.turns, method.types)
        return Ready(lens, rows, texts_for(lens, model, recipe), images_for(lens, recipe))

    def loss(self, recipe: Recipe, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> Total:
        """Return the loss of the whole batch."""
        method = cast("FocalLensClipMethod", recipe.method)
        out: ClipOutput = model(batch.images, batch.texts, batch.text_mask, instructions=batch.instructions)
        images, texts = ranks.gather(out.images), ranks.gather(out.texts)
        return Total(conditional_loss(images, texts, out.scale, both_ways=method.both_ways), {})

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model
