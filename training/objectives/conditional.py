"""Conditional objective of FocalLens: an image under an instruction retrieves the instruction's output.

FocalLens is chapter 5 of Hsieh's dissertation. All turns of an image share a batch, so the image alone is not
sufficient.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.distributed import ALONE, Ranks, paired_logits
from pairwright.training.objectives.embeddings import mask_value


def conditional_loss(  # noqa: PLR0913 - two of them are sets of rows
    conditioned: Tensor,
    outputs: Tensor,
    scale: Tensor | float,
    *,
    same: Tensor | None = None,
    both_ways: bool = False,
    ranks: Ranks = ALONE,
) -> Tensor:
    """Return the cross entropy of each row's output among those of the batch (FocalLens, eq. 5.1).

    Args:
        conditioned: float (b, d), rows of unit length: phi(image, instruction).
        outputs: float (b, d), rows of unit length: the frozen text encoder's embeddings of the expected outputs.
        scale: 1 / temperature, above 0.
        same: int64 (b,), equal for equal outputs, which are no negatives of each other. None: all others are negatives.
        both_ways: average with the direction from output to image and instruction, as `clip_loss`.
        ranks: processes that hold the other rows of the batch.

    Returns a 0-d tensor: the mean over rows, in nats.
    """
    # The paper: "scaled Softmax to the rows", and "the contrastive loss following CLIP", which has rows and columns.
    # Rows are the default; CLIP's second direction is `both_ways`.
    to_output, to_input, _ = paired_logits(conditioned, outputs, scale, ranks)
    directions = [to_output, to_input] if both_ways else [to_output]
    own = ranks.places(conditioned)
    if same is not None:
        every = ranks.gather(same)
        twins = (same.unsqueeze(1) == every) & (own.unsqueeze(1) != torch.arange(len(every), device=own.device))
        directions = [logits.masked_fill(twins, mask_value(logits)) for logits in directions]
    each = [functional.cross_entropy(logits, own, reduction="none") for logits in directions]
    return ranks.mean(torch.stack(each).mean(dim=0))
