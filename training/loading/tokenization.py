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
    tokenizer: Any = read_tokenizer(name)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is None:
        raise UsageError(f"the tokenizer {name!r} has neither padding nor end token. Set its pad_token.")
    return tokenizer


def padding_id(tokenizer: Any) -> int:
    """Return the id of the tokenizer's padding token, else that of its end token, else 0."""
    return next((one for one in (tokenizer.pad_token_id, tokenizer.eos_token_id) if one is not None), 0)


def encode(  # noqa: PLR0913 - three are for one caller each
    texts: Sequence[str],
    tokenizer: Any,
    max_tokens: int,
    *,
    end: bool = True,
    fill: int | None = None,
    width: int = 0,
) -> tuple[Tensor, Tensor, int]:
    """Return ids of texts, int64 (n, t), their mask, bool (n, t), False at padding, and the number of truncated texts.

    Args:
        texts: any number.
        tokenizer: of transformers.
        max_tokens: of a text, at most.
        end: keep the end token that some tokenizers add.
        fill: id at padding; None: `padding_id`.
        width: columns, at least.
    """
    ids: list[list[int]] = tokenizer(list(texts), verbose=False)["input_ids"] if texts else []
    long = [place for place, row in enumerate(ids) if len(row) > max_tokens]
    if long:
        again = [texts[place] for place in long]
        for place, row in zip(long, tokenizer(again, truncation=True, max_length=max_tokens)["input_ids"], strict=True):
            ids[place] = row
    if not end:
        ids = [row[:-1] if row and row[-1] == tokenizer.eos_token_id else row for row in ids]
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    mask = np.arange(max(width, int(lengths.max(initial=0)))) < lengths[:, None]
    padded = np.full(mask.shape, padding_id(tokenizer) if fill is None else fill, dtype=np.int64)
    padded[mask] = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
    return torch.from_numpy(padded), torch.from_numpy(mask), len(long)
