"""Text length in tokens of CLIP's text tower, which reads 77 including the start and end tokens.

With a tokenizer's files the counts are exact. Without, they are lower bounds: CLIP splits texts into runs of letters,
single digits and runs of punctuation, each of one token or more (`transformers`' CLIPTokenizer); long and rare words have
several.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import MissingResourceError

CLIP_CONTEXT_LENGTH = 77
_SPECIAL_TOKENS = 2  # start and end
_WORD_PATTERN = re.compile(r"'(?:s|t|re|ve|m|ll|d)\b|[^\W\d_]+|\d|(?:[^\s\w]|_)+", re.IGNORECASE)
_FIX = "Give a folder with a CLIP checkpoint's vocab.json and merges.txt, or its tokenizer.json."

Spans = Callable[[str], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens and truncates texts.

    Attributes:
        spans: text to the (start, end) of each of its tokens, in code points, without start and end tokens.
        exact: whether these are a tokenizer's; otherwise each span is one token or more.
        by: the counting method, in words.
    """

    spans: Spans
    exact: bool
    by: str

    def count(self, text: str) -> int:
        """Return the number of tokens, including start and end."""
        return len(self.spans(text)) + _SPECIAL_TOKENS

    def cut(self, text: str, most: int) -> str:
        """Return the text, truncated after a whole word if it is longer than ``most`` tokens."""
        spans = self.spans(text)
        if len(spans) + _SPECIAL_TOKENS <= most:
            return text
        end = spans[most - _SPECIAL_TOKENS][0]  # start of the first token over the limit
        whole = text[:end]
        if end and not text[end].isspace() and not text[end - 1].isspace() and (space := _last_space(whole)) > 0:
            whole = whole[:space]
        return whole.rstrip()


def make_approximate_counter() -> TokenCounter:
    """Return a counter of words, digits and punctuation runs."""
    return TokenCounter(
        lambda text: [match.span() for match in _WORD_PATTERN.finditer(text)], exact=False, by="words, at least"
    )


def make_exact_counter(folder: Path) -> TokenCounter:
    """Return a counter that uses the CLIP tokenizer in ``folder``.

    Raises:
        MissingResourceError: if it has no tokenizer, or transformers is not installed.
    """
    if not folder.is_dir():
        raise MissingResourceError(f"{folder}: no such folder. {_FIX}")
    if not (folder / "tokenizer.json").is_file() and not (
        (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file()
    ):
        raise MissingResourceError(f"{folder}: has no tokenizer. {_FIX}")
    try:
        kind: Any = import_module("transformers").CLIPTokenizerFast
    except ImportError:
        raise MissingResourceError(
            "a tokenizer needs transformers: pip install 'pairwright[clip]', or omit the tokenizer."
        ) from None
    try:
        tokenizer = kind.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingResourceError(
            f"{folder}: no tokenizer that transformers can read ({type(error).__name__}). {_FIX}"
        ) from None

    def spans(text: str) -> list[tuple[int, int]]:
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(start, end) for start, end in encoded["offset_mapping"]]

    return TokenCounter(spans, exact=True, by=f"the tokenizer in {folder}")


def _last_space(text: str) -> int:
    return max((at for at, letter in enumerate(text) if letter.isspace()), default=-1)
