"""From texts to token ids: any tokenizer of transformers, by name or folder.

A text that is longer than a tower reads is cut as its tokenizer cuts it (the end mark stays), and counted: a negative
that differs from its caption behind the cut is the same text for the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError

CONTEXT = 77
"""Tokens that CLIP's text tower reads, marks of start and end included."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts become tokens.

    Attributes:
        tokenizer: name or folder, as ``AutoTokenizer.from_pretrained`` takes it.
        max_tokens: of a text, marks of start and end included.

    Raises:
        UsageError: fewer than three tokens.
    """

    tokenizer: str
    max_tokens: int = CONTEXT

    def __post_init__(self) -> None:
        if self.max_tokens < 3:
            raise UsageError(f"max_tokens is {self.max_tokens}: two of them are marks. Give at least 3.")


@lru_cache(maxsize=4)
def load_tokenizer(name: str) -> Any:
    """Return the tokenizer of a name or folder, loaded once a process.

    Raises:
        UsageError: there is none, or it has no mark to pad with.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(f"no tokenizer {name!r} ({first}). Give a folder that holds one.") from None
    if tokenizer_padding_id(tokenizer) is None:
        raise UsageError(f"the tokenizer {name!r} has no mark to pad with and none for the end. Set its pad_token.")
    return tokenizer


def tokenizer_padding_id(tokenizer: Any) -> int | None:
    """Return the id that stands behind the end of short texts: the padding mark, else the end mark."""
    padded: int | None = tokenizer.pad_token_id
    return tokenizer.eos_token_id if padded is None else padded


def encode(texts: Sequence[str], options: TextOptions) -> tuple[list[list[int]], int]:
    """Return the ids of each text, at most ``max_tokens``, and how many texts were cut."""
    if not texts:
        return [], 0
    tokenizer = load_tokenizer(options.tokenizer)
    ids: list[list[int]] = tokenizer(list(texts), verbose=False)["input_ids"]
    long = [place for place, row in enumerate(ids) if len(row) > options.max_tokens]
    if long:
        again = [texts[place] for place in long]
        for place, row in zip(
            long, tokenizer(again, truncation=True, max_length=options.max_tokens)["input_ids"], strict=True
        ):
            ids[place] = row
    return ids, len(long)


def pad_rows(rows: Sequence[Sequence[int]], fill: int, width: int = 0) -> tuple[Tensor, Tensor]:
    """Return int64 (n, t) with ``fill`` behind short rows, and bool (n, t) of what is no fill; t at least ``width``."""
    width = max(width, max(map(len, rows), default=0))
    ids = torch.full((len(rows), width), fill, dtype=torch.int64)
    mask = torch.zeros((len(rows), width), dtype=torch.bool)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.int64)
        mask[place, : len(row)] = True
    return ids, mask


def padding_id(options: TextOptions) -> int:
    """Return the id that rows are padded with."""
    return tokenizer_padding_id(load_tokenizer(options.tokenizer)) or 0
