"""A decoder that reads prompts with documents: its attention to them, their relevance, its answers.

A prompt's relevances take one forward pass for its attention and one for each document's bias, K + 1 in all; they are
read in batches. Answers are greedy, with the key-value cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import Calibration, FloatArray, relevance, shares
from pairwright.training.attention.prompts import Prompt, Tokens, dummy_like, tokens_of
from pairwright.training.attention.registry import calibrated, watching


@dataclass
class Reader:
    """A decoder and its tokenizer.

    Attributes:
        model: in evaluation mode, on its device.
        tokenizer: a fast one.
        batch: prompts at once.
        passes: forward passes over whole prompts so far, one a prompt, those of answers left out.
    """

    model: PreTrainedModel
    tokenizer: Any
    batch: int = 8
    passes: int = field(default=0, init=False)

    def attention(self, prompts: Sequence[Prompt]) -> list[FloatArray]:
        """Return Attn(x, k) of each prompt's documents, float64 (documents,), when the next token is predicted."""
        found: list[FloatArray] = []
        for rows in self._batches(prompts):
            with torch.inference_mode(), watching(self.model, [row.layout for row in rows]) as seen:
                self.model(**self._padded(rows, positions=True), use_cache=False, logits_to_keep=1)
            self.passes += len(rows)
            values = seen.attention().double().cpu().numpy()
            found += [value[: len(row.layout.spans)] for value, row in zip(values, rows, strict=True)]
        return found

    def baseline(self, prompt: Prompt, dummy: str = "") -> FloatArray:
        """Return Attn(dummy, k), float64 (documents,): the dummy in each document's place in turn (eq. 3.3)."""
        written = dummy or dummy_like(prompt.documents)
        moved = [prompt.with_dummy(place, written) for place in range(len(prompt.spans))]
        found = self.attention(moved)
        return np.asarray([attention[place] for place, attention in enumerate(found)])

    def relevances(self, prompts: Sequence[Prompt], calibration: Calibration) -> list[FloatArray]:
        """Return the calibrated attention of each prompt's documents (eq. 3.4)."""
        return [
            relevance(attention, self.baseline(prompt, calibration.dummy), calibration.form)
            for prompt, attention in zip(prompts, self.attention(prompts), strict=True)
        ]

    def answers(
        self,
        prompts: Sequence[Prompt],
        longest: int,
        relevances: Sequence[FloatArray] | None = None,
        calibration: Calibration | None = None,
    ) -> list[str]:
        """Return what the model says, without what it was asked.

        Args:
            prompts: with their documents.
            longest: tokens of an answer at most.
            relevances: of each prompt's documents; None: attention stays as it is.
            calibration: how they become shares of attention; as by default when left out.
        """
        found: list[str] = []
        how = calibration or Calibration()
        for number, rows in enumerate(self._batches(prompts)):
            inputs = self._padded(rows, positions=False)
            if relevances is None:
                found += self._written(inputs, longest)
                continue
            given = relevances[number * self.batch : number * self.batch + len(rows)]
            asked = _side_by_side([shares(rel, row.layout.tokens, how.t) for rel, row in zip(given, rows, strict=True)])
            with calibrated(self.model, [row.layout for row in rows], asked, how.first_layer):
                found += self._written(inputs, longest)
        return found

    def _written(self, inputs: dict[str, Tensor], longest: int) -> list[str]:
        fill = self._fill()
        with torch.inference_mode():
            written = self.model.generate(  # type: ignore[operator]
                **inputs, max_new_tokens=longest, do_sample=False, num_beams=1, pad_token_id=fill
            )
        behind = written[:, inputs["input_ids"].shape[1] :]
        texts: list[str] = self.tokenizer.batch_decode(behind, skip_special_tokens=True)
        return texts

    def _batches(self, prompts: Sequence[Prompt]) -> list[list[Tokens]]:
        read = [tokens_of(prompt, self.tokenizer) for prompt in prompts]
        room = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        longest = max((len(row.ids) for row in read), default=0)
        if room is not None and longest > room:
            raise UsageError(f"a prompt of {longest:,} tokens, and the model reads {room:,}. Give fewer documents.")
        return [read[first : first + self.batch] for first in range(0, len(read), self.batch)]

    def _padded(self, rows: Sequence[Tokens], *, positions: bool) -> dict[str, Tensor]:
        width = max(len(row.ids) for row in rows)
        ids = torch.tensor([[self._fill()] * (width - len(row.ids)) + list(row.ids) for row in rows])
        mask = torch.arange(width) >= torch.tensor([[width - len(row.ids)] for row in rows])
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if positions:
            inputs["position_ids"] = (mask.long().cumsum(1) - 1).clamp(min=0)
        return {name: tensor.to(self.model.device) for name, tensor in inputs.items()}

    def _fill(self) -> int:
        padding = self.tokenizer.pad_token_id
        if padding is None:
            padding = self.tokenizer.eos_token_id
        return int(padding) if padding is not None else 0


def _side_by_side(rows: Sequence[FloatArray]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor(np.array([[*row, *[-np.inf] * (width - len(row))] for row in rows]), dtype=torch.float32)
