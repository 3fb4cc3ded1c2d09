"""Triplets of image, instruction and answer: embeddings that depend on what is asked (FocalLens, section 5.1).

A row is an exchange of a conversation; all rows of a sample stand in the same batch, since the model has to tell them
apart by the instruction alone. So a batch of n samples has more rows than n, and not always the same number; ``turns``
bounds it, and each epoch draws again. An exchange that a sample has twice counts once: twice, it would be its own
negative. Samples without one are left out and counted.

Limits: the conversations of one sample. Where several samples share an image (one for each caption), the samples are
drawn apart; `PairBatch.groups` and `TripletBatch.groups` tell when two of them meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import PackedBatch, TripletBatch
from pairwright.training.loading.collation import CollationContext, Needs, PreparedImage, image_groups, stack_images
from pairwright.training.loading.samples import SampleJson, StoredSample
from pairwright.training.loading.tokenization import TextOptions, encode, load_tokenizer, pad_rows, padding_id


@dataclass(frozen=True, slots=True)
class TripletCollator:
    """The recipe of triplets; see the module.

    Attributes:
        turns: of one sample in a batch at most; 0: all.
        types: of the conversations that are taken; empty: all.
        instructions: how these become tokens where a language model reads them (FocalLens-MLLM), without the mark of
            the end, which the model puts there itself; None: as the answers do.

    Raises:
        UsageError: a number below 0.
    """

    turns: int = 0
    types: tuple[str, ...] = ()
    instructions: TextOptions | None = None

    needs: Needs = "each"
    members = frozenset({"image"})
    unit, units = "samples", None

    def __post_init__(self) -> None:
        if self.turns < 0:
            raise UsageError("triplets: turns is at least 0 (0: all).")

    def lacks(self, body: SampleJson) -> str:
        """Return whether a sample has no exchange."""
        return "" if exchanges(body, self.types) else "no_triplets"

    def collate(
        self, samples: Sequence[StoredSample], pictures: Sequence[PreparedImage], context: CollationContext
    ) -> PackedBatch[TripletBatch]:
        """Return the batch of these samples."""
        drawn = [self._drawn(sample, context) for sample in samples]
        rows = [(place, *exchange) for place, found in enumerate(drawn) for exchange in found]
        asked, cut_asked = self._asked([instruction for _, instruction, _ in rows], context.texts)
        said, cut_said = encode([answer for _, _, answer in rows], context.texts)
        instructions, instruction_mask = pad_rows(asked, padding_id(self.instructions or context.texts))
        texts, text_mask = pad_rows(said, padding_id(context.texts))
        groups = image_groups(samples)
        images = stack_images([pictures[place] for place, _, _ in rows])
        batch = TripletBatch(
            images=torch.empty(0),
            grids=images.grids,
            instructions=instructions,
            instruction_mask=instruction_mask,
            texts=texts,
            text_mask=text_mask,
            groups=torch.tensor([groups[place] for place, _, _ in rows]),
            keys=[samples[place].key for place, _, _ in rows],
            cut=cut_asked + cut_said,
        )
        return PackedBatch(batch, images.pixels, images.image_index)

    def _asked(self, texts: Sequence[str], answers: TextOptions) -> tuple[list[list[int]], int]:
        if self.instructions is None:
            return encode(texts, answers)
        rows, cut = encode(texts, self.instructions)
        end = load_tokenizer(self.instructions.tokenizer).eos_token_id
        return [row[:-1] if row and row[-1] == end else row for row in rows], cut

    def _drawn(self, sample: StoredSample, context: CollationContext) -> list[tuple[str, str]]:
        found = exchanges(sample.body, self.types)
        if not self.turns or len(found) <= self.turns:
            return found
        return make_rng(context.seed, context.epoch, "turns", sample.key).sample(found, self.turns)


def exchanges(body: SampleJson, types: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return what was asked and answered in a sample's conversations, each exchange once, in order."""
    found: dict[tuple[str, str], None] = {}
    for conversation in select_conversations(body, types):
        asked = ""
        for turn in conversation["turns"]:
            if turn["role"] == "assistant" and asked:
                found[asked, turn["text"]] = None
            asked = turn["text"] if turn["role"] == "human" else ""
    return list(found)


def select_conversations(body: SampleJson, types: Sequence[str]) -> list[Any]:
    """Return a sample's conversations of these types (all when none is named), in order."""
    return [row for row in body.get("conversations", ()) if not types or row["type"] in types]
