"""Collator of triplets of image, instruction and answer (FocalLens, section 5.1).

A row is a question-answer turn; all rows of a sample share a batch, so that only the instruction distinguishes them. A
batch of n samples therefore has a varying number of rows; ``turns`` bounds it, and each epoch draws again. A repeated
turn of a sample counts once: it would be its own negative. Samples without turns are skipped and counted.

Limits: the conversations of one sample. Several samples of one image (one per caption) are drawn independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import CollationContext, TripletBatch
from pairwright.training.loading.image_transforms import PreparedImage
from pairwright.training.loading.samples import SampleJson, SampleSelection, StoredSample
from pairwright.training.loading.tokenization import TextOptions, encode, encode_without_end, pad_rows, padding_id


@dataclass(frozen=True, slots=True)
class TripletCollator:
    """Collator of triplets, one row per turn."""

    turns: int = 0  # maximum per sample in a batch; 0: all
    types: tuple[str, ...] = ()  # conversation types; empty: all
    # Tokenization of instructions for a language model (FocalLens-MLLM), without the end token, which the model
    # appends; None: as for answers
    instructions: TextOptions | None = None

    def __post_init__(self) -> None:
        if self.turns < 0:
            raise UsageError("triplets: turns must be at least 0 (0: all).")

    @property
    def selection(self) -> SampleSelection:
        """Return the samples with an image and a turn."""
        return SampleSelection(self._lacks, members=frozenset({"image"}))

    def _lacks(self, body: SampleJson) -> str:
        return "" if exchanges(body, self.types) else "no_triplets"

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> TripletBatch:
        """Return the batch of these samples."""
        drawn = [self._draw_exchanges(sample, context) for sample in samples]
        rows = [(place, *exchange) for place, found in enumerate(drawn) for exchange in found]
        asked = [instruction for _, instruction, _ in rows]
        instruction_ids, cut_instructions = (
            encode_without_end(asked, self.instructions) if self.instructions else encode(asked, context.texts)
        )
        answer_ids, cut_answers = encode([answer for _, _, answer in rows], context.texts)
        instructions, instruction_mask = pad_rows(instruction_ids, padding_id(self.instructions or context.texts))
        texts, text_mask = pad_rows(answer_ids, padding_id(context.texts))
        ends = np.cumsum([len(each.parts) for each in prepared_images])
        parts = [np.arange(end - len(each.parts), end) for each, end in zip(prepared_images, ends, strict=True)]
        grids = [prepared_images[place].grid for place, _, _ in rows]
        return TripletBatch(
            images=torch.from_numpy(np.concatenate([each.parts for each in prepared_images])),
            image_index=torch.from_numpy(np.concatenate([parts[place] for place, _, _ in rows])),
            grids=[(grid.rows, grid.columns) for grid in grids if grid],
            instructions=instructions,
            instruction_mask=instruction_mask,
            texts=texts,
            text_mask=text_mask,
            keys=[samples[place].key for place, _, _ in rows],
            cut=cut_instructions + cut_answers,
        )

    def _draw_exchanges(self, sample: StoredSample, context: CollationContext) -> list[tuple[str, str]]:
        found = exchanges(sample.body, self.types)
        if not self.turns or len(found) <= self.turns:
            return found
        return make_rng(context.seed, context.epoch, "turns", sample.key).sample(found, self.turns)


def exchanges(body: SampleJson, types: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the distinct (instruction, answer) pairs of a sample's conversations, in order."""
    found: dict[tuple[str, str], None] = {}
    for conversation in select_conversations(body, types):
        question = ""
        for turn in conversation["turns"]:
            if turn["role"] == "assistant" and question:
                found[question, turn["text"]] = None
            question = turn["text"] if turn["role"] == "human" else ""
    return list(found)


def select_conversations(body: SampleJson, types: Sequence[str]) -> list[Any]:
    """Return a sample's conversations of these types (empty: all), in order."""
    return [row for row in body.get("conversations", ()) if not types or row["type"] in types]
