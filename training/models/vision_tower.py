"""Forward pass of CLIP's vision tower with extension points.

Equals transformers' `CLIPVisionModel.forward`, with appended tokens (FocalLens) and blocks before layers (REACT). Names and
weights of the tower are unchanged.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from transformers import CLIPVisionModel


def vision_states(
    tower: CLIPVisionModel,
    images: Tensor,
    *,
    extra: Tensor | None = None,
    blocks: Mapping[int, nn.Module] | None = None,
) -> Tensor:
    """Return the states of all tokens after the last layer, before the last norm.

    Args:
        tower: of any CLIP checkpoint.
        images: float (b, 3, h, w), normalized, of the tower's size.
        extra: float (b, n, width): tokens without a position, after the image's own.
        blocks: modules from states to states, by the number of the layer after them.

    Returns:
        Float (b, 1 + patches + n, width): the class token first, patches row by row, then ``extra``.
    """
    states = tower.embeddings(images)
    if extra is not None:
        states = torch.cat([states, extra.to(states.dtype)], dim=1)
    states = tower.pre_layrnorm(states)
    for number, layer in enumerate(tower.encoder.layers):
        if blocks is not None and number in blocks:
            states = blocks[number](states)
        states = layer(states, None)
    assert isinstance(states, Tensor)
    return states
