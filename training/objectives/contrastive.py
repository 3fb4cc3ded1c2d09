"""Objectives of CLIP and SigLIP, and of both with hard negatives as additional texts.

NegCLIP's paper also puts similar images into a batch, which is up to the loader.
"""

from torch import Tensor, cat
from torch.nn import functional

from pairwright.training.objectives.distributed import ALONE, Ranks, paired_logits
from pairwright.training.objectives.embeddings import mask_value, scaled_similarities, zero_masked


def clip_loss(images: Tensor, texts: Tensor, scale: Tensor | float, ranks: Ranks = ALONE) -> Tensor:
    """Return the symmetric cross entropy of matching images and texts (CLIP, section 2.3).

    Args:
        images: float (b, d), rows of unit length.
        texts: float (b, d), rows of unit length; row i belongs to image i.
        scale: 1 / temperature, above 0.
        ranks: processes that hold the other rows of the batch.

    Returns:
        A 0-d tensor: the mean of both directions, in nats; of the whole batch after the mean over ranks.
    """
    to_text, to_image, _ = paired_logits(images, texts, scale, ranks)
    return _mean_of_directions(to_text, to_image, images, ranks)


def negclip_loss(  # noqa: PLR0913, PLR0917 - two tensors more than `clip_loss`
    images: Tensor, texts: Tensor, negatives: Tensor, mask: Tensor, scale: Tensor | float, ranks: Ranks = ALONE
) -> Tensor:
    """Return CLIP's loss with all hard negatives of the batch among each image's texts (ARO, section 4).

    From image to text, image i retrieves its caption among all captions and all negatives. From text to image only captions
    take part, as a negative has no image. ``negatives``: float (b, k, d), rows of unit length, those of text i (k is 1 in the
    paper); ``mask``: bool (b, k), False at missing ones. All else as of `clip_loss`, which it is without negatives.
    """
    to_text, to_image, _ = paired_logits(images, texts, scale, ranks)
    extra = scaled_similarities(images, ranks.gather(zero_masked(negatives, mask)).flatten(0, 1), scale)
    extra = extra.masked_fill(~ranks.gather(mask).flatten(), mask_value(extra))
    return _mean_of_directions(cat([to_text, extra], dim=1), to_image, images, ranks)


def _mean_of_directions(to_text: Tensor, to_image: Tensor, images: Tensor, ranks: Ranks) -> Tensor:
    own = ranks.places(images)
    each = (functional.cross_entropy(logits, own, reduction="none") for logits in (to_text, to_image))
    return ranks.mean(sum(each, start=images.new_zeros(()))) / 2


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
