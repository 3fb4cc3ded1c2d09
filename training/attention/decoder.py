"""Decoder over prompts with documents: attention to the documents, their relevance, and answers.

The relevances of a prompt take one forward pass for its attention and one for each document's bias, K + 1 in total, in
batches. Answers are greedy, with the key-value cache.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import Calibration, FloatArray, calibrated_relevance
from pairwright.training.attention.hooks import calibrate_attention, document_shares, record_attention
from pairwright.training.attention.prompts import (
    DocumentPrompt,
    PromptTokens,
    as_chat,
    dummy_document,
    question_prompt,
    tokenize_prompt,
)
from pairwright.training.loading.tokenization import padding_id


@dataclass
class DocumentDecoder:
    """A decoder and its tokenizer."""

    model: PreTrainedModel  # in evaluation mode, on its device
    tokenizer: Any  # a fast one
    batch: int = 8  # prompts per batch
    fix: str = "Give fewer documents."  # advice in the error for a prompt longer than the model's limit
    # Returns the prompt of a question and documents
    writer: Callable[[str, Sequence[str]], DocumentPrompt] = question_prompt
    # Forward passes over whole prompts so far, one per prompt, without those of answers
    passes: int = field(default=0, init=False)

    def prompt(self, question: str, documents: Sequence[str]) -> DocumentPrompt:
        """Return the prompt of a question and documents, as a turn of a chat if the tokenizer has a chat template."""
        return as_chat(self.writer(question, documents), self.tokenizer)

    def attention(self, prompts: Sequence[DocumentPrompt], first_layer: int = 0) -> list[FloatArray]:
        """Return Attn(x, k) of each prompt's documents, float64 (documents,), for the next token, from a layer on."""
        found: list[FloatArray] = []
        for rows in self._batches(prompts):
            with torch.inference_mode(), record_attention(self.model, [row.layout for row in rows]) as seen:
                self.model(
                    **self._pad_batch([row.ids for row in rows], positions=True), use_cache=False, logits_to_keep=1
                )
            self.passes += len(rows)
            values = seen.attention(first_layer).double().cpu().numpy()
            found += [value[: len(row.layout.spans)] for value, row in zip(values, rows, strict=True)]
        return found

    def baseline(self, prompt: DocumentPrompt, dummy: str = "", first_layer: int = 0) -> FloatArray:
        """Return Attn(dummy, k), float64 (documents,): the dummy replaces each document in turn (eq. 3.3)."""
        written = dummy or dummy_document(prompt.documents)
        moved = [prompt.with_dummy(place, written) for place in range(len(prompt.spans))]
        return np.asarray([attention[place] for place, attention in enumerate(self.attention(moved, first_layer))])

    def relevances(self, prompts: Sequence[DocumentPrompt], calibration: Calibration) -> list[FloatArray]:
        """Return the calibrated attention of each prompt's documents (eq. 3.4)."""
        return [
            calibrated_relevance(attention, self.baseline(prompt, calibration.dummy), calibration.form)
            for prompt, attention in zip(prompts, self.attention(prompts), strict=True)
        ]

    def scores(self, query: str, documents: Sequence[str], calibration: Calibration | None) -> FloatArray:
        """Return the relevance of each document to the query, float64 (documents,), higher is better (table 3.3).

        By calibrated attention over all documents in one prompt, in the given order; without ``calibration`` by plain
        attention.
        """
        prompt = [self.prompt(query, documents)]
        return self.relevances(prompt, calibration)[0] if calibration else self.attention(prompt)[0]

    def answers(
        self,
        prompts: Sequence[DocumentPrompt],
        longest: int,
        relevances: Sequence[FloatArray] | None = None,
        calibration: Calibration | None = None,
    ) -> list[str]:
        """Return greedy answers of at most ``longest`` tokens, without the prompts.

        With ``relevances`` of each prompt's documents, attention is rescaled to their shares (``calibration``).
        """
        found: list[str] = []
        how = calibration or Calibration()
        for number, rows in enumerate(self._batches(prompts, longest)):
            inputs = self._pad_batch([row.ids for row in rows], positions=False)
            if relevances is None:
                found += self._generate(inputs, longest)
                continue
            given = relevances[number * self.batch : number * self.batch + len(rows)]
            layouts = [row.layout for row in rows]
            with calibrate_attention(self.model, layouts, document_shares(given, layouts, how.t)):
                found += self._generate(inputs, longest)
        return found

    def _generate(self, inputs: dict[str, Tensor], longest: int) -> list[str]:
        fill = padding_id(self.tokenizer)
        with torch.inference_mode():
            written = self.model.generate(
                **inputs, max_new_tokens=longest, do_sample=False, num_beams=1, pad_token_id=fill
            )
        behind = written[:, inputs["input_ids"].shape[1] :]
        texts: list[str] = self.tokenizer.batch_decode(behind, skip_special_tokens=True)
        return texts

    def _batches(self, prompts: Sequence[DocumentPrompt], answer: int = 0) -> list[list[PromptTokens]]:
        read = [tokenize_prompt(prompt, self.tokenizer) for prompt in prompts]
        room = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        longest = max((len(row.ids) for row in read), default=0)
        if room is not None and longest + answer > room:
            more = f" and an answer of {answer:,}" if answer else ""
            raise UsageError(f"a prompt of {longest:,} tokens{more}: the model's limit is {room:,}. {self.fix}")
        return [read[first : first + self.batch] for first in range(0, len(read), self.batch)]

    def _pad_batch(self, rows: Sequence[tuple[int, ...]], *, positions: bool) -> dict[str, Tensor]:
        width = max(map(len, rows))
        fill = padding_id(self.tokenizer)
        ids = torch.tensor([[fill] * (width - len(row)) + list(row) for row in rows])
        mask = torch.arange(width) >= torch.tensor([[width - len(row)] for row in rows])
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if positions:
            inputs["position_ids"] = (mask.long().cumsum(1) - 1).clamp(min=0)
        return {name: tensor.to(self.model.device) for name, tensor in inputs.items()}


def open_decoder(model: str, device: str = "", batch: int = 8, fix: str = "Give fewer documents.") -> DocumentDecoder:
    """Open a decoder of transformers by folder or name, on ``device`` (empty: a GPU if available)."""
    on = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        found = AutoModelForCausalLM.from_pretrained(model, dtype="auto", device_map={"": on})
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(f"{model}: not a causal language model of transformers ({first}).") from None
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"{model}: its tokenizer has no token offsets. Use a model with a tokenizer.json.")
    return DocumentDecoder(found.eval(), tokenizer, batch, fix)
