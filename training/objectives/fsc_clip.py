"""FSC-CLIP: hard negatives told apart token by token, and not pressed harder than needed.

The score of a text is summed over its tokens, each against the patches it is most like (``patch_weights``,
``local_scores``). Both this and the score of whole texts enter ``choice_loss`` with a focal weight and smoothed labels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.training.objectives.batch_embeddings import BatchEmbeddings, WeightedLoss
from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.hard_negatives import choice_loss, choice_scores
from pairwright.training.objectives.similarities import mask_value, scaled_similarities, to_full_precision, zero_masked


@dataclass(frozen=True)
class LocalFeatures:
    """Patches and tokens of a batch in the shared space, of any length.

    Attributes:
        patches: float (b, p, d), the image's patches after the projection.
        tokens: float (b, 1 + k, w, d), token by token the caption and its negatives, in the order of
            ``Embedded.negatives``.
        tokens_mask: bool (b, 1 + k, w), False at padding. The paper does not say whether marks count; in the
            authors' code that of the end does and that of the start does not, as in `models.clip.Clip.token_mask`.
    """

    patches: Tensor
    tokens: Tensor
    tokens_mask: Tensor


@dataclass(frozen=True)
class FscWeights:
    """The weights of FSC-CLIP (section 4); the recipe holds the values of the paper.

    Attributes:
        whole: lambda_g, of the loss over whole texts.
        local: lambda_l, of the loss over tokens.
        focal: gamma of eq. 9, 0 or above.
        smoothing: beta of eq. 10, 0 to 1.
    """

    whole: float
    local: float
    focal: float
    smoothing: float


def patch_weights(patches: Tensor, tokens: Tensor) -> Tensor:
    """Return how much each patch matters to each token (FSC-CLIP, section 3.2, eq. 6-7).

    Args:
        patches: float (b, p, d).
        tokens: float (b, n, w, d), finite at padding too.

    Returns:
        float (b, n, w, p), 0 to 1, a token's weights sum to 1: eq. 6 with the divisor of eq. 7. Where all patches are
        alike to a token, eq. 6 is 0 / 0; they weigh the same here.
    """
    alike = scaled_similarities(tokens, patches.unsqueeze(1), 1.0)
    least, most = alike.aminmax(dim=-1, keepdim=True)
    spread = most - least
    flat = spread <= 0
    raised = ((alike - least) / spread.masked_fill(flat, 1.0)).masked_fill(flat, 1.0)
    return raised / raised.sum(dim=-1, keepdim=True)


def local_scores(local: LocalFeatures, weights: Tensor, scale: Tensor | float) -> Tensor:
    """Return log S_l, the score of each text by its tokens (FSC-CLIP, section 3.2, eq. 7-8).

    Args:
        local: patches and tokens.
        weights: float (b, 1 + k, w, p), from ``patch_weights``.
        scale: 1 / temperature, above 0.

    Returns:
        float (b, 1 + k), the log of the sum over tokens, as a sum of exp(100) does not fit half precision. Eq. 8
        sums, so a longer text scores higher; a text without tokens has the lowest score.
    """
    tokens = to_full_precision(zero_masked(local.tokens, local.tokens_mask))
    with torch.autocast(device_type=tokens.device.type, enabled=False):
        seen = weights @ to_full_precision(local.patches).unsqueeze(1)
        cosines = functional.cosine_similarity(seen, tokens, dim=-1)
    each = scale * cosines
    return each.masked_fill(~local.tokens_mask, mask_value(each)).logsumexp(dim=-1)


def fsc_clip_loss(
    batch: BatchEmbeddings, local: LocalFeatures, scale: Tensor | float, weights: FscWeights
) -> WeightedLoss:
    """Return CLIP's loss with global and local hard-negative losses, regularised (FSC-CLIP, section 3.4, eq. 11).

    Args:
        batch: embeddings of images, captions and negatives; positives are not used.
        local: patches, and tokens of captions and negatives.
        scale: 1 / temperature, above 0.
        weights: of the parts, and of the regularisation of both.

    Returns:
        Parts ``contrastive``, ``whole`` and ``local``.
    """
    # The paper does not say whether gradients pass through the weights of eq. 6; the authors' code stops them, so that
    # a token does not learn to choose its patches. A text that is masked out has only zeros for tokens: no NaN.
    given = torch.cat([batch.negatives_mask.new_ones(len(batch.images), 1), batch.negatives_mask], dim=1)
    counted = local.tokens_mask & given.unsqueeze(-1)
    tokens = zero_masked(local.tokens, counted)
    near = patch_weights(local.patches.detach(), tokens.detach())
    by_text = choice_scores(batch.images, batch.texts, batch.negatives, batch.negatives_mask, scale)
    by_token = local_scores(LocalFeatures(local.patches, tokens, counted), near, scale)
    softened = {"focal": weights.focal, "smoothing": weights.smoothing}
    parts = {
        # Eq. 11 speaks of L_clip "with additional hard negative texts": those of the two other terms. Plain CLIP here.
        "contrastive": clip_loss(batch.images, batch.texts, scale),
        "whole": choice_loss(by_text, batch.negatives_mask, **softened),
        "local": choice_loss(by_token, batch.negatives_mask, **softened),
    }
    loss = parts["contrastive"] + weights.whole * parts["whole"] + weights.local * parts["local"]
    return WeightedLoss(loss, parts)
