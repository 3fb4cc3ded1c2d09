"""What rules ask of the two sources of knowledge about words: WordNet and the caption pool.

They are protocols, so that tests can bring a dictionary of ten words. The real ones are `language.wordnet.WordNet`,
`language.pool_statistics.PoolStatistics` and, for want of a pool, `edits.general_english.GeneralEnglish`.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Pool(Protocol):
    """Statistics of the user's captions."""

    @property
    def captions(self) -> int:
        """Number of captions."""
        ...

    def frequency(self, lemma: str, pos: str) -> int:
        """Return the number of captions with the lemma as that part of speech."""
        ...

    def form_frequency(self, form: str) -> int:
        """Return the number of captions with the word as written."""
        ...

    def cooccurrence(self, a: str, b: str) -> int:
        """Return the number of captions with both content words."""
        ...

    def cooccurrences(self, word: str, others: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return `cooccurrence` of a word with each of others."""
        ...

    def adjacency(self, first: str, second: str) -> int:
        """Return the number of captions with adjective or preposition ``first`` before noun ``second``."""
        ...

    def run(self, first: str, second: str) -> int:
        """Return the number of captions with the word ``first`` right before ``second``; "" is a caption's end."""
        ...

    def linked(self, left: str, preposition: str, noun: str) -> int:
        """Return the number of captions that put a noun or verb so at a noun; "" stands for whatever is there."""
        ...

    def plausibility(self, word: str, context: Iterable[str]) -> float:
        """Return how well a word goes with others, in [-1, 1]; above 0 better than by chance."""
        ...

    def plausibilities(self, word: str, others: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return `plausibility` of each of some words with one other."""
        ...


class Thesaurus(Protocol):
    """WordNet."""

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether the dictionary has the lemma."""
        ...

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> Sequence[str]:
        """Return the other lemmas of the first senses."""
        ...

    def antonyms(self, lemma: str, pos: str) -> Sequence[str]:
        """Return the direct antonyms."""
        ...

    def hyponyms(self, lemma: str, pos: str) -> Iterable[str]:
        """Return all that is a kind of the lemma."""
        ...

    def hypernyms(self, lemma: str, pos: str) -> Iterable[str]:
        """Return all that the lemma is a kind of."""
        ...

    def hypernym_path(self, lemma: str, pos: str) -> Sequence[str]:
        """Return the lemmas of the main sense and of all above it, nearest first."""
        ...

    def sense_closure(self, lemma: str, pos: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the relevant senses, and those with all senses above them."""
        ...

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether the lemma is a kind of ``kind``."""
        ...

    def related(self, a: str, b: str, pos: str) -> bool:
        """Return whether two lemmas are the same, synonyms, or one a kind of the other."""
        ...
