"""Soft-positive objective of REACT: retrieved pairs with similar texts are positives of each other.

Equations are those of chapter 2 of Liu's dissertation (REACT). The loss is a function of a mask of positives: texts of
the same class give UniCL, only the own text gives CLIP, texts above a similarity threshold give REACT.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.distributed import ALONE, Ranks, paired_logits
from pairwright.training.objectives.embeddings import scaled_similarities, to_full_precision


def react_loss(
    images: Tensor, texts: Tensor, scale: Tensor | float, threshold: float = 0.9, ranks: Ranks = ALONE
) -> Tensor:
    """Return the bidirectional loss with texts of at least ``threshold`` cosine as positives (REACT, eq. 2.4-2.6).

    ``threshold`` is gamma, 0.9 in the paper for classification; above 1: one-to-one, as CLIP. Images are u, texts v, and the
    scale tau; arguments as of `contrastive.clip_loss`, result as of `soft_positive_loss`.
    """
    return soft_positive_loss(images, texts, similar_texts(texts, threshold, ranks), scale, ranks)


def soft_positive_loss(
    images: Tensor, texts: Tensor, positives: Tensor, scale: Tensor | float, ranks: Ranks = ALONE
) -> Tensor:
    """Return the bidirectional loss, averaged over all positives of a row (REACT, eq. 2.5 and 2.6).

    ``positives``: bool (b, b), whether image i and text j belong together (by class as in UniCL: ``ids[:, None] ==
    ids``); with several ranks (b, N), and symmetric over the whole batch. Others as of `contrastive.clip_loss`. The
    result is a 0-d tensor: the mean of both directions over rows with a positive, in nats; 0 without any.
    """
    # Eq. 2.4-2.6 sum over the batch and over both directions. The mean of both is 1 / 2b times that: it does not grow
    # with the batch, and is CLIP's loss exactly when each pair is alone.
    to_text, to_image, present = paired_logits(images, texts, scale, ranks)
    columns = positives.T if present is None else positives
    return (_spread_loss(to_text, positives, ranks) + _spread_loss(to_image, columns, ranks)) / 2


def _spread_loss(logits: Tensor, positives: Tensor, ranks: Ranks) -> Tensor:
    """Return the mean over rows of the cross entropy with even labels over each row's positives, 1 / |P(i)|."""
    even = positives.to(logits.dtype) / positives.sum(dim=1, keepdim=True).clamp(min=1)
    return ranks.mean(-(even * logits.log_softmax(dim=1)).sum(dim=1), positives.any(dim=1))


def similar_texts(texts: Tensor, threshold: float = 0.9, ranks: Ranks = ALONE) -> Tensor:
    """Return which texts have at least ``threshold`` cosine: P(i) and Q(j) of REACT, section 2.3; bool (b, N).

    Texts are float (b, d), not 0; they do not change, as REACT freezes the text encoder. At 1 only equal embeddings are
    similar, up to rounding; above 1 none. A text is always similar to itself.
    """
    unit = functional.normalize(to_full_precision(texts.detach()), dim=1)
    rounding = 16 * torch.finfo(unit.dtype).eps
    every = ranks.gather(unit)
    itself = ranks.places(unit).unsqueeze(1) == torch.arange(len(every), device=unit.device)
    similar = (scaled_similarities(unit, every, 1.0) >= threshold - rounding) | itself
    present = ranks.present(unit)
    return similar if present is None else similar & present
