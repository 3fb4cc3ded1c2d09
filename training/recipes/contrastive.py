"""CLIP and what adds to its loss: NegCLIP, hard positives, FSC-CLIP, REACT.

All texts of a batch, captions and edited ones, go through the model in one call; places without a text are not embedded.
"""

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from pairwright.datasets.errors import UsageError
from pairwright.generators.online import OnlineNegatives
from pairwright.training.loading.batches import PairBatch
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.model_limits import check_model_limits
from pairwright.training.loading.pairs import PairCollator
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.clip import Clip, ClipOutput
from pairwright.training.models.llava import Llava
from pairwright.training.models.lora import add_lora, merge_lora
from pairwright.training.models.react_clip import ReactClip
from pairwright.training.models.registry import open_model
from pairwright.training.models.trainable_parameters import train_only
from pairwright.training.objectives.batch_embeddings import BatchEmbeddings, WeightedLoss
from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.fsc_clip import FscWeights, LocalFeatures, fsc_clip_loss
from pairwright.training.objectives.hard_positives import hp_hn_loss
from pairwright.training.objectives.negclip import negclip_loss
from pairwright.training.objectives.soft_positives import react_loss
from pairwright.training.recipes.method import PreparedMethod
from pairwright.training.recipes.schema import (
    ClipMethod,
    FscClipMethod,
    HardPositivesMethod,
    NegClipMethod,
    OnlineNegativeSettings,
    ReactMethod,
    Recipe,
)

PairMethod = ClipMethod | NegClipMethod | HardPositivesMethod | FscClipMethod | ReactMethod


class ContrastiveTraining:
    """The methods of pairs."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a CLIP and freeze what is not trained.

        Raises:
            UsageError: ``model`` is of another kind; the sizes do not fit.
        """
        method = cast("PairMethod", recipe.method)
        clip = _open_model(method, model)
        return PreparedMethod(
            clip, _rows(method, recipe.seed), text_options(clip, model, recipe), image_options(clip, recipe)
        )

    def loss(self, recipe: Recipe, model: nn.Module, batch: PairBatch, ranks: Ranks) -> WeightedLoss:
        """Return the loss of the whole batch."""
        method = cast("PairMethod", recipe.method)
        texts = torch.cat([batch.texts, batch.negatives[batch.negatives_mask], batch.positives[batch.positives_mask]])
        mask = torch.cat(
            [
                batch.text_mask,
                batch.negatives_text_mask[batch.negatives_mask],
                batch.positives_text_mask[batch.positives_mask],
            ]
        )
        out: ClipOutput = model(batch.images, texts, mask, local=isinstance(method, FscClipMethod))
        rows, scale = _gather_embeddings(out, batch, ranks), out.scale
        if isinstance(method, FscClipMethod):
            weights = FscWeights(method.whole_weight, method.local_weight, method.focal, method.smoothing)
            return fsc_clip_loss(rows, _gather_local(out, batch, ranks), scale, weights)
        if isinstance(method, HardPositivesMethod):
            weighted = {"negatives": method.negatives_weight, "positives": method.positives_weight}
            return hp_hn_loss(rows, scale, **weighted)
        if isinstance(method, NegClipMethod):
            return WeightedLoss(negclip_loss(rows.images, rows.texts, rows.negatives, rows.negatives_mask, scale), {})
        if isinstance(method, ReactMethod):
            return WeightedLoss(react_loss(rows.images, rows.texts, scale, method.threshold), {})
        return WeightedLoss(clip_loss(rows.images, rows.texts, scale), {})

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model, low-rank matrices added to its weights."""
        if isinstance(model, Clip) and any(".lora_" in name for name, _ in model.named_parameters()):
            merge_lora(model)
        return model


def text_options(clip: Clip, model: str, recipe: Recipe) -> TextOptions:
    """Return how texts become tokens for a CLIP, by its own tokenizer.

    Raises:
        UsageError: more tokens than it reads.
    """
    most = recipe.batches.max_tokens or clip.context
    check_model_limits(clip.network.config, size=clip.pixels.size, max_tokens=most)
    return TextOptions(model, most)


def image_options(model: Clip | Llava, recipe: Recipe) -> ImageOptions:
    """Return how images become pixels for a model.

    Raises:
        UsageError: random crops of images in tiles.
    """
    mean, deviation = (
        cast("tuple[float, float, float]", tuple(of)) for of in (model.pixels.mean, model.pixels.deviation)
    )
    tiles = isinstance(model, Llava) and model.connection.tiles
    if tiles and recipe.batches.crop < 1:
        raise UsageError("method.tiles shows images whole: set batches.crop to 1.")
    return ImageOptions(model.pixels.size, recipe.batches.crop, recipe.batches.mirror, tiles, mean, deviation)


def open_clip(model: str, kinds: tuple[type[Clip], ...]) -> Clip:
    """Open a CLIP of exactly one of these kinds.

    Raises:
        UsageError: it is of another.
    """
    found: Any = open_model(model)
    if type(found) not in kinds:
        raise UsageError(
            f"{model} is a {found.kind}; this recipe begins with a {' or a '.join(k.kind for k in kinds)}."
        )
    return cast("Clip", found)


def _open_model(method: PairMethod, model: str) -> Clip:
    if isinstance(method, ReactMethod):
        gated = open_clip(model, (Clip, ReactClip))
        if not isinstance(gated, ReactClip):
            gated = ReactClip(gated, method.blocks)
        elif len(gated.blocks) != method.blocks:
            raise UsageError(
                f"{model} has {len(gated.blocks)} gated blocks. Give --set method.blocks={len(gated.blocks)}."
            )
        train_only(gated, "react")
        return gated
    clip = open_clip(model, (Clip,))
    if method.lora:
        add_lora(clip, method.lora.rank, alpha=method.lora.alpha)
    else:
        train_only(clip, "clip-locked-text" if method.locked_text else "clip")
    return clip


def _rows(method: PairMethod, seed: int) -> PairCollator:
    if isinstance(method, HardPositivesMethod):
        return PairCollator(method.negatives, method.positives)
    if isinstance(method, NegClipMethod | FscClipMethod):
        return PairCollator(method.negatives, online=_online_negatives(method.online, seed) if method.online else None)
    return PairCollator()


def _online_negatives(online: OnlineNegativeSettings, seed: int) -> OnlineNegatives:
    if not Path(online.pool).is_file():
        raise UsageError(f"method.online.pool: there is no file {online.pool}.")
    if online.types:
        return OnlineNegatives(online.pool, online.types, seed=seed)
    return OnlineNegatives(online.pool, seed=seed)


def _gather_embeddings(out: ClipOutput, batch: PairBatch, ranks: Ranks) -> BatchEmbeddings:
    """Return the rows of all ranks."""
    own, wrong = len(batch.texts), int(batch.negatives_mask.sum())
    captions, negatives, positives = out.texts[:own], out.texts[own : own + wrong], out.texts[own + wrong :]
    return BatchEmbeddings(
        images=ranks.gather(out.images),
        texts=ranks.gather(captions),
        negatives=ranks.gather(_scatter_rows(negatives, batch.negatives_mask)),
        negatives_mask=ranks.gather(batch.negatives_mask),
        positives=ranks.gather(_scatter_rows(positives, batch.positives_mask)),
        positives_mask=ranks.gather(batch.positives_mask),
    )


def _gather_local(out: ClipOutput, batch: PairBatch, ranks: Ranks) -> LocalFeatures:
    assert out.patches is not None
    assert out.tokens is not None
    assert out.token_mask is not None
    own, wrong = len(batch.texts), int(batch.negatives_mask.sum())
    tokens, spoken = (
        torch.cat([each[:own, None], _scatter_rows(each[own : own + wrong], batch.negatives_mask)], dim=1)
        for each in (out.tokens, out.token_mask)
    )
    return LocalFeatures(ranks.gather(out.patches), ranks.gather(tokens), ranks.gather(spoken))


def _scatter_rows(rows: Tensor, mask: Tensor) -> Tensor:
    """Return the rows (m, ...) in the m places where ``mask`` (b, k) is True, zeros elsewhere: (b, k, ...)."""
    placed = rows.new_zeros(*mask.shape, *rows.shape[1:])
    placed[mask] = rows
    return placed
