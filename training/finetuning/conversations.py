"""Collator of conversations for image-text-to-text models: the model's own processor and chat template.

Labels are on answers only (LLaVA, eq. 3.3). Conversations without an image mix with others; a batch without any image gets
one row more, a blank image without labels, because each process must run the vision tower in each step: a sharded model
would wait for it. Several images are where the questions mark them (``<image>``). Conversations over ``max_tokens`` are cut after their images; one whose images or whose first answer lie
beyond the limit is skipped, as are broken images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.images.loading import UnusableImageError, decode_image
from pairwright.datasets.rejects import Reject, RejectError, make_reject
from pairwright.datasets.rng import make_rng
from pairwright.training.finetuning.chat import Message, add_stop_tokens, answer_mask, render, to_messages
from pairwright.training.loading.batches import select_conversations
from pairwright.training.loading.shard_index import SampleJson, StoredSample
from pairwright.training.loading.tokenization import IGNORE_INDEX

Found = StoredSample | Reject | PairwrightError
_BLANK = ({"role": "human", "text": "?"}, {"role": "assistant", "text": "."})


@dataclass(frozen=True)
class ConversationCollator:
    """Collator of conversations, one row each."""

    processor: Any  # of the model
    stops: frozenset[int]  # ids of the tokens that end an answer
    types: tuple[str, ...] = ()  # conversation types; empty: all
    max_tokens: int = 2048  # per row, image tokens included
    image_first: bool = True  # whether a single image precedes the first question; otherwise its place is random
    seed: int = 0  # of random choices

    unit = "conversations"

    def lacks(self, body: SampleJson) -> str:
        """Return ``no_conversations`` for a sample without one."""
        return "" if select_conversations(body, self.types) else "no_conversations"

    def units(self, body: SampleJson) -> int:
        """Return the number of conversations of a sample."""
        return len(select_conversations(body, self.types))

    def length(self, sample: StoredSample) -> int:
        """Return the number of characters of a conversation."""
        turns = select_conversations(sample.body, self.types)[sample.unit]["turns"]
        return sum(len(turn["text"]) for turn in turns)

    def __call__(self, samples: Sequence[Found]) -> dict[str, Any]:
        """Return the model's inputs with ``labels``, ``skipped`` (rejects and errors) and ``cut`` (truncated rows)."""
        skipped: list[Reject | PairwrightError] = []
        rows: list[tuple[str, list[Message]]] = []
        for sample in samples:
            if not isinstance(sample, StoredSample):
                skipped.append(sample)
                continue
            try:
                rows.append((sample.where, self.messages(sample)))
            except UnusableImageError as error:
                skipped.append(make_reject(sample.where, error.reason, error.what))
            except RejectError as error:
                skipped.append(make_reject(sample.where, error.reason, error.detail))
        batch, cut = self._encode([messages for _, messages in rows]), 0
        if batch["input_ids"].shape[1] > self.max_tokens:
            lost = self._lost(batch).tolist()
            detail = f"its images or answers exceed {self.max_tokens} tokens"
            kept = [messages for (_, messages), gone in zip(rows, lost, strict=False) if not gone]
            skipped += [
                make_reject(where, "too_many_tokens", detail)
                for (where, _), gone in zip(rows, lost, strict=False)
                if gone
            ]
            batch = self._encode(kept) if len(kept) < len(rows) else batch
            cut = int((batch["attention_mask"][: len(kept), self.max_tokens :].sum(dim=1) > 0).sum())
            shape = batch["input_ids"].shape
            for name, one in batch.items():
                batch[name] = one[:, : self.max_tokens].contiguous() if one.shape[:2] == shape else one
        return {**batch, "skipped": skipped, "cut": cut}

    def messages(self, sample: StoredSample) -> list[Message]:
        """Return the conversation that the sample's unit selects."""
        turns = select_conversations(sample.body, self.types)[sample.unit]["turns"]
        stored = (sample.image, *sample.further_images) if sample.image else ()
        images = [decode_image(data, sample.where).convert("RGB") for data in stored]
        first = self.image_first or make_rng(self.seed, "image place", sample.key, sample.unit).random() < 0.5
        return to_messages(turns, images, image_first=first)

    def _encode(self, conversations: Sequence[list[Message]]) -> dict[str, Tensor]:
        parts = [part for messages in conversations for one in messages for part in one["content"]]
        images = [part["image"] for part in parts if "image" in part]
        blank = not images
        if blank:
            images = [Image.new("RGB", (64, 64))]
            conversations = [*conversations, to_messages(_BLANK, images)]
        written = [render(self.processor, messages) for messages in conversations]
        tokenizer = self.processor.tokenizer
        begins = tokenizer.bos_token is not None and written[0][0].startswith(tokenizer.bos_token)
        found = self.processor(
            text=[text for text, _ in written],
            images=images,
            padding=True,
            padding_side="right",
            return_tensors="pt",
            return_offsets_mapping=True,
            return_text_replacement_offsets=True,
            add_special_tokens=not begins,
        )
        offsets = found.pop("offset_mapping")
        replaced = found.pop("text_replacement_offsets", None) or [[]] * len(written)
        masks = [answer_mask(offsets[row], spans, replaced[row]) for row, (_, spans) in enumerate(written)]
        mask = add_stop_tokens(torch.stack(masks), found["input_ids"], self.stops) & found["attention_mask"].bool()
        mask[len(conversations) - blank :] = False
        return {**found, "labels": found["input_ids"].masked_fill(~mask, IGNORE_INDEX)}

    def _lost(self, batch: dict[str, Tensor]) -> Tensor:
        """Return which rows have an image token, or all labels, beyond the limit, bool (b,)."""
        image = batch["input_ids"] == self.processor.image_token_id
        unlabelled: Tensor = (batch["labels"][:, : self.max_tokens] == IGNORE_INDEX).all(dim=1)
        lost: Tensor = image[:, self.max_tokens :].any(dim=1) | unlabelled
        return lost
