"""Next-token objective of LLaVA, over answers (chapter 3 of Liu's dissertation)."""

from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import to_full_precision

IGNORE_INDEX = -100
"""Label of tokens without a loss, as in torch and transformers."""


def next_token_loss(logits: Tensor, tokens: Tensor, counted: Tensor, total: Tensor | float | None = None) -> Tensor:
    """Return the negative mean log probability of the counted tokens given those before them (LLaVA, eq. 3.3).

    Args:
        logits: float (b, t, v), of a causal model over the whole sequence, including the image's positions.
        tokens: int64 (b, t), the sequence; any number where not counted, such as an image token outside the vocabulary.
        counted: bool (b, t), True at answers and their end tokens (LLaVA, table 3.2). The first position never counts.
        total: counted tokens of the whole batch if this is a part of it (ranks, accumulation): the parts then sum to its
            loss. None: those of this call.

    Returns:
        A 0-d tensor, in nats per token; 0 without counted tokens.
    """
    # Eq. 3.3 is the product over one sequence, and does not define the average over sequences. As in LLaVA's code
    # all tokens of the batch have equal weight, so longer answers weigh more.
    counted = counted[:, 1:]
    losses = token_losses(logits[:, :-1], tokens[:, 1:], counted)
    return losses.sum() / (counted.sum().clamp(min=1) if total is None else total)


def token_losses(logits: Tensor, tokens: Tensor, counted: Tensor) -> Tensor:
    """Return the negative log probability of each token by the logits at its position, 0 where not counted.

    Args:
        logits: float (b, t, v); position i predicts token i.
        tokens: int64 (b, t), any number where not counted.
        counted: bool (b, t).

    Returns:
        float (b, t), float32 at least.
    """
    wanted = tokens.masked_fill(~counted, IGNORE_INDEX)
    return functional.cross_entropy(to_full_precision(logits).mT, wanted, ignore_index=IGNORE_INDEX, reduction="none")
