"""Embeddings of a batch of pairs, in one pass or in chunks of rows.

All texts of a batch, captions and edited ones, pass through the model in one call; missing texts are not embedded, unless
texts have fixed lengths. Which texts are missing is known on the host, so no pass waits for the device.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairwright.training.loading.batches import PairBatch
from pairwright.training.models.clip import ClipOutput
from pairwright.training.objectives.batch_embeddings import PairEmbeddings


def embed_pairs(model: nn.Module, batch: PairBatch, *, local: bool = False) -> PairEmbeddings:
    """Return the embeddings of images and all texts of a batch; ``local``: also patches and tokens."""
    places = torch.from_numpy(np.flatnonzero(batch.embedded))
    if batch.texts.is_cuda:  # a copy from memory that is not page-locked may wait for the device
        places = places.pin_memory()
    places = places.to(batch.texts.device, non_blocking=True)
    texts, text_mask = (one.flatten(0, 1)[places] for one in (batch.texts, batch.text_mask))
    out: ClipOutput = model(batch.images, texts, text_mask, local=local)
    rows, first = _put(out.texts, places, batch.mask), 1 + batch.negatives
    features = {}
    if local:
        tokens, tokens_mask = (_put(one, places, batch.mask)[:, :first] for one in (out.tokens, out.token_mask))
        features = {"patches": out.patches, "tokens": tokens, "tokens_mask": tokens_mask}
    return PairEmbeddings(
        images=out.images,
        texts=rows[:, 0],
        negatives=rows[:, 1:first],
        negatives_mask=batch.mask[:, 1:first],
        positives=rows[:, first:],
        positives_mask=batch.mask[:, first:],
        scale=out.scale,
        bias=out.bias,
        **features,
    )


def split_rows(batch: PairBatch, rows: int) -> list[PairBatch]:
    """Return the batch in parts of ``rows`` rows, the last with the rest."""
    parts = []
    for start in range(0, len(batch.keys), rows):
        named = batch._asdict().items()
        part: dict[str, Any] = {
            name: one[start : start + rows] for name, one in named if isinstance(one, Tensor | np.ndarray | list)
        }
        parts.append(batch._replace(**part))
    return parts


def join_rows(parts: Sequence[PairEmbeddings]) -> PairEmbeddings:
    """Return the embeddings of a batch from those of its parts; scale and bias are copies of the first part's."""
    named = {
        name: [getattr(part, name) for part in parts] for name, one in parts[0]._asdict().items() if one is not None
    }
    return parts[0]._replace(**{name: torch.cat(of) if of[0].dim() else of[0].clone() for name, of in named.items()})


def _put(rows: Any, places: Tensor, mask: Tensor) -> Tensor:
    """Return the rows (m, ...) at their flat places among those of ``mask`` (b, n), zeros elsewhere: (b, n, ...)."""
    put: Tensor = rows.new_zeros(mask.numel(), *rows.shape[1:]).index_copy(0, places, rows)
    return put.view(*mask.shape, *rows.shape[1:])
