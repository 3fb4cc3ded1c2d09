"""CLIP loading for a recipe, and the text and image options that fit a model."""

from dataclasses import replace
from typing import Any, cast

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.registry import open_model
from pairwright.training.recipes.schema import Recipe


def text_options(clip: Clip, model: str, recipe: Recipe) -> TextOptions:
    """Return the tokenization for a CLIP, by its own tokenizer."""
    most = recipe.batches.max_tokens or clip.context
    check_model_limits(clip.network.config, size=clip.pixels.size, max_tokens=most)
    return TextOptions(model, most, recipe.compile)


def image_options(model: Clip | FocalLensMllm, recipe: Recipe) -> ImageOptions:
    """Return the image transforms for a model.

    Raises:
        UsageError: random crops of images in tiles.
    """
    if model.pixels.tiles and recipe.batches.crop < 1:
        raise UsageError("method.tiles requires whole images: set batches.crop to 1.")
    return replace(model.pixels, crop=recipe.batches.crop)


def open_clip(model: str, kinds: tuple[type[Clip], ...]) -> Clip:
    """Open a CLIP of exactly one of these kinds.

    Raises:
        UsageError: it is of another kind.
    """
    found: Any = open_model(model)
    if type(found) not in kinds:
        raise UsageError(f"{model} is of kind {found.kind}; this recipe requires {' or '.join(k.kind for k in kinds)}.")
    return cast("Clip", found)


def check_model_limits(config: Any, *, size: int, max_tokens: int) -> None:
    """Check image size and text length against the config of a model.

    ``config`` is of transformers: ``vision_config.image_size`` is compared with ``size``, the image side in pixels, and
    ``text_config.max_position_embeddings`` with ``max_tokens`` per text, where it has them.

    Raises:
        UsageError: the image size differs from the tower's, or texts are longer than its limit.
    """
    pixels = getattr(getattr(config, "vision_config", None), "image_size", None)
    if isinstance(pixels, int) and pixels != size:
        raise UsageError(
            f"images of {size} pixels, but the vision tower reads {pixels}. Set the image size to {pixels}."
        )
    places = getattr(getattr(config, "text_config", None), "max_position_embeddings", None)
    if isinstance(places, int) and places < max_tokens:
        raise UsageError(
            f"texts of up to {max_tokens} tokens, but the text tower reads {places}. Set max_tokens to {places}."
        )
