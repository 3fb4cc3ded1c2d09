"""Contrastive objectives of CLIP, and of NegCLIP with hard negatives as additional texts.

NegCLIP's paper also puts similar images into a batch, which is up to the loader.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import mask_value, scaled_similarities, zero_masked


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


def negclip_loss(images: Tensor, texts: Tensor, negatives: Tensor, mask: Tensor, scale: Tensor | float) -> Tensor:
    """Return CLIP's loss with all hard negatives of the batch among each image's texts (ARO, section 4).

    From image to text, image i retrieves its caption among all captions and all negatives. From text to image only captions
    take part, as a negative has no image.

    Args:
        images: float (b, d), rows of unit length.
        texts: float (b, d), rows of unit length; row i belongs to image i.
        negatives: float (b, k, d), rows of unit length; those of text i. The paper has k = 1.
        mask: bool (b, k), False at missing negatives.
        scale: 1 / temperature, above 0.

    Returns:
        A 0-d tensor: the mean of both directions, in nats; ``clip_loss`` without negatives.
    """
    logits = scaled_similarities(images, texts, scale)
    extra = scaled_similarities(images, zero_masked(negatives, mask).flatten(0, 1), scale)
    extra = extra.masked_fill(~mask.flatten(), mask_value(extra))
    own = torch.arange(len(logits), device=logits.device)
    to_text = functional.cross_entropy(torch.cat([logits, extra], dim=1), own)
    return (to_text + functional.cross_entropy(logits.T, own)) / 2
