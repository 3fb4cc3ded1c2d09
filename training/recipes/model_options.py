"""Check of image size and text length against a model."""

from typing import Any

from pairwright.datasets.errors import UsageError


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
