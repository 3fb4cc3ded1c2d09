"""Embeddings of a batch of pairs, gathered over ranks.

All texts of a batch, captions and edited ones, pass through the model in one call; missing texts are not embedded.
"""

import torch
from torch import Tensor, nn

from pairwright.training.loading.batches import PairBatch
from pairwright.training.models.clip import ClipOutput
from pairwright.training.objectives.batch_embeddings import BatchEmbeddings
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.fsc_clip import LocalFeatures


def embed_pairs(model: nn.Module, batch: PairBatch, *, local: bool = False) -> ClipOutput:
    """Return the model's output for the images and all texts of a batch; ``local``: also patches and tokens."""
    texts = torch.cat([batch.texts, batch.negatives[batch.negatives_mask], batch.positives[batch.positives_mask]])
    mask = torch.cat(
        [
            batch.text_mask,
            batch.negatives_text_mask[batch.negatives_mask],
            batch.positives_text_mask[batch.positives_mask],
        ]
    )
    out: ClipOutput = model(batch.images, texts, mask, local=local)
    return out


def gather_embeddings(out: ClipOutput, batch: PairBatch, ranks: Ranks) -> BatchEmbeddings:
    """Return the embeddings of all ranks."""
    own, wrong = len(batch.texts), int(batch.negatives_mask.sum())
    captions, negatives, positives = out.texts[:own], out.texts[own : own + wrong], out.texts[own + wrong :]
    return BatchEmbeddings(
        images=ranks.gather(out.images),
        texts=ranks.gather(captions),
        negatives=ranks.gather(_scatter_rows(negatives, batch.negatives_mask)),
        negatives_mask=ranks.gather(batch.negatives_mask),
        positives=ranks.gather(_scatter_rows(positives, batch.positives_mask)),
        positives_mask=ranks.gather(batch.positives_mask),
    )


def gather_local_features(out: ClipOutput, batch: PairBatch, ranks: Ranks) -> LocalFeatures:
    """Return the patches and tokens of all ranks."""
    assert out.patches is not None
    assert out.tokens is not None
    assert out.token_mask is not None
    own, wrong = len(batch.texts), int(batch.negatives_mask.sum())
    tokens, token_mask = (
        torch.cat([each[:own, None], _scatter_rows(each[own : own + wrong], batch.negatives_mask)], dim=1)
        for each in (out.tokens, out.token_mask)
    )
    return LocalFeatures(ranks.gather(out.patches), ranks.gather(tokens), ranks.gather(token_mask))


def _scatter_rows(rows: Tensor, mask: Tensor) -> Tensor:
    """Return the rows (m, ...) at the m places where ``mask`` (b, k) is True, zeros elsewhere: (b, k, ...)."""
    placed = rows.new_zeros(*mask.shape, *rows.shape[1:])
    placed[mask] = rows
    return placed
