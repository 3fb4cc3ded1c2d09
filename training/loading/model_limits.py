"""What a model's towers take, against what the loader gives: said before the first step, not in the middle of one."""

from typing import Any

from pairwright.datasets.errors import UsageError


def check_model_limits(config: Any, *, size: int, max_tokens: int) -> None:
    """Compare image size and text length with a model's config.

    Args:
        config: of transformers; ``vision_config.image_size`` and ``text_config.max_position_embeddings`` are looked at
            where it has them.
        size: pixels of a side that the loader gives.
        max_tokens: of a text that the loader gives.

    Raises:
        UsageError: another image size than the tower's, or more tokens than it has places for.
    """
    pixels = getattr(getattr(config, "vision_config", None), "image_size", None)
    if isinstance(pixels, int) and pixels != size:
        raise UsageError(
            f"images of {size} pixels, but the vision tower takes {pixels}. Set the image size to {pixels}."
        )
    places = getattr(getattr(config, "text_config", None), "max_position_embeddings", None)
    if isinstance(places, int) and places < max_tokens:
        raise UsageError(
            f"texts of up to {max_tokens} tokens, but the text tower reads {places}. Set max_tokens to {places}."
        )
