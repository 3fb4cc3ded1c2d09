"""Hard-negative objective: each image chooses between its caption and the caption's hard negatives.

FSC-CLIP defines it for scores of whole texts (eq. 3-4) and of tokens (eq. 5), with a focal weight (eq. 9) and label
smoothing (eq. 10). All four are one function of the scores, ``choice_loss``.
"""

import torch
from torch import Tensor

from pairwright.training.objectives.distributed import ALONE, Ranks
from pairwright.training.objectives.embeddings import mask_value, scaled_similarities, to_full_precision, zero_masked


def hard_negative_loss(  # noqa: PLR0913, PLR0917 - two tensors more than `clip_loss`
    images: Tensor, texts: Tensor, negatives: Tensor, mask: Tensor, scale: Tensor | float, ranks: Ranks = ALONE
) -> Tensor:
    """Return the cross entropy of the caption among itself and its hard negatives (FSC-CLIP, section 3.1, eq. 3-4).

    Arguments as of `contrastive.negclip_loss`, result as of `choice_loss`.
    """
    return choice_loss(choice_scores(images, texts, negatives, mask, scale), mask, ranks=ranks)


def choice_scores(images: Tensor, texts: Tensor, negatives: Tensor, mask: Tensor, scale: Tensor | float) -> Tensor:
    """Return log S_g (eq. 1): float (b, 1 + k), the caption first. Arguments as of ``hard_negative_loss``."""
    listed = torch.cat([to_full_precision(texts).unsqueeze(1), to_full_precision(zero_masked(negatives, mask))], dim=1)
    return scaled_similarities(images.unsqueeze(1), listed, scale).squeeze(1)


def choice_loss(
    choices: Tensor, mask: Tensor, *, focal: float = 0.0, smoothing: float = 0.0, ranks: Ranks = ALONE
) -> Tensor:
    """Return the focal cross entropy of the first choice against smoothed labels (FSC-CLIP, section 3.3, eq. 9-10).

    Without ``focal`` and ``smoothing`` this is the plain cross entropy (eq. 4 and 5).

    Args:
        choices: float (b, 1 + k), log scores; the first is the caption's, the others its negatives'.
        mask: bool (b, k), False at missing negatives.
        focal: gamma, 0 or above. A choice of share p is weighted by (1 - p) ** gamma.
        smoothing: beta, 0 to 1: the label mass that is distributed evenly over the choices.
        ranks: processes that hold the other rows of the batch; nothing but the number of rows is gathered.

    Returns a 0-d tensor: the mean over rows with a negative, in nats; 0 without any.
    """
    # Eq. 4 divides by B, while appendix A.1 drops rows without negatives: the mean is over rows with one.
    # Eq. 10 distributes beta over 1 + K; a row with fewer negatives over those it has, so that labels sum to 1.
    listed = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)
    shares = choices.masked_fill(~listed, mask_value(choices)).log_softmax(dim=1)
    # In the precision of the scores: a float times a bool mask would be float32.
    even = listed.to(shares.dtype) / listed.sum(dim=1, keepdim=True)
    first = (torch.arange(listed.shape[1], device=mask.device) == 0).to(shares.dtype)
    labels = (1 - smoothing) * first + smoothing * even
    doubt = -torch.expm1(shares)
    # A share of exactly 1 costs nothing whatever its weight; 0 ** gamma has no gradient there when gamma < 1.
    weights = doubt.where(doubt > 0, 1.0) ** focal
    return ranks.mean(-(labels * weights * shares).sum(dim=1), mask.any(dim=1))
