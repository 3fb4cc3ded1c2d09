"""Collator of image-caption pairs with edited captions: CLIP, NegCLIP, hard positives, FSC-CLIP.

A row is a sample with a fixed number of places for negatives. Samples with fewer have a mask; of more, each epoch draws
again: first one of every type (form and target of the edit), then the rest.

Negatives may also be generated in training, new ones for each caption and epoch, as in FSC-CLIP: pass
`pairwright.generators.online.OnlineNegatives` or a similar function. Negatives in the shards are then ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import CollationContext, PairBatch
from pairwright.training.loading.image_transforms import PreparedImage
from pairwright.training.loading.samples import SampleJson, SampleSelection, StoredSample
from pairwright.training.loading.tokenization import encode, pad_rows, padding_id

_Kinds = Mapping[str, Sequence[str]]


class NegativeMaker(Protocol):
    """Generator of negatives by type; deterministic in any process."""

    def __call__(self, caption: str, captions: Sequence[str] = (), *, epoch: int = 0) -> Mapping[str, Sequence[str]]:
        """Return texts by type; ``captions`` are the other captions of the image."""


@dataclass(frozen=True, slots=True)
class PairCollator:
    """Collator of pairs, one row per sample."""

    negatives: int = 0  # hard negatives per row
    positives: int = 0  # hard positives per row
    online: NegativeMaker | None = None  # generator of negatives; None: those of the shards

    def __post_init__(self) -> None:
        if min(self.negatives, self.positives) < 0 or (self.online and not self.negatives):
            raise UsageError(
                "pairs: negatives and positives must be at least 0; online negatives require negatives of at least 1."
            )

    @property
    def selection(self) -> SampleSelection:
        """Return the samples with image and caption, also those without edited texts, whose rows are masked."""
        edited = self.positives or (self.negatives and not self.online)
        members = frozenset({"image", "caption"})
        return SampleSelection(self._lacks if edited else None, required=False, members=members)

    def _lacks(self, body: SampleJson) -> str:
        """Return which of the used kinds of texts a sample lacks."""
        negatives = self.negatives and not self.online and not body.get("hard_negatives")
        positives = self.positives and not body.get("hard_positives")
        if negatives and positives:
            return "no_hard_texts"
        return "no_hard_negatives" if negatives else "no_hard_positives" if positives else ""

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> PairBatch:
        """Return the batch of these samples."""
        rows = [self._texts(sample, context) for sample in samples]
        counts = np.array([[len(texts) for texts in row] for row in rows])
        places = (1, self.negatives, self.positives)
        present = np.hstack([np.arange(most) < counts[:, [kind]] for kind, most in enumerate(places)])
        ids, cut = encode([text for row in rows for texts in row for text in texts], context.texts)
        fixed, fill = context.texts.fixed, padding_id(context.texts)
        listed, listed_mask = pad_rows(ids, fill, context.texts.max_tokens if fixed else 0)
        mask = torch.from_numpy(present)
        texts = torch.full((*mask.shape, listed.shape[1]), fill, dtype=torch.int64)
        text_mask = torch.zeros(texts.shape, dtype=torch.bool)
        texts[mask], text_mask[mask] = listed, listed_mask
        return PairBatch(
            images=torch.from_numpy(np.concatenate([each.parts for each in prepared_images])),
            texts=texts,
            text_mask=text_mask,
            mask=mask,
            embedded=np.ones_like(present) if fixed else present,
            negatives=self.negatives,
            keys=[sample.key for sample in samples],
            cut=cut,
        )

    def _texts(self, sample: StoredSample, context: CollationContext) -> tuple[list[str], list[str], list[str]]:
        """Return the caption, hard negatives and hard positives of a sample."""
        kinds = self._negatives(sample, context), _group_by_type(sample.body.get("hard_positives", ()))
        negatives = _draw_texts(kinds[0], self.negatives, sample.key, context)
        return [sample.caption], negatives, _draw_texts(kinds[1], self.positives, sample.key, context)

    def _negatives(self, sample: StoredSample, context: CollationContext) -> _Kinds:
        if self.online is None:
            return _group_by_type(sample.body.get("hard_negatives", ()))
        others = sample.body.get("provenance", {}).get("captions", ())
        return self.online(sample.caption, others, epoch=context.epoch)


def _group_by_type(rows: Sequence[Mapping[str, Any]]) -> _Kinds:
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(f"{row['form']}-{row['target']}", []).append(row["text"])
    return kinds


def _draw_texts(kinds: _Kinds, places: int, key: str, context: CollationContext) -> list[str]:
    """Return up to ``places`` texts: one of each type, then a second of each, and so on, with random ties."""
    if not places:
        return []
    rng = make_rng(context.seed, context.epoch, "texts", key)
    ranked = []
    for kind in sorted(kinds):
        texts = rng.sample(kinds[kind], len(kinds[kind]))
        ranked += [(turn, rng.random(), text) for turn, text in enumerate(texts)]
    return [text for _, _, text in sorted(ranked)[:places]]
