"""Distilling step-by-step: a student writes the label and, as a second task, the rationale.

Equations as in chapter 2 of Hsieh's dissertation, which is Distilling step-by-step.
"""

from dataclasses import dataclass

from torch import Tensor

from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.next_token import token_losses
from pairwright.training.objectives.similarities import masked_mean


@dataclass(frozen=True)
class WrittenTexts:
    """What a model was to write, and its logits.

    Attributes:
        logits: float (n, t, v), at place i those that predict token i (an encoder-decoder's, or a causal model's
            moved by one).
        tokens: int64 (n, t), the target; any number where it does not count.
        counted: bool (n, t), False at padding. A row without any, such as one without a rationale, does not count.
    """

    logits: Tensor
    tokens: Tensor
    counted: Tensor


def multi_task_loss(labels: WrittenTexts, rationales: WrittenTexts, weight: float = 1.0) -> WeightedLoss:
    """Return L_label + lambda L_rationale (section 2.3.2, eq. 2.1, 2.3 and 2.4).

    Args:
        labels: the answers to inputs with the prefix ``[label]``.
        rationales: the answers to inputs with the prefix ``[rationale]``; its sizes may differ.
        weight: lambda; 1 weighs both tasks the same. The authors' code takes ``a L_label + (1 - a) L_rationale``,
            which is ``a`` times this with lambda = (1 - a) / a.

    Returns:
        Parts ``label`` and ``rationale``, each 0 where none of its rows counts.
    """
    parts = {"label": written_loss(labels), "rationale": written_loss(rationales)}
    return WeightedLoss(parts["label"] + weight * parts["rationale"], parts)


def single_task_loss(joined: WrittenTexts) -> Tensor:
    """Return the baseline's loss: rationale and label in one target ``[r, y]`` (section 2.4.4, eq. 2.5).

    Args:
        joined: the tokens of the rationale and then of the label.

    Returns:
        A 0-d tensor, in nats.
    """
    return written_loss(joined)


def written_loss(written: WrittenTexts) -> Tensor:
    """Return the mean over examples of the cross entropy of their tokens (eq. 2.1).

    Args:
        written: targets and logits.

    Returns:
        A 0-d tensor, in nats a token; 0 where no row counts.
    """
    # "The cross-entropy loss between the predicted and target tokens" leaves open how tokens are averaged. The outer
    # sum is over examples, so an example is the mean over its tokens, and a long rationale weighs no more than a short
    # one. (The authors' code takes the mean over all tokens of the batch; with targets of one length the same.)
    places = written.counted.sum(dim=1)
    losses = token_losses(written.logits, written.tokens, written.counted).sum(dim=1) / places.clamp(min=1)
    return masked_mean(losses, places > 0)
