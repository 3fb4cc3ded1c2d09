"""Objectives of CLIP, and of CLIP with hard negatives as additional texts (NegCLIP).

NegCLIP's paper also puts similar images into a batch, which is up to the loader.
"""

from torch import Tensor, cat
from torch.nn import functional

from pairwright.training.objectives.distributed import ALONE, Ranks, paired_logits
from pairwright.training.objectives.embeddings import mask_value, scaled_similarities, zero_masked


def clip_loss(images: Tensor, texts: Tensor, scale: Tensor | float, ranks: Ranks = ALONE) -> Tensor:
    """Return the symmetric cross entropy of matching images and texts (CLIP, section 2.3).

    Both are float (b, d), rows of unit length, and row i belongs to row i; ``scale`` is 1 / temperature, above 0;
    ``ranks`` hold the other rows of the batch. The result is a 0-d tensor: the mean of both directions over this rank's
    rows, in nats, whose mean over ranks is the loss of the whole batch.
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
