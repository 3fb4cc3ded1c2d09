"""FocalLens: an image under an instruction retrieves its answer within the batch (Hsieh, chapter 5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pairwright.datasets.errors import UsageError
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.recipes.method import Method, PreparedMethod

if TYPE_CHECKING:
    from torch import Tensor, nn

    from pairwright.training.loading.batches import TripletBatch
    from pairwright.training.models.clip import ClipOutput
    from pairwright.training.models.focallens_mllm import FocalLensMllm
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.schema import Recipe

_INSTRUCTION_TOKENS = 2048


class FocalLensMethod(Method):
    """Settings of both FocalLens models."""

    turns: int = Field(0, ge=0, description="Maximum per sample in a batch; 0: all.")
    types: tuple[str, ...] = Field((), description="Conversation types; empty: all.")
    both_ways: bool = Field(default=False, description="Also retrieve image and instruction by the answer.")

    def answer_loss(self, out: ClipOutput, batch: TripletBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of this rank's rows; rows with the same answer are not negatives of each other."""
        from pairwright.training.objectives.conditional import conditional_loss

        ranks = ranks.agree(len(out.images), out.images.device)  # a sample has any number of rows
        same = _hash_texts(batch.texts, batch.text_mask)
        loss = conditional_loss(out.images, out.texts, out.scale, same=same, both_ways=self.both_ways, ranks=ranks)
        return WeightedLoss(loss)


class FocalLensClipMethod(FocalLensMethod):
    """A CLIP whose image tower reads a token of the instruction (eq. 5.1)."""

    kind: Literal["focallens-clip"]

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a CLIP, or a FocalLens-CLIP to continue with."""
        from pairwright.training.loading.triplets import TripletCollator
        from pairwright.training.models.clip import Clip
        from pairwright.training.models.focallens_clip import FocalLensClip
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import image_options, open_clip, text_options

        clip = open_clip(model, (Clip, FocalLensClip))
        lens = clip if isinstance(clip, FocalLensClip) else FocalLensClip(clip)
        train_only(lens, "focallens-clip")
        rows = TripletCollator(self.turns, self.types)
        return PreparedMethod(lens, rows, text_options(lens, model, recipe), image_options(lens, recipe))

    def loss(self, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        images = batch.images[batch.image_index]
        out: ClipOutput = model(images, batch.texts, batch.text_mask, instructions=batch.instructions)
        return self.answer_loss(out, batch, ranks)


class FocalLensMllmMethod(FocalLensMethod):
    """A LLaVA whose state after image and instruction is the image embedding."""

    kind: Literal["focallens-mllm"]
    tiles: bool = Field(
        default=False, description="AnyRes: tiles of the image and the whole; kept if the model has it."
    )
    target: str = Field(
        "", description="CLIP that embeds the answers; empty: --model is a FocalLens-MLLM with its own."
    )

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a LLaVA and its target CLIP, or a FocalLens-MLLM to continue with."""
        from pairwright.training.loading.tokenization import TextOptions
        from pairwright.training.loading.triplets import TripletCollator
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import image_options

        lens = _open_model(model, self.target)
        lens.pixels = replace(lens.pixels, tiles=lens.pixels.tiles or self.tiles)
        train_only(lens, "focallens-mllm")
        for unused in lens.unused_parameters():  # distributed training would wait for its gradient
            unused.requires_grad_(False)
        new = self.target != ""
        instructions = TextOptions(
            model if new else str(Path(model) / "llava"),
            recipe.batches.max_tokens or _INSTRUCTION_TOKENS,
        )
        answers = TextOptions(
            self.target if new else str(Path(model) / "target"),
            min(recipe.batches.max_tokens or lens.target.context, lens.target.context),
        )
        rows = TripletCollator(self.turns, self.types, instructions)
        return PreparedMethod(lens, rows, answers, image_options(lens, recipe))

    def loss(self, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        from pairwright.training.models.anyres import Grid

        grids, images = [Grid(*one) for one in batch.grids] or None, batch.images[batch.image_index]
        out: ClipOutput = model(images, batch.instructions, batch.instruction_mask, batch.texts, grids=grids)
        return self.answer_loss(out, batch, ranks)


def _hash_texts(texts: Tensor, mask: Tensor) -> Tensor:
    """Return a 64-bit hash of each text, int64 (b,), which does not depend on its padding."""
    import torch

    # A polynomial modulo 2^64; the factor is that of a linear congruential generator (Knuth's MMIX).
    powers = torch.full(texts.shape[1:], 6364136223846793005, device=texts.device).cumprod(dim=0)
    return ((texts + 1) * mask * powers).sum(dim=1)


def _open_model(model: str, target: str) -> FocalLensMllm:
    from pairwright.training.models.clip import Clip
    from pairwright.training.models.focallens_mllm import FocalLensMllm
    from pairwright.training.models.registry import model_kind

    kind = model_kind(model)
    if kind == "focallens-mllm":
        if target:
            raise UsageError(f"{model} is a FocalLens-MLLM with its own target: remove method.target.")
        return FocalLensMllm.load(model)
    if kind != "image-text":
        raise UsageError(
            f"{model} is of kind {kind}; this recipe requires a LLaVA, as trained by "
            "llava-align and llava-instruct, or a focallens-mllm."
        )
    if not target:
        raise UsageError(f"{model} has no target CLIP: pass --set method.target=PATH.")
    return FocalLensMllm.begin(model, Clip.load(target))
