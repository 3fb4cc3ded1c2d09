"""The loss of text that is written token by token: LLaVA's over answers.

Equations as in chapter 3 of Liu's dissertation, which is LLaVA.
"""

from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.similarities import to_full_precision

IGNORE_INDEX = -100
"""Label of a token that does not count, as in torch and transformers."""


def next_token_loss(logits: Tensor, tokens: Tensor, counted: Tensor, total: Tensor | float | None = None) -> Tensor:
    """Return minus the mean log probability of the counted tokens, each from those before it (LLaVA, eq. 3.3).

    Args:
        logits: float (b, t, v), of a causal model over the whole sequence, the image's places among it.
        tokens: int64 (b, t), the sequence itself. Places that do not count may hold any number, such as a mark of
            the image outside the vocabulary.
        counted: bool (b, t), True at the assistant's answers and the stop marks after them (LLaVA, table 3.2). The
            first place has nothing before it and never counts.
        total: Counted tokens of the whole batch, where it comes in parts (ranks, accumulation): the parts then add up
            to its loss. None counts those here.

    Returns:
        A 0-d tensor, in nats a token; 0 where none counts.
    """
    # Eq. 3.3 is the product over one sequence, and leaves open how sequences are averaged. As in LLaVA's code all
    # tokens of the batch weigh the same, so longer answers weigh more.
    counted = counted[:, 1:]
    losses = token_losses(logits[:, :-1], tokens[:, 1:], counted)
    return losses.sum() / (counted.sum().clamp(min=1) if total is None else total)


def token_losses(logits: Tensor, tokens: Tensor, counted: Tensor) -> Tensor:
    """Return minus the log probability of each token by the logits at its place, 0 where it does not count.

    Args:
        logits: float (b, t, v), at place i those that predict token i.
        tokens: int64 (b, t), any number where it does not count.
        counted: bool (b, t).

    Returns:
        float (b, t), float32 at least.
    """
    wanted = tokens.masked_fill(~counted, IGNORE_INDEX)
    return functional.cross_entropy(to_full_precision(logits).mT, wanted, ignore_index=IGNORE_INDEX, reduction="none")
