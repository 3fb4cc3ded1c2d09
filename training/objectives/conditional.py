"""FocalLens's objective: an image read under an instruction has to find what the instruction asks for.

FocalLens is chapter 5 of Hsieh's dissertation. Turns of one image stand in one batch, so that the image alone does
not tell the answer.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import mask_value, scaled_similarities


def conditional_loss(
    conditioned: Tensor,
    outputs: Tensor,
    scale: Tensor | float,
    *,
    same: Tensor | None = None,
    both_ways: bool = False,
) -> Tensor:
    """Return the cross entropy of the own output among the batch's, from image and instruction (FocalLens, eq. 5.1).

    Args:
        conditioned: float (b, d), rows of unit length: phi(image, instruction).
        outputs: float (b, d), rows of unit length: the frozen text encoder's embeddings of the expected outputs.
        scale: 1 / temperature, above 0.
        same: int64 (b,), equal for equal outputs. Rows of one's own output are then left out, as telling "red" from
            "red" is no task. None: all other rows are wrong.
        both_ways: Also from output to image and instruction, averaged.

    Returns:
        A 0-d tensor: the mean over rows, in nats; ``clip_loss`` with ``both_ways`` and distinct outputs.
    """
    # The paper: "scaled Softmax to the rows", and "the contrastive loss following CLIP", which has rows and columns.
    # Rows are what it names; CLIP's other half is `both_ways`.
    logits = scaled_similarities(conditioned, outputs, scale)
    own = torch.arange(len(logits), device=logits.device)
    if same is not None:
        twins = (same.unsqueeze(1) == same) & (own.unsqueeze(1) != own)
        logits = logits.masked_fill(twins, mask_value(logits))
    to_output = functional.cross_entropy(logits, own)
    return (to_output + functional.cross_entropy(logits.T, own)) / 2 if both_ways else to_output
