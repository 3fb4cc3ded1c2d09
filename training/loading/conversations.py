"""Collator of whole conversations about an image (LLaVA, section 3.3).

A row is a conversation: system text, then turn by turn, with the image token before or after the first question at
random (eq. 3.2). Labels are on answers and their end tokens only (eq. 3.3).

Pieces are tokenized one by one, so that label borders are exact; a tokenizer that merges over such a border would give
other ids for the whole text. Conversations longer than ``max_tokens`` are truncated and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.batches import ConversationBatch, PackedBatch
from pairwright.training.loading.collation import CollationContext, Needs, PreparedImage, image_groups, stack_images
from pairwright.training.loading.samples import SampleJson, StoredSample
from pairwright.training.loading.tokenization import load_tokenizer, pad_rows, padding_id
from pairwright.training.loading.triplets import select_conversations
from pairwright.training.objectives.next_token import IGNORE_INDEX

_TokensAndLabels = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class ConversationTemplate:
    """Text around turns: ``system``, then per exchange ``human`` + question + ``assistant`` + answer + end token."""

    system: str = ""
    human: str = "USER: "
    assistant: str = " ASSISTANT: "


@dataclass(frozen=True, slots=True)
class ConversationCollator:
    """Collator of conversations, one row each.

    Attributes:
        image_token: id at the position of the image's features; may be outside the vocabulary.
        types: conversation types; empty: all.
        style: template of the turns.
    """

    image_token: int
    types: tuple[str, ...] = ()
    style: ConversationTemplate = ConversationTemplate()

    needs: Needs = "each"
    members = frozenset({"image"})
    unit = "conversations"

    def lacks(self, body: SampleJson) -> str:
        """Return ``no_conversations`` for a sample without one."""
        return "" if select_conversations(body, self.types) else "no_conversations"

    def units(self, body: SampleJson) -> int:
        """Return the number of conversations; epochs and steps count these, as LLaVA's batch sizes do."""
        return len(select_conversations(body, self.types))

    def collate(
        self, samples: Sequence[StoredSample], prepared_images: Sequence[PreparedImage], context: CollationContext
    ) -> PackedBatch[ConversationBatch]:
        """Return the batch of the conversations that the samples' units select.

        Raises:
            UsageError: the tokenizer has no end token.
        """
        tokenizer, limit = load_tokenizer(context.texts.tokenizer), context.texts.max_tokens
        if tokenizer.eos_token_id is None:
            raise UsageError(f"the tokenizer {context.texts.tokenizer!r} has no end token. Set its eos_token.")
        rows = list[_TokensAndLabels]()
        for sample in samples:
            turns = select_conversations(sample.body, self.types)[sample.unit]["turns"]
            before = make_rng(context.seed, context.epoch, "image mark", sample.key, sample.unit).random() < 0.5
            row = self._row(turns, tokenizer, before=before)
            if self.image_token not in row[0][:limit]:  # truncated: the question alone is too long
                row = self._row(turns, tokenizer, before=True)
            rows.append(row)
        images = stack_images(prepared_images)
        texts, mask = pad_rows([ids[:limit] for ids, _ in rows], padding_id(context.texts))
        labels, _ = pad_rows([wanted[:limit] for _, wanted in rows], IGNORE_INDEX)
        batch = ConversationBatch(
            images=torch.empty(0),
            grids=images.grids,
            texts=texts,
            text_mask=mask,
            labels=labels,
            groups=torch.tensor(image_groups(samples)),
            keys=[sample.key for sample in samples],
            cut=sum(len(ids) > limit for ids, _ in rows),
        )
        return PackedBatch(batch, images.pixels, images.image_index)

    def _row(self, turns: Sequence[Any], tokenizer: Any, *, before: bool) -> _TokensAndLabels:
        ids, labels = list[int](), list[int]()

        def append(piece: list[int], *, answer: bool = False) -> None:
            ids.extend(piece)
            labels.extend(piece if answer else [IGNORE_INDEX] * len(piece))

        def tokens(text: str) -> list[int]:
            found: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            return found

        append(([] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]) + tokens(self.style.system))
        mark = [self.image_token]
        for turn in turns:
            if turn["role"] == "assistant":
                append(tokens(self.style.assistant))
                append([*tokens(turn["text"]), tokenizer.eos_token_id], answer=True)
                continue
            asked = tokens(turn["text"])
            append(tokens(self.style.human) + (mark + asked if before else asked + mark))
            mark = []
        return ids, labels
