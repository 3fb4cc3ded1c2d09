"""Embeddings of a batch of pairs, in one pass or in chunks of rows.

All texts of a batch, captions and edited ones, pass through the model in one call; missing texts are not embedded, unless
texts have fixed lengths. Which texts are missing is known on the host, so no pass waits for the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pairwright.training.loading.batches import PairBatch
from pairwright.training.models.clip import ClipOutput
from pairwright.training.objectives.batch_embeddings import BatchEmbeddings
from pairwright.training.objectives.fsc_clip import LocalFeatures


@dataclass(frozen=True, slots=True)
class PairEmbeddings:
    """What an objective over pairs compares."""

    rows: BatchEmbeddings  # embeddings of images and texts
    scale: Tensor  # 0-d, 1 / temperature
    bias: Tensor | None = None  # 0-d, of SigLIP; None for a CLIP
    local: LocalFeatures | None = None  # patches and tokens; None unless requested

    def features(self) -> list[Tensor]:
        """Return the tensors with a row per sample that have gradients, in a fixed order."""
        parts: list[Any] = [self.rows] if self.local is None else [self.rows, self.local]
        values = [getattr(part, field.name) for part in parts for field in fields(part)]
        return [value for value in values if value is not None and value.is_floating_point()]


def embed_pairs(model: nn.Module, batch: PairBatch, *, local: bool = False) -> PairEmbeddings:
    """Return the embeddings of images and all texts of a batch; ``local``: also patches and tokens."""
    device = batch.texts.device
    wrong, right = (
        _places(count, one, device)
        for one, count in ((batch.negatives, batch.negatives_count), (batch.positives, batch.positives_count))
    )
    texts = torch.cat([batch.texts, batch.negatives.flatten(0, 1)[wrong], batch.positives.flatten(0, 1)[right]])
    masks = [batch.negatives_text_mask.flatten(0, 1)[wrong], batch.positives_text_mask.flatten(0, 1)[right]]
    out: ClipOutput = model(batch.images, texts, torch.cat([batch.text_mask, *masks]), local=local)
    sizes = [len(batch.texts), len(wrong), len(right)]
    captions, negatives, positives = torch.split(out.texts, sizes)
    rows = BatchEmbeddings(
        images=out.images,
        texts=captions,
        negatives=_put(negatives, wrong, batch.negatives_mask),
        negatives_mask=batch.negatives_mask,
        positives=_put(positives, right, batch.positives_mask),
        positives_mask=batch.positives_mask,
    )
    if not local:
        return PairEmbeddings(rows, out.scale, out.bias)
    assert out.patches is not None
    assert out.tokens is not None
    assert out.token_mask is not None
    tokens, token_mask = (
        torch.cat([own.unsqueeze(1), _put(edited, wrong, batch.negatives_mask)], dim=1)
        for own, edited, _ in (torch.split(out.tokens, sizes), torch.split(out.token_mask, sizes))
    )
    return PairEmbeddings(rows, out.scale, out.bias, LocalFeatures(out.patches, tokens, token_mask))


def split_rows(batch: PairBatch, rows: int) -> list[PairBatch]:
    """Return the batch in parts of ``rows`` rows, the last with the rest."""
    named = {field.name: getattr(batch, field.name) for field in fields(batch)}
    parts = []
    for start in range(0, len(batch.keys), rows):
        part: dict[str, Any] = {
            name: value[start : start + rows] for name, value in named.items() if isinstance(value, Tensor | list)
        }
        parts.append(replace(batch, **part))
    return parts


def join_rows(parts: Sequence[PairEmbeddings]) -> PairEmbeddings:
    """Return the embeddings of a batch from those of its parts; scale and bias are those of the first."""
    rows = _join([part.rows for part in parts])
    local = None if parts[0].local is None else _join([part.local for part in parts])
    return replace(parts[0], rows=rows, local=local)


def _join(parts: Sequence[Any]) -> Any:
    named = {field.name: [getattr(part, field.name) for part in parts] for field in fields(parts[0])}
    return replace(parts[0], **{name: torch.cat(values) for name, values in named.items()})


def _places(count: Sequence[int], edited: Tensor, device: torch.device) -> Tensor:
    """Return the flat places (row * k + number) of the texts to embed, int64."""
    taken = np.arange(edited.shape[1]) < np.asarray(count, dtype=np.int64)[:, None]
    places = torch.from_numpy(np.flatnonzero(taken))
    # A copy from memory that is not page-locked may wait for the device.
    return (places.pin_memory() if device.type == "cuda" else places).to(device, non_blocking=True)


def _put(rows: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """Return the rows (m, ...) at their places among those of ``mask`` (b, k), zeros elsewhere: (b, k, ...)."""
    put = rows.new_zeros(mask.numel(), *rows.shape[1:]).index_copy(0, places, rows)
    return put.view(*mask.shape, *rows.shape[1:])
