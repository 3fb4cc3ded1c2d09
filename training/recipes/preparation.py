"""What a run does by its method: the model that it trains, the form of its batches, and the loss."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairwright.datasets.errors import UsageError
from pairwright.generators.online import OnlineNegatives
from pairwright.training.loading.batches import Collator, PairBatch, PairCollator, TripletCollator
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.anyres import Grid
from pairwright.training.models.checkpoints import check_model_limits
from pairwright.training.models.clip import Clip, ClipOutput
from pairwright.training.models.extended_clip import FocalLensClip, ReactClip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.generative import ImageTextModel
from pairwright.training.models.registry import model_kind, open_model
from pairwright.training.models.trainable_parameters import add_lora, train_only
from pairwright.training.objectives.conditional import conditional_loss
from pairwright.training.objectives.contrastive import clip_loss, negclip_loss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.embeddings import PairEmbeddings, WeightedLoss
from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss
from pairwright.training.objectives.hard_positives import hp_hn_loss
from pairwright.training.objectives.soft_positives import react_loss
from pairwright.training.recipes import settings
from pairwright.training.recipes.settings import PairMethod, Recipe, RecipeMethod

_INSTRUCTION_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class PreparedMethod:
    """A model to train, and the form of its batches."""

    model: nn.Module  # with parameters frozen as the recipe says
    rows: Collator[Any]  # collates samples to batches
    texts: TextOptions  # tokenization
    images: ImageOptions  # image transforms


def prepare(recipe: Recipe, model: str) -> PreparedMethod:
    """Open ``model``, a folder or a name, and freeze what the recipe does not train."""
    method = recipe.method
    if isinstance(method, settings.FocalLensMllmMethod):
        return _prepare_mllm(method, recipe, model)
    clip = _open_model(method, model)
    most = recipe.batches.max_tokens or clip.context
    check_model_limits(clip.network.config, size=clip.pixels.size, max_tokens=most)
    images = replace(clip.pixels, crop=recipe.batches.crop)
    return PreparedMethod(clip, _collator(method, recipe.seed), TextOptions(model, most, recipe.compile), images)


def batch_loss(method: RecipeMethod, model: nn.Module, batch: Any, ranks: Ranks) -> WeightedLoss:
    """Return the loss of a step and its parts; the mean over ranks is that of the whole batch.

    ``model`` may be wrapped for several processes; it is called exactly once.
    """
    if isinstance(method, PairMethod):
        return pair_loss(method, embed_pairs(model, batch, local=method.local_features), ranks)
    images = batch.images[batch.image_index]
    out: ClipOutput
    if isinstance(method, settings.FocalLensClipMethod):
        out = model(images, batch.texts, batch.text_mask, instructions=batch.instructions)
    else:
        grids = [Grid(*one) for one in batch.grids] or None
        out = model(images, batch.instructions, batch.instruction_mask, batch.texts, grids=grids)
    ranks = ranks.agree(len(out.images), out.images.device)  # a sample has any number of rows
    same = _hash_texts(batch.texts, batch.text_mask)  # rows with the same answer are not negatives of each other
    loss = conditional_loss(out.images, out.texts, out.scale, same=same, both_ways=method.both_ways, ranks=ranks)
    return WeightedLoss(loss)


def embed_pairs(model: nn.Module, batch: PairBatch, *, local: bool = False) -> PairEmbeddings:
    """Return the embeddings of images and all texts of a batch in one pass; ``local``: also patches and tokens.

    Missing texts are not embedded, unless texts have fixed lengths. Which are missing is known on the host, so no pass
    waits for the device.
    """
    places = torch.from_numpy(np.flatnonzero(batch.embedded))
    if batch.texts.is_cuda:  # a copy from memory that is not page-locked may wait for the device
        places = places.pin_memory()
    places = places.to(batch.texts.device, non_blocking=True)
    texts, text_mask = (one.flatten(0, 1)[places] for one in (batch.texts, batch.text_mask))
    out: ClipOutput = model(batch.images, texts, text_mask, local=local)
    rows, first = _put(out.texts, places, batch.mask), 1 + batch.negatives
    features = {}
    if local:
        tokens, tokens_mask = (_put(one, places, batch.mask)[:, :first] for one in (out.tokens, out.token_mask))
        features = {"patches": out.patches, "tokens": tokens, "tokens_mask": tokens_mask}
    return PairEmbeddings(
        images=out.images,
        texts=rows[:, 0],
        negatives=rows[:, 1:first],
        negatives_mask=batch.mask[:, 1:first],
        positives=rows[:, first:],
        positives_mask=batch.mask[:, first:],
        scale=out.scale,
        **features,
    )


def _put(rows: Any, places: Tensor, mask: Tensor) -> Tensor:
    """Return the rows (m, ...) at their flat places among those of ``mask`` (b, n), zeros elsewhere: (b, n, ...)."""
    put: Tensor = rows.new_zeros(mask.numel(), *rows.shape[1:]).index_copy(0, places, rows)
    return put.view(*mask.shape, *rows.shape[1:])


def pair_loss(method: PairMethod, pairs: PairEmbeddings, ranks: Ranks) -> WeightedLoss:
    """Return the loss of this rank's rows among those of all ranks."""
    own, wrong = (pairs.images, pairs.texts), (pairs.negatives, pairs.negatives_mask)
    match method:
        case settings.HardPositivesMethod(negatives_weight=negatives, positives_weight=positives):
            return hp_hn_loss(pairs, negatives=negatives, positives=positives, ranks=ranks)
        case settings.FscClipMethod():
            weights = FscWeights(method.whole_weight, method.local_weight, method.focal, method.smoothing)
            return fsc_clip_loss(pairs, weights, ranks)
        case settings.ClipMethod():
            loss = clip_loss(*own, pairs.scale, ranks)
        case settings.NegClipMethod():
            loss = negclip_loss(*own, *wrong, pairs.scale, ranks)
        case settings.ReactMethod():
            loss = react_loss(*own, pairs.scale, method.threshold, ranks)
    return WeightedLoss(loss)


def _hash_texts(texts: Tensor, mask: Tensor) -> Tensor:
    """Return a 64-bit hash of each text, int64 (b,), which does not depend on its padding."""
    # A polynomial modulo 2^64; the factor is that of a linear congruential generator (Knuth's MMIX).
    powers = torch.full(texts.shape[1:], 6364136223846793005, device=texts.device).cumprod(dim=0)
    return ((texts + 1) * mask * powers).sum(dim=1)


def _collator(method: RecipeMethod, seed: int) -> Collator[Any]:
    match method:
        case settings.FocalLensMethod():
            return TripletCollator(method.turns, method.types)
        case settings.HardPositivesMethod():
            return PairCollator(method.negatives, method.positives)
        case settings.HardNegativesMethod(online=settings.OnlineNegativeSettings(pool=pool, types=types)):
            if not pool.is_file():
                raise UsageError(f"method.online.pool: {pool} does not exist.")
            online = OnlineNegatives(pool, types, seed=seed) if types else OnlineNegatives(pool, seed=seed)
            return PairCollator(method.negatives, online=online)
        case settings.HardNegativesMethod():
            return PairCollator(method.negatives)
    return PairCollator()


def _open_model(method: RecipeMethod, model: str) -> Clip:
    """Return a CLIP, extended as the method says, with all but its parameters frozen."""
    match method:
        case settings.TowerMethod(lora=settings.LoraSettings(rank=rank, alpha=alpha)):
            clip, trained = _open_clip(model, (Clip,)), "lora"
            add_lora(clip, rank, alpha=alpha)
        case settings.TowerMethod():
            clip, trained = _open_clip(model, (Clip,)), "clip-locked-text" if method.locked_text else "clip"
        case settings.ReactMethod(blocks=blocks):
            clip, trained = _open_clip(model, (Clip, ReactClip)), "react"
            clip = clip if isinstance(clip, ReactClip) else ReactClip(clip, blocks)
            if len(clip.blocks) != blocks:
                fix = f"Pass --set method.blocks={len(clip.blocks)}."
                raise UsageError(f"{model} has {len(clip.blocks)} gated blocks. {fix}")
        case settings.FocalLensClipMethod():
            clip, trained = _open_clip(model, (Clip, FocalLensClip)), "focallens-clip"
            clip = clip if isinstance(clip, FocalLensClip) else FocalLensClip(clip)
    train_only(clip, trained)
    return clip


def _open_clip(model: str, kinds: tuple[type[Clip], ...]) -> Clip:
    """Open a CLIP of exactly one of these kinds."""
    found = open_model(model)
    if not isinstance(found, Clip) or type(found) not in kinds:
        raise UsageError(f"{model} is of kind {found.kind}; this recipe requires {' or '.join(k.kind for k in kinds)}.")
    return found


def _prepare_mllm(method: settings.FocalLensMllmMethod, recipe: Recipe, model: str) -> PreparedMethod:
    kind = model_kind(model)
    if kind == FocalLensMllm.kind and method.target:
        raise UsageError(f"{model} is a FocalLens-MLLM with its own target: remove method.target.")
    if kind not in {FocalLensMllm.kind, ImageTextModel.kind}:
        raise UsageError(
            f"{model} is of kind {kind}; this recipe requires a LLaVA, as trained by "
            "llava-align and llava-instruct, or a focallens-mllm."
        )
    if kind == ImageTextModel.kind and not method.target:
        raise UsageError(f"{model} has no target CLIP: pass --set method.target=PATH.")
    lens = FocalLensMllm.begin(model, Clip.load(method.target)) if method.target else FocalLensMllm.load(model)
    lens.pixels = replace(lens.pixels, tiles=lens.pixels.tiles or method.tiles)
    train_only(lens, "focallens-mllm")
    names = (model, method.target) if method.target else (str(Path(model) / "llava"), str(Path(model) / "target"))
    asked, context = recipe.batches.max_tokens, lens.target.context
    instructions = TextOptions(names[0], asked or _INSTRUCTION_TOKENS)
    answers = TextOptions(names[1], min(asked or context, context))
    rows = TripletCollator(method.turns, method.types, instructions)
    return PreparedMethod(lens, rows, answers, replace(lens.pixels, crop=recipe.batches.crop))
