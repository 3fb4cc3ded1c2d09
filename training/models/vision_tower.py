"""Forward pass of CLIP's vision tower with extension points.

Equals transformers' `CLIPVisionModel.forward`, with appended tokens (FocalLens), blocks before layers (REACT) and a layer
to stop at (LLaVA). Names and weights of the tower are unchanged.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from transformers import CLIPVisionModel

from pairwright.datasets.errors import UsageError


def vision_states(
    tower: CLIPVisionModel,
    images: Tensor,
    *,
    extra: Tensor | None = None,
    blocks: Mapping[int, nn.Module] | None = None,
    layer: int = -1,
) -> Tensor:
    """Return the states of all tokens after a layer, before the last norm.

    Args:
        tower: of any CLIP checkpoint.
        images: float (b, 3, h, w), normalized, of the tower's size.
        extra: float (b, n, width): tokens without a position, after the image's own.
        blocks: modules from states to states, by the number of the layer after them.
        layer: -1: after the last, -2: before it, and so on; from 0 up: after that many layers.

    Returns:
        Float (b, 1 + patches + n, width): the class token first, patches row by row, then ``extra``.

    Raises:
        UsageError: another image size than the tower's, or no such layer.
    """
    check_size(tower, images)
    layers = tower.encoder.layers
    states = tower.embeddings(images)
    if extra is not None:
        states = torch.cat([states, extra.to(states.dtype)], dim=1)
    states = tower.pre_layrnorm(states)
    for number in range(layers_to_run(len(layers), layer)):
        if blocks is not None and number in blocks:
            states = blocks[number](states)
        states = layers[number](states, None)
    assert isinstance(states, Tensor)
    return states


def layers_to_run(depth: int, layer: int) -> int:
    """Return how many of ``depth`` layers to run for ``layer`` of `vision_states`.

    Raises:
        UsageError: no such layer.
    """
    count = depth + 1 + layer if layer < 0 else layer
    if not 0 <= count <= depth:
        raise UsageError(f"layer {layer} of a vision tower of {depth} layers: must be from {-depth - 1} to {depth}")
    return count


def image_size(tower: CLIPVisionModel) -> int:
    """Return the image side in pixels."""
    found = tower.config.image_size
    assert isinstance(found, int)  # CLIP's are square
    return found


def patch_count(tower: CLIPVisionModel) -> int:
    """Return the number of patches per image."""
    patch = tower.config.patch_size
    assert isinstance(patch, int)
    return (image_size(tower) // patch) ** 2


def check_size(tower: CLIPVisionModel, images: Tensor) -> None:
    """Check that images have the tower's size.

    Raises:
        UsageError: they have another size.
    """
    size = image_size(tower)
    if tuple(images.shape[-2:]) != (size, size):
        raise UsageError(
            f"images of {images.shape[-1]}x{images.shape[-2]} pixels, but the vision tower reads {size}x{size}: "
            f"set the image size to {size}"
        )
