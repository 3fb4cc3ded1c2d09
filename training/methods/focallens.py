"""FocalLens: an image, read under an instruction, finds the answer among those of the batch; by a CLIP or a LLaVA."""

from pathlib import Path
from typing import cast

import torch
from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.batches import TripletBatch
from pairwright.training.loading.texts import TextOptions
from pairwright.training.loading.triplets import Triplets
from pairwright.training.methods.contrastive import images_for, open_clip, texts_for
from pairwright.training.methods.method import Ready
from pairwright.training.models.clip import Clip, ClipOutput
from pairwright.training.models.focallens import FocalLensClip
from pairwright.training.models.llava import Llava, grids_of, tokenizer_of
from pairwright.training.models.mllm import FocalLensMllm
from pairwright.training.models.opening import kind_of
from pairwright.training.models.trained import train_only
from pairwright.training.objectives.conditional import conditional_loss
from pairwright.training.objectives.embedded import Total
from pairwright.training.ranks import Ranks
from pairwright.training.recipe import FocalLensClipMethod, FocalLensMllmMethod, Recipe

_INSTRUCTION_TOKENS = 2048


class FocalLens:
    """The method of triplets, with a token in CLIP's image tower."""

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
        return _loss(out, batch, ranks, both_ways=method.both_ways)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


class FocalLensByLanguage:
    """The method of triplets, with a LLaVA that embeds."""

    def ready(self, recipe: Recipe, model: str) -> Ready:
        """Open a LLaVA and the CLIP it aims at, or a FocalLens-MLLM to go on with.

        Raises:
            UsageError: ``model`` is of another kind; a target where there is one already, or none.
        """
        method = cast("FocalLensMllmMethod", recipe.method)
        lens = _opened(model, method.target)
        if method.tiles:
            lens.llava.show_tiles()
        train_only(lens, "focallens-mllm")
        for unused in lens.unread():  # without a gradient, which processes that train together would wait for
            unused.requires_grad_(False)
        began = method.target != ""
        asked = TextOptions(
            tokenizer_of(model if began else str(Path(model) / "llava")),
            recipe.batches.max_tokens or _INSTRUCTION_TOKENS,
        )
        answers = TextOptions(
            method.target if began else str(Path(model) / "target"),
            min(recipe.batches.max_tokens or lens.target.context, lens.target.context),
        )
        rows = Triplets(method.turns, method.types, asked)
        return Ready(lens, rows, answers, images_for(lens.llava, recipe))

    def loss(self, recipe: Recipe, model: nn.Module, batch: TripletBatch, ranks: Ranks) -> Total:
        """Return the loss of the whole batch."""
        method = cast("FocalLensMllmMethod", recipe.method)
        grids = grids_of(batch.grids)
        out: ClipOutput = model(batch.images, batch.instructions, batch.instruction_mask, batch.texts, grids=grids)
        return _loss(out, batch, ranks, both_ways=method.both_ways)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


def _loss(out: ClipOutput, batch: TripletBatch, ranks: Ranks, *, both_ways: bool) -> Total:
    """Return the loss over the rows of all ranks; rows with one answer are no negatives of each other."""
    images, texts = ranks.gather(out.images), ranks.gather(out.texts)
    answers = ranks.gather((batch.texts + 1) * batch.text_mask)  # 0 behind the end, as gathering fills up rows
    same = torch.unique(answers, dim=0, return_inverse=True)[1]
    return Total(conditional_loss(images, texts, out.scale, same=same, both_ways=both_ways), {})


def _opened(model: str, target: str) -> FocalLensMllm:
    kind = kind_of(model)
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
