"""Sigmoid objective of SigLIP, and the same with hard negatives as additional texts."""

from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.distributed import ALONE, Ranks
from pairwright.training.objectives.similarities import scaled_similarities, zero_masked


def siglip_loss(
    images: Tensor, texts: Tensor, scale: Tensor | float, bias: Tensor | float, ranks: Ranks = ALONE
) -> Tensor:
    """Return the sigmoid loss: each image decides for each text whether they match (SigLIP, section 3.2).

    ``bias`` is added to the scaled similarities; of other ranks only texts are gathered. Other arguments as of
    `contrastive.clip_loss`.

    Returns:
        A 0-d tensor: the sum over the pairs of the batch, divided by b, in nats.
    """
    logits = scaled_similarities(images, ranks.gather(texts), scale) + bias
    present = ranks.present(texts)
    each = functional.softplus(logits)
    if present is not None:
        each = each.masked_fill(~present, 0.0)
    # log sigmoid(-z) = log sigmoid(z) - z, so the own text is counted as wrong first and then corrected.
    return ranks.mean(each.sum(dim=1) - logits.gather(1, ranks.places(images).unsqueeze(1)).squeeze(1))


def siglip_hn_loss(  # noqa: PLR0913, PLR0917 - two tensors more than `siglip_loss`
    images: Tensor,
    texts: Tensor,
    negatives: Tensor,
    mask: Tensor,
    scale: Tensor | float,
    bias: Tensor | float,
    ranks: Ranks = ALONE,
) -> Tensor:
    """Return the sigmoid loss with all hard negatives of the batch as texts that match no image.

    ``negatives``: float (b, k, d), rows of unit length, those of text i; ``mask``: bool (b, k), False at missing ones. All else
    as of `siglip_loss`, which it is without negatives.
    """
    extra = scaled_similarities(images, ranks.gather(zero_masked(negatives, mask)).flatten(0, 1), scale) + bias
    wrong = functional.softplus(extra).masked_fill(~ranks.gather(mask).flatten(), 0.0).sum(dim=1)
    return siglip_loss(images, texts, scale, bias, ranks) + ranks.mean(wrong)
