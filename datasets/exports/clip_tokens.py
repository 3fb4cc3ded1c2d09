"""How long a text is for CLIP's text tower, which reads 77 tokens, the marks of start and end among them.

With a tokenizer's files lengths are exact. Without, they are at least so long: CLIP splits texts into runs of letters,
digits and runs of marks, and each of these is one token or more (`transformers`' CLIPTokenizer). Long and rare words
are several, so a text counted in this way may be longer than told.
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
_FIX = "Name a folder that holds a CLIP checkpoint's vocab.json and merges.txt, or its tokenizer.json."

Spans = Callable[[str], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens and cuts.

    Attributes:
        spans: text to the (start, end) of each of its tokens, in code points, without the marks of start and end.
        exact: whether these are a tokenizer's; else each stands for one token or more.
        by: what counts, in words.
    """

    spans: Spans
    exact: bool
    by: str

    def of(self, text: str) -> int:
        """Return the number of tokens, the marks of start and end among them."""
        return len(self.spans(text)) + _SPECIAL_TOKENS

    def cut(self, text: str, most: int) -> str:
        """Return the text, cut behind a whole word where it is longer than ``most`` tokens."""
        spans = self.spans(text)
        if len(spans) + _SPECIAL_TOKENS <= most:
            return text
        end = spans[most - _SPECIAL_TOKENS][0]  # where the first token stands that has no room
        whole = text[:end]
        if end and not text[end].isspace() and not text[end - 1].isspace() and (space := _last_space(whole)) > 0:
            whole = whole[:space]
        return whole.rstrip()


def make_approximate_counter() -> TokenCounter:
    """Return lengths by words, digits and marks."""
    return TokenCounter(
        lambda text: [match.span() for match in _WORD_PATTERN.finditer(text)], exact=False, by="words, at least"
    )


def make_exact_counter(folder: Path) -> TokenCounter:
    """Return lengths by the CLIP tokenizer whose files stand in ``folder``.

    Raises:
        MissingResource: when they do not, or transformers is not installed.
    """
    if not folder.is_dir():
        raise MissingResourceError(f"{folder}: no such folder. {_FIX}")
    if not (folder / "tokenizer.json").is_file() and not (
        (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file()
    ):
        raise MissingResourceError(f"{folder}: holds no tokenizer. {_FIX}")
    try:
        kind: Any = import_module("transformers").CLIPTokenizerFast
    except ImportError:
        raise MissingResourceError(
            "a tokenizer needs transformers: pip install 'pairwright[clip]', or leave it out."
        ) from None
    try:
        tokenizer = kind.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingResourceError(
            f"{folder}: no tokenizer that transformers can read ({type(error).__name__}). {_FIX}"
        ) from None

    def spans(text: str) -> list[tuple[int, int]]:
        told = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(start, end) for start, end in told["offset_mapping"]]

    return TokenCounter(spans, exact=True, by=f"the tokenizer in {folder}")


def _last_space(text: str) -> int:
    return max((at for at, letter in enumerate(text) if letter.isspace()), default=-1)
