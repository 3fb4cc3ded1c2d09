"""Input and output types of the objectives. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class PairEmbeddings(NamedTuple):
    """Embeddings of a batch of pairs; rows of unit length but for those of patches and tokens."""

    images: Tensor  # float (b, d)
    texts: Tensor  # float (b, d); row i belongs to image i
    negatives: Tensor  # float (b, k, d), minimally edited captions that are false for image i; k may be 0
    negatives_mask: Tensor  # bool (b, k), False at missing negatives, whose rows have no effect
    positives: Tensor  # float (b, p, d), edited captions that are still true for image i; p may be 0
    positives_mask: Tensor  # bool (b, p), likewise
    scale: Tensor  # 0-d, 1 / temperature
    bias: Any = None  # Tensor, 0-d, of SigLIP; None for a CLIP
    # Tensors of FSC-CLIP, None for other objectives. Patches in the shared space after the projection: float (b, p, d)
    patches: Any = None
    tokens: Any = None  # float (b, 1 + k, w, d), tokens of the caption and its negatives, in the order of ``negatives``
    # bool (b, 1 + k, w), False at padding. The paper does not say whether special tokens count; in the authors' code
    # the end token does and the start token does not, as in `models.clip.Clip.token_mask`.
    tokens_mask: Any = None


@dataclass(frozen=True)
class WeightedLoss:
    """A loss and its parts."""

    loss: Tensor  # 0-d, to be minimized
    parts: dict[str, Tensor] = field(default_factory=dict)  # 0-d each, by name, unweighted; with gradients
