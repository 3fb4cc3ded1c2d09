"""Input and output types of the objectives."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class BatchEmbeddings:
    """Embeddings of a batch of pairs; all rows of unit length.

    Attributes:
        images: float (b, d).
        texts: float (b, d); row i belongs to image i.
        negatives: float (b, k, d), minimally edited captions that are false for image i.
        negatives_mask: bool (b, k), False at missing negatives, whose rows have no effect.
        positives: float (b, p, d), edited captions that are still true for image i; None if the recipe has none.
        positives_mask: bool (b, p), likewise; None with ``positives``.
    """

    images: Tensor
    texts: Tensor
    negatives: Tensor
    negatives_mask: Tensor
    positives: Tensor | None = None
    positives_mask: Tensor | None = None


@dataclass(frozen=True)
class WeightedLoss:
    """A loss and its parts.

    Attributes:
        loss: 0-d, to be minimized.
        parts: 0-d each, by name, unweighted; with gradients.
    """

    loss: Tensor
    parts: dict[str, Tensor]
