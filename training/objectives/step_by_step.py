"""Objectives of Distilling step-by-step: an encoder-decoder learns labels and, as a second task, rationales.

Equations are those of chapter 2 of Hsieh's dissertation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.embeddings import WeightedLoss, to_full_precision

_IGNORED = -100


@dataclass(frozen=True)
class WrittenTexts:
    """Target texts and their logits."""

    # float (n, t, v); position i predicts token i (of an encoder-decoder, or of a causal model shifted by one)
    logits: Tensor
    tokens: Tensor  # int64 (n, t), the targets; any number where not counted
    # bool (n, t), False at padding. A row without counted tokens, such as a missing rationale, is ignored.
    counted: Tensor


def multi_task_loss(
    labels: WrittenTexts, rationales: WrittenTexts, weight: float = 1.0, totals: Sequence[Tensor | None] = (None, None)
) -> WeightedLoss:
    """Return L_label + lambda L_rationale (section 2.3.2, eq. 2.1, 2.3 and 2.4) and both parts, 0 without counted rows.

    ``labels`` and ``rationales`` are outputs for inputs with the prefix ``[label]`` or ``[rationale]``, of any sizes,
    and ``totals`` of both as of `written_loss`. ``weight`` is lambda; 1 weighs both equally. The authors' code uses ``a
    L_label + (1 - a) L_rationale``, which is ``a`` times this with lambda = (1 - a) / a.
    """
    parts = {"label": written_loss(labels, totals[0]), "rationale": written_loss(rationales, totals[1])}
    return WeightedLoss(parts["label"] + weight * parts["rationale"], parts)


def written_loss(written: WrittenTexts, total: Tensor | None = None) -> Tensor:
    """Return the mean over examples of the cross entropy of their tokens (eq. 2.1; of both as one text: eq. 2.5).

    ``total`` is the number of counted examples of the whole batch if this is a part of it (processes, gradient
    accumulation): the parts then sum to its loss. None: those of this call. The result is a 0-d tensor, in nats per
    token; 0 without counted rows.
    """
    # "The cross-entropy loss between the predicted and target tokens" does not define the average over tokens. The outer
    # sum is over examples, so an example is the mean over its tokens, and long and short rationales weigh the same.
    # (The authors' code takes the mean over all tokens of the batch; equal for targets of one length.)
    places = written.counted.sum(dim=1)
    wanted = written.tokens.masked_fill(~written.counted, _IGNORED)
    losses = functional.cross_entropy(
        to_full_precision(written.logits).mT, wanted, ignore_index=_IGNORED, reduction="none"
    )
    sums = (losses.sum(dim=1) / places.clamp(min=1)).sum()
    return sums / ((places > 0).sum().clamp(min=1) if total is None else total)
