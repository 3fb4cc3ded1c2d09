"""Soft-positive objective of REACT: retrieved pairs with similar texts are positives of each other.

Equations are those of chapter 2 of Liu's dissertation (REACT). The loss is a function of a mask of positives: texts of
the same class give UniCL, only the own text gives CLIP, texts above a similarity threshold give REACT.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import masked_mean, scaled_similarities, to_full_precision


def react_loss(images: Tensor, texts: Tensor, scale: Tensor | float, threshold: float = 0.9) -> Tensor:
    """Return the bidirectional loss with texts of at least ``threshold`` cosine as positives (REACT, eq. 2.4-2.6).

    Args:
        images: float (b, d), rows of unit length (u).
        texts: float (b, d), rows of unit length (v); row i belongs to image i. REACT freezes the text encoder, so which
            texts are similar never changes.
        scale: 1 / temperature, above 0 (the paper's tau).
        threshold: gamma; 0.9 in the paper for classification. Above 1: one-to-one, as CLIP.

    Returns:
        A 0-d tensor, as ``soft_positive_loss``.
    """
    return soft_positive_loss(images, texts, similar_texts(texts, threshold), scale)


def soft_positive_loss(images: Tensor, texts: Tensor, positives: Tensor, scale: Tensor | float) -> Tensor:
    """Return the bidirectional loss, averaged over all positives of a row (REACT, eq. 2.5 and 2.6).

    Args:
        images: float (b, d), rows of unit length.
        texts: float (b, d), rows of unit length.
        positives: bool (b, b), whether image i and text j belong together. By class as in UniCL:
            ``ids[:, None] == ids``.
        scale: 1 / temperature, above 0.

    Returns:
        A 0-d tensor: the mean of both directions over rows with a positive, in nats; 0 without any.
    """
    # Eq. 2.4-2.6 sum over the batch and over both directions. The mean of both is 1 / 2b times that: it does not grow
    # with the batch, and is CLIP's loss exactly when each pair is alone.
    logits = scaled_similarities(images, texts, scale)
    to_text, to_image = (
        masked_mean(
            -(_even_shares(positives.to(logits.dtype), side) * logits.log_softmax(dim=side)).sum(dim=side),
            positives.any(dim=side),
        )
        for side in (1, 0)
    )
    return (to_text + to_image) / 2


def similar_texts(texts: Tensor, threshold: float = 0.9) -> Tensor:
    """Return which texts have at least ``threshold`` cosine: P(i) and Q(j) of REACT, section 2.3.

    Args:
        texts: float (b, d), not 0.
        threshold: gamma, from -1. At 1 only equal embeddings are similar, up to rounding; above 1 none.

    Returns:
        bool (b, b), symmetric up to rounding; True on the diagonal.
    """
    unit = functional.normalize(to_full_precision(texts.detach()), dim=1)
    rounding = 16 * torch.finfo(unit.dtype).eps
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    return (scaled_similarities(unit, unit, 1.0) >= threshold - rounding) | itself


def _even_shares(positives: Tensor, side: int) -> Tensor:
    """Return each positive's share within its row or column, 1 / |P(i)|: float (b, b) of a 0/1 matrix."""
    return positives / positives.sum(dim=side, keepdim=True).clamp(min=1)
