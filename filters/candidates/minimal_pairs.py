"""Minimal pairs among the captions of a pool: texts that differ in one word, or in the order of their words.

The captions are indexed by their words with one word left out, and by their sorted words. Texts that share an entry and
belong to two images are candidates for a group of two images and two texts, each text a hard negative of the other.

Memory: about 1 kB per caption.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pairwright.datasets.rng import make_rng
from pairwright.generators.edits.written.sentence_extraction import comparison_key

_MIN_WORDS = 4  # shorter captions ("a dog") say too little of an image
_MAX_PARTNERS = 16  # texts compared with a caption, sampled from each of its entries


@dataclass(frozen=True, slots=True)
class PoolCaption:
    """A caption of an image: the group of the image (`image_groups.pair_group`), and the text."""

    group: str
    text: str


def find_minimal_pairs(captions: Iterable[PoolCaption], seed: int) -> Iterator[tuple[PoolCaption, PoolCaption]]:
    """Yield pairs of captions of different images, in the order of the first one, each once.

    Args:
        captions: of the pool. Of captions that several images share, only the first one is used.
        seed: samples the partners of a caption that has many.
    """
    distinct = {
        words: each for each in captions if len(words := tuple(comparison_key(each.text).split())) >= _MIN_WORDS
    }
    listed = list(distinct.items())
    index: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, (words, _) in enumerate(listed):
        for entry in _entries(words):
            index[entry].append(row)
    for row, (words, caption) in enumerate(listed):
        rng = make_rng(seed, "minimal-pairs", caption.text)
        partners: dict[int, None] = {}
        for entry in _entries(words):
            later = [other for other in index[entry] if other > row]
            partners.update(dict.fromkeys(later if len(later) <= _MAX_PARTNERS else rng.sample(later, _MAX_PARTNERS)))
        for other in partners:
            if listed[other][1].group != caption.group:
                yield caption, listed[other][1]


def _entries(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what the words share with those that differ in one word, or in the order only."""
    for at in range(len(words)):
        yield (*words[:at], "", *words[at + 1 :])
    yield ("sorted", *sorted(words))
