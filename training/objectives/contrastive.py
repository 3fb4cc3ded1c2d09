"""The plain contrastive objective of CLIP, on which the others build."""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import scaled_similarities


def clip_loss(images: Tensor, texts: Tensor, scale: Tensor | float) -> Tensor:
    """Return the symmetric cross entropy of matching images and texts (CLIP, section 2.3).

    Args:
        images: float (b, d), rows of unit length.
        texts: float (b, d), rows of unit length; row i belongs to image i.
        scale: 1 / temperature, above 0.

    Returns:
        A 0-d tensor: the mean of both directions, in nats.
    """
    logits = scaled_similarities(images, texts, scale)
    own = torch.arange(len(logits), device=logits.device)
    return (functional.cross_entropy(logits, own) + functional.cross_entropy(logits.T, own)) / 2
