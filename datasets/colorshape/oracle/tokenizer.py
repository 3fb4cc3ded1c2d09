"""Tokenizer of sentences, and checks before parsing.

Tokens are lower-case English words, numbers and a few punctuation marks; anything else puts a text outside. "In the image"
may start or end a sentence and is ignored, and so is "in sight" at its end. A word repeated in a row is not English.
"""

import re
from itertools import pairwise

from pairwright.datasets.colorshape.oracle.lexicon import PICTURE_NOUNS

MAX_SENTENCE_TOKENS = 60

_TOKEN = re.compile(r"\s*([a-z]+(?:-[a-z]+)*|\d+|[.,;?])")
_CONTRACTIONS = {
    **{f"{word}'s": f"{word} is" for word in ("there", "that", "here", "it", "what", "where")},
    "isn't": "is not",
    "aren't": "are not",
}

_IN_SIGHT = ("in", "sight")

Tokens = tuple[str, ...]


def tokenise(text: str) -> Tokens | None:
    """Return the lower-case words and punctuation of ``text``; None if it has anything else."""
    text = text.lower().replace("’", "'").strip()
    for short, full in _CONTRACTIONS.items():
        text = re.sub(rf"\b{short}(?=\W|$)", full, text)
    tokens: list[str] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or len(tokens) == MAX_SENTENCE_TOKENS:
            return None
        tokens.append(match[1])
        place = match.end()
    return tuple(tokens)


def strip_place_phrase(tokens: Tokens) -> Tokens:
    """Return the sentence without "in the image" at its start or end."""
    for size in (4, 3):
        if _is_place(tokens[:size]) or (tokens[size - 1 : size] == (",",) and _is_place(tokens[: size - 1])):
            tokens = tokens[size:]
            break
    if tokens[-2:] == _IN_SIGHT:
        return tokens[:-2]
    return tokens[:-3] if _is_place(tokens[-3:]) else tokens


def _is_place(tokens: Tokens) -> bool:
    return (
        len(tokens) == 3
        and tokens[0] in {"in", "within"}
        and tokens[1] in {"the", "this"}
        and tokens[2] in PICTURE_NOUNS
    )


def has_repeated_word(tokens: Tokens) -> bool:
    """Return whether a word occurs twice in a row, also with a comma between ("two circles, circles")."""
    words = [word for word in tokens if word != ","]
    return any(word == after for word, after in pairwise(words))
