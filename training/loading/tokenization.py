"""Tokenization with any tokenizer of transformers, by name or folder.

Texts longer than the limit are truncated by their tokenizer (the end token stays) and counted: a negative that differs
from its caption only after the limit is the same text for the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.training.models.checkpoints import read_tokenizer

CONTEXT = 77
"""Tokens that CLIP's text tower reads, including start and end token."""

IGNORE_INDEX = -100
"""Label of tokens without a loss, as in torch and transformers."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Tokenization options."""

    tokenizer: str  # name or folder for ``AutoTokenizer.from_pretrained``
    max_tokens: int = CONTEXT  # per text, including start and end token
    # Pad the texts of pairs to ``max_tokens`` and embed missing ones too, so that all batches have one shape
    fixed: bool = False

    def __post_init__(self) -> None:
        if self.max_tokens < 3:
            raise UsageError(f"max_tokens is {self.max_tokens}, including start and end token: set at least 3.")


@lru_cache(maxsize=4)
def load_tokenizer(name: str) -> Any:
    """Return the tokenizer of a name or folder, cached per process."""
    tokenizer = read_tokenizer(name)
    if tokenizer_padding_id(tokenizer) is None:
        raise UsageError(f"the tokenizer {name!r} has neither padding nor end token. Set its pad_token.")
    return tokenizer


def tokenizer_padding_id(tokenizer: Any) -> int | None:
    """Return the padding token id: the tokenizer's padding token, else its end token."""
    padded: int | None = tokenizer.pad_token_id
    return tokenizer.eos_token_id if padded is None else padded


def encode(texts: Sequence[str], options: TextOptions) -> tuple[list[list[int]], int]:
    """Return the ids of each text, at most ``max_tokens``, and the number of truncated texts."""
    return encode_by(texts, load_tokenizer(options.tokenizer), options.max_tokens)


def encode_without_end(texts: Sequence[str], options: TextOptions) -> tuple[list[list[int]], int]:
    """Return as `encode`, without the end token that some tokenizers add."""
    rows, cut = encode(texts, options)
    end = load_tokenizer(options.tokenizer).eos_token_id
    return [row[:-1] if row and row[-1] == end else row for row in rows], cut


def encode_by(texts: Sequence[str], tokenizer: Any, max_tokens: int) -> tuple[list[list[int]], int]:
    """Return the ids of each text by a loaded tokenizer, at most ``max_tokens``, and the number of truncated texts."""
    if not texts:
        return [], 0
    ids: list[list[int]] = tokenizer(list(texts), verbose=False)["input_ids"]
    long = [place for place, row in enumerate(ids) if len(row) > max_tokens]
    if long:
        again = [texts[place] for place in long]
        for place, row in zip(long, tokenizer(again, truncation=True, max_length=max_tokens)["input_ids"], strict=True):
            ids[place] = row
    return ids, len(long)


def pad_rows(rows: Sequence[Sequence[int]], fill: int, width: int = 0) -> tuple[Tensor, Tensor]:
    """Return int64 (n, t) rows padded with ``fill``, and a bool (n, t) mask, False at padding; t is at least ``width``."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    width = max(width, int(lengths.max(initial=0)))
    mask = np.arange(width) < lengths[:, None]
    ids = np.full((len(rows), width), fill, dtype=np.int64)
    ids[mask] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
    return torch.from_numpy(ids), torch.from_numpy(mask)


def padding_id(options: TextOptions) -> int:
    """Return the padding token id of the tokenizer."""
    return tokenizer_padding_id(load_tokenizer(options.tokenizer)) or 0
