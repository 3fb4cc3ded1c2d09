"""FocalLens: an image, read under an instruction, finds the answer among those of the batch; by a CLIP or a LLaVA."""

from pathlib import Path
from typing import cast

import torch
from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.batches import TripletBatch
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.loading.triplets import TripletCollator
from pairwright.training.models.clip import Clip, ClipOutput
from pairwright.training.models.focallens_clip import FocalLensClip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.llava import Llava, batch_grids, tokenizer_path
from pairwright.training.models.registry import model_kind
from pairwright.training.models.trainable_parameters import train_only
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.conditional import conditional_loss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.recipes.contrastive import image_options, open_clip, text_options
from pairwright.training.recipes.method import PreparedMethod
from pairwright.training.recipes.schema import FocalLensClipMethod, FocalLensMllmMethod, Recipe

_INSTRUCTION_TOKENS = 2048


class FocalLensClipTraining:
    """The method of triplets, with a token in CLIP's image tower."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a CLIP, or a FocalLens-CLIP to go on with.

        Raises:
            UsageError: ``model`` is of another kind; the sizes do not fit.
        """
        method = cast("FocalLensClipMethod", recipe.method)
        clip = open_clip(model, (Clip, FocalLensClip))
        lens = clip if isinstance(clip, FocalLensClip) else FocalLensClip(clip)
        train_only(lens, "focallens-clip")
        rows = TripletCollator(method.turns, method.types)
        return PreparedMethod(lens, rows, text_options(lens, model, recipe), image_options(lens, recipe))

    def loss(self, recipe: Recipe, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        method = cast("FocalLensClipMethod", recipe.method)
        out: ClipOutput = model(batch.images, batch.texts, batch.text_mask, instructions=batch.instructions)
        return _loss(out, batch, ranks, both_ways=method.both_ways)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


class FocalLensMllmTraining:
    """The method of triplets, with a LLaVA that embeds."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a LLaVA and the CLIP it aims at, or a FocalLens-MLLM to go on with.

        Raises:
            UsageError: ``model`` is of another kind; a target where there is one already, or none.
        """
        method = cast("FocalLensMllmMethod", recipe.method)
        lens = _open_model(model, method.target)
        if method.tiles:
            lens.llava.show_tiles()
        train_only(lens, "focallens-mllm")
        for unused in lens.unread():  # without a gradient, which processes that train together would wait for
            unused.requires_grad_(False)
        began = method.target != ""
        asked = TextOptions(
            tokenizer_path(model if began else str(Path(model) / "llava")),
            recipe.batches.max_tokens or _INSTRUCTION_TOKENS,
        )
        answers = TextOptions(
            method.target if began else str(Path(model) / "target"),
            min(recipe.batches.max_tokens or lens.target.context, lens.target.context),
        )
        rows = TripletCollator(method.turns, method.types, asked)
        return PreparedMethod(lens, rows, answers, image_options(lens.llava, recipe))

    def loss(self, recipe: Recipe, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        method = cast("FocalLensMllmMethod", recipe.method)
        grids = batch_grids(batch.grids)
        out: ClipOutput = model(batch.images, batch.instructions, batch.instruction_mask, batch.texts, grids=grids)
        return _loss(out, batch, ranks, both_ways=method.both_ways)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


def _loss(out: ClipOutput, batch: TripletBatch, ranks: Ranks, *, both_ways: bool) -> WeightedLoss:
    """Return the loss over the rows of all ranks; rows with one answer are no negatives of each other."""
    images, texts = ranks.gather(out.images), ranks.gather(out.texts)
    answers = ranks.gather((batch.texts + 1) * batch.text_mask)  # 0 behind the end, as gathering fills up rows
    same = torch.unique(answers, dim=0, return_inverse=True)[1]
    return WeightedLoss(conditional_loss(images, texts, out.scale, same=same, both_ways=both_ways), {})


def _open_model(model: str, target: str) -> FocalLensMllm:
    kind = model_kind(model)
    if kind == FocalLensMllm.kind:
        if target:
            raise UsageError(f"{model} is a FocalLens-MLLM and has its target: leave out method.target.")
        return FocalLensMllm.load(model)
    if kind != Llava.kind:
        raise UsageError(
            f"{model} is a {kind}; this recipe begins with a llava, as llava-align and "
            "llava-instruct make one, or with a focallens-mllm."
        )
    if not target:
        raise UsageError(f"{model} has no CLIP to aim at: name it, --set method.target=PATH.")
    return FocalLensMllm(Llava.load(model), Clip.load(target))
