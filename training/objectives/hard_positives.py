"""Hard-positive objective: reworded captions that are still true stay close.

The Hard Positive Truth (section 5, appendix D.1) describes its losses in words and refers to SVLC: "a hard positive loss
(called an analogy loss in SVLC) on each image with its original and positive captions". The rest follows SVLC's
published code: image and caption each retrieve the reworded caption among all reworded captions of the batch, at the
same temperature, and the two losses are averaged.
"""

import torch
from torch import Tensor

from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.distributed import ALONE, Ranks
from pairwright.training.objectives.embeddings import (
    PairEmbeddings,
    WeightedLoss,
    mask_value,
    scaled_similarities,
    zero_masked,
)
from pairwright.training.objectives.hard_negatives import hard_negative_loss


def analogy_loss(  # noqa: PLR0913, PLR0917 - two tensors more than `clip_loss`
    images: Tensor, texts: Tensor, positives: Tensor, mask: Tensor, scale: Tensor | float, ranks: Ranks = ALONE
) -> Tensor:
    """Return the loss of images and captions retrieving their hard positives (The Hard Positive Truth, appendix D.1).

    The source has one positive per row. Of several, each is retrieved separately among those of other rows: other
    positives of the row are no negatives. ``positives``: float (b, p, d), rows of unit length, those of text i;
    ``mask``: bool (b, p), False at missing ones; the others as of `clip_loss`. The result is a 0-d tensor: half the
    image's and half the caption's cross entropy, mean over positives, in nats; 0 if fewer than two rows have positives.
    """
    candidates, known = ranks.gather(zero_masked(positives, mask)), ranks.gather(mask)
    own = ranks.places(images)
    each = [
        _retrieval_loss(scaled_similarities(anchors, candidates.flatten(0, 1), scale), known, own)
        for anchors in (images, texts)
    ]
    return ranks.mean((each[0] + each[1]) / 2, mask)


def _retrieval_loss(found: Tensor, mask: Tensor, own: Tensor) -> Tensor:
    """Return float (b, p): the negative log share of each own candidate among logits (b, N * p) of other rows."""
    found, low = found.view(len(own), *mask.shape), mask_value(found)
    same = (own.unsqueeze(1) == torch.arange(len(mask), device=own.device)).unsqueeze(-1)
    others = found.masked_fill(same | ~mask, low).flatten(1).logsumexp(dim=1, keepdim=True)
    right = found[torch.arange(len(own), device=own.device), own]
    return torch.logaddexp(right, others) - right


def hp_hn_loss(pairs: PairEmbeddings, *, negatives: float, positives: float, ranks: Ranks = ALONE) -> WeightedLoss:
    """Return CLIP's loss with hard negatives and hard positives (The Hard Positive Truth, section 5.1, appendix D.1).

    The paper says that both are "added to the batch", and that the contrastive loss is "as in CLIP": here it has images
    and captions only, and the others are parts of their own. ``negatives`` weighs the hard-negative loss, from 0 to 1
    in table 3; ``positives`` the analogy loss, 1 in the paper, 0 for training on negatives only ("HN"). The parts are
    ``contrastive``, ``negatives`` and ``positives``.
    """
    pair, scale = (pairs.images, pairs.texts), pairs.scale
    parts = {
        "contrastive": clip_loss(*pair, scale, ranks),
        "negatives": hard_negative_loss(*pair, pairs.negatives, pairs.negatives_mask, scale, ranks),
        "positives": analogy_loss(*pair, pairs.positives, pairs.positives_mask, scale, ranks),
    }
    loss = parts["contrastive"] + negatives * parts["negatives"] + positives * parts["positives"]
    return WeightedLoss(loss, parts)
