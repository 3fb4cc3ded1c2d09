"""Opening a CLIP for a recipe, and the text and image options that fit a model."""

from typing import Any, cast

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.model_limits import check_model_limits
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.clip import Clip
from pairwright.training.models.llava import Llava
from pairwright.training.models.registry import open_model
from pairwright.training.recipes.schema import Recipe


def text_options(clip: Clip, model: str, recipe: Recipe) -> TextOptions:
    """Return the tokenization for a CLIP, by its own tokenizer.

    Raises:
        UsageError: more tokens than the model reads.
    """
    most = recipe.batches.max_tokens or clip.context
    check_model_limits(clip.network.config, size=clip.pixels.size, max_tokens=most)
    return TextOptions(model, most)


def image_options(model: Clip | Llava, recipe: Recipe) -> ImageOptions:
    """Return the image transforms for a model.

    Raises:
        UsageError: random crops of images in tiles.
    """
    mean, deviation = (
        cast("tuple[float, float, float]", tuple(of)) for of in (model.pixels.mean, model.pixels.deviation)
    )
    tiles = isinstance(model, Llava) and model.connection.tiles
    if tiles and recipe.batches.crop < 1:
        raise UsageError("method.tiles requires whole images: set batches.crop to 1.")
    return ImageOptions(model.pixels.size, recipe.batches.crop, recipe.batches.mirror, tiles, mean, deviation)


def open_clip(model: str, kinds: tuple[type[Clip], ...]) -> Clip:
    """Open a CLIP of exactly one of these kinds.

    Raises:
        UsageError: it is of another kind.
    """
    found: Any = open_model(model)
    if type(found) not in kinds:
        raise UsageError(
            f"{model} is a {found.kind}; this recipe begins with a {' or a '.join(k.kind for k in kinds)}."
        )
    return cast("Clip", found)
