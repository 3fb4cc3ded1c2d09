"""What objectives of several parts are given and give back."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class BatchEmbeddings:
    """The embeddings of a batch; all rows of unit length, named as in the batch they come from.

    Attributes:
        images: float (b, d).
        texts: float (b, d), row i belongs to image i.
        negatives: float (b, k, d), minimally edited captions that are not true of image i.
        negatives_mask: bool (b, k), False where there is none; what ``negatives`` holds there has no effect.
        positives: float (b, p, d), edited captions that are still true of image i; None where the recipe has none.
        positives_mask: bool (b, p), as for negatives; None with ``positives``.
    """

    images: Tensor
    texts: Tensor
    negatives: Tensor
    negatives_mask: Tensor
    positives: Tensor | None = None
    positives_mask: Tensor | None = None


@dataclass(frozen=True)
class WeightedLoss:
    """A weighted sum and its parts.

    Attributes:
        loss: 0-d, what to minimise.
        parts: 0-d each, by name, before their weights; with gradients.
    """

    loss: Tensor
    parts: dict[str, Tensor]
