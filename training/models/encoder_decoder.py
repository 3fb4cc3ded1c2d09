"""Encoder-decoder of transformers, such as T5: the student of Distilling step-by-step (000, chapter 2).

The two tasks are two prefixes of the input (`[label] ...`, `[rationale] ...`) of one model. The losses are in
`objectives`.
"""

from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase

from pairwright.training.models.checkpoints import load_pretrained, read_tokenizer, save_added_weights, start_saving


class EncoderDecoder(nn.Module):
    """An encoder-decoder with its tokenizer.

    Attributes:
        network: the model; its parameters are named ``network.*``.
        tokenizer: None for a model made from a config.
    """

    kind = "student"

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype = torch.float32) -> Self:
        """Load a checkpoint by folder or name.

        Raises:
            MissingResourceError: no such checkpoint.
            InputError: it is damaged or not an encoder-decoder.
        """
        return cls(load_pretrained(AutoModelForSeq2SeqLM, name, dtype=dtype), read_tokenizer(name))

    def forward(self, inputs: Tensor, input_mask: Tensor, targets: Tensor) -> Tensor:
        """Return the logits of each target token given those before it.

        Args:
            inputs: token ids, int64 (b, s).
            input_mask: bool (b, s), False for padding.
            targets: token ids, int64 (b, t), padded with `IGNORE_INDEX`.

        Returns:
            Float (b, t, vocabulary); row t predicts ``targets[:, t]``.
        """
        logits = self.network(
            input_ids=inputs, attention_mask=input_mask.long(), labels=targets.long(), use_cache=False
        ).logits
        assert isinstance(logits, Tensor)
        return logits

    def answer(self, inputs: Tensor, input_mask: Tensor, *, most: int = 64) -> Tensor:
        """Return greedy outputs, int64 (b, up to ``most`` + 1), as transformers generates them."""
        network = cast("Any", self.network)
        found = network.generate(
            inputs=inputs, attention_mask=input_mask.long(), max_new_tokens=most, do_sample=False, num_beams=1
        )
        assert isinstance(found, Tensor)
        return found

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint of transformers (safetensors), with its tokenizer."""
        start_saving(folder)
        self.network.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)
        save_added_weights(folder, {}, {"kind": self.kind})
