"""FSC-CLIP objective: hard negatives by whole texts and by tokens, with focal weight and label smoothing.

The score of a text is a sum over its tokens, each compared with its most similar patches (``patch_weights``,
``local_scores``). Both this and the score of whole texts enter ``choice_loss``.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.distributed import ALONE, Ranks
from pairwright.training.objectives.embeddings import (
    PairEmbeddings,
    WeightedLoss,
    mask_value,
    scaled_similarities,
    to_full_precision,
    zero_masked,
)
from pairwright.training.objectives.hard_negatives import choice_loss, choice_scores


@dataclass(frozen=True)
class FscWeights:
    """Weights of FSC-CLIP (section 4); the recipe has the values of the paper."""

    whole: float  # lambda_g, of the loss over whole texts
    local: float  # lambda_l, of the loss over tokens
    focal: float  # gamma of eq. 9, 0 or above.
    smoothing: float  # beta of eq. 10, 0 to 1.


def patch_weights(patches: Tensor, tokens: Tensor) -> Tensor:
    """Return the weight of each patch for each token (FSC-CLIP, section 3.2, eq. 6-7).

    Patches are float (b, p, d), tokens float (b, n, w, d), finite also at padding. The weights are float (b, n, w, p),
    0 to 1, summing to 1 per token: eq. 6 with the divisor of eq. 7. Where all patches are equally similar to a token,
    eq. 6 is 0 / 0; here they have equal weights.
    """
    alike = scaled_similarities(tokens, patches.unsqueeze(1), 1.0)
    least, most = alike.aminmax(dim=-1, keepdim=True)
    spread = most - least
    flat = spread <= 0
    raised = ((alike - least) / spread.masked_fill(flat, 1.0)).masked_fill(flat, 1.0)
    return raised / raised.sum(dim=-1, keepdim=True)


def local_scores(
    patches: Tensor, tokens: Tensor, tokens_mask: Tensor, weights: Tensor, scale: Tensor | float
) -> Tensor:
    """Return log S_l, the score of each text by its tokens (FSC-CLIP, section 3.2, eq. 7-8), float (b, 1 + k).

    ``weights``: float (b, 1 + k, w, p), from `patch_weights`; the others as in `PairEmbeddings`. It is the log of the
    sum over tokens, as exp(100) overflows half precision: a longer text scores higher, one without tokens has the
    lowest score.
    """
    tokens = to_full_precision(zero_masked(tokens, tokens_mask))
    with torch.autocast(device_type=tokens.device.type, enabled=False):
        seen = weights @ to_full_precision(patches).unsqueeze(1)
        cosines = functional.cosine_similarity(seen, tokens, dim=-1)
    each = scale * cosines
    return each.masked_fill(~tokens_mask, mask_value(each)).logsumexp(dim=-1)


def fsc_clip_loss(pairs: PairEmbeddings, weights: FscWeights, ranks: Ranks = ALONE) -> WeightedLoss:
    """Return CLIP's loss with global and local hard-negative losses, regularized (FSC-CLIP, section 3.4, eq. 11).

    Positives are ignored. Of other ranks images and captions are gathered, for CLIP's loss. The parts are
    ``contrastive``, ``whole`` and ``local``.
    """
    # The paper does not say whether gradients pass through the weights of eq. 6; the authors' code stops them, so that
    # a token does not learn to choose its patches. Masked texts have zeros for tokens: no NaN.
    given = functional.pad(pairs.negatives_mask, (1, 0), value=True)
    counted = pairs.tokens_mask & given.unsqueeze(-1)
    tokens = zero_masked(pairs.tokens, counted)
    near = patch_weights(pairs.patches.detach(), tokens.detach())
    by_text = choice_scores(pairs.images, pairs.texts, pairs.negatives, pairs.negatives_mask, pairs.scale)
    by_token = local_scores(pairs.patches, tokens, counted, near, pairs.scale)
    regularization: dict[str, Any] = {"focal": weights.focal, "smoothing": weights.smoothing, "ranks": ranks}
    parts = {
        # Eq. 11 has L_clip "with additional hard negative texts": those of the two other terms. Plain CLIP here.
        "contrastive": clip_loss(pairs.images, pairs.texts, pairs.scale, ranks),
        "whole": choice_loss(by_text, pairs.negatives_mask, **regularization),
        "local": choice_loss(by_token, pairs.negatives_mask, **regularization),
    }
    loss = parts["contrastive"] + weights.whole * parts["whole"] + weights.local * parts["local"]
    return WeightedLoss(loss, parts)
