"""SHUFFLE edits: the words of a caption in blocks of two, in random order.

For training only (FSC-CLIP, bi-gram shuffle): such a text is ungrammatical and may even be true, so it is useless in a
benchmark. Rows have the form ``shuffle`` and no target; the exports of benchmarks skip and count them.
"""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.realisation import Change, lowercase_span

BLOCK = 2  # words: the bigrams of FSC-CLIP
_LEAST_BLOCKS = 3  # of two blocks there is only one other order
_ORDERS = 12  # maximum attempts
_LETTERS = re.compile(r"\w+")
_WORD = re.compile(r"\S+")
_END = re.compile(r"\s*[.!?]*\s*$")


def shuffle(caption: Caption, seed: int) -> Iterator[EditOutcome]:
    """Yield the caption with its blocks in random order; spacing and the final mark are kept."""
    rng = random.Random(seed)
    source = caption.pair.caption
    found = _END.search(source)
    spans = [match.span() for match in _WORD.finditer(source, 0, found.start() if found else len(source))]
    blocks = [spans[at : at + BLOCK] for at in range(0, len(spans), BLOCK)]
    if len(blocks) < _LEAST_BLOCKS:
        return
    gaps = [source[one[1] : other[0]] for one, other in pairwise(spans)]
    for _ in range(_ORDERS):
        order = rng.sample(blocks, len(blocks))
        if order == blocks:
            order = [*blocks[1:], blocks[0]]
        if _read(source, order) == _read(source, blocks):
            continue  # "a dog, a dog, a dog", or only punctuation moved
        words = [_word(caption, start, end) for block in order for start, end in block]
        text = "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))
        yield (Change(spans[0][0], spans[-1][1], text),)


def _read(source: str, blocks: Sequence[Sequence[tuple[int, int]]]) -> list[str]:
    """Return the lower-case words in the order of the blocks, without punctuation."""
    return _LETTERS.findall(" ".join(source[start:end] for block in blocks for start, end in block).lower())


def _word(caption: Caption, start: int, end: int) -> str:
    proper = bool(caption.tokens) and caption.tag(0).startswith("NNP")
    return lowercase_span(caption.pair.caption, start, end, proper=proper)
