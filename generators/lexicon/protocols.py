"""Protocols of the two sources of lexical knowledge: WordNet and the caption pool.

As protocols they can be replaced by small tables in tests. Implementations: `language.wordnet.WordNet`,
`language.pool_statistics.PoolStatistics`.
"""

from collections.abc import Collection, Iterable, Sequence
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

    def known_nouns(self, nouns: Collection[str]) -> float:
        """Return the share of the nouns of the captions that are among some lemmas, 0-1."""
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

    def bigram(self, first: str, second: str) -> int:
        """Return the number of captions with the word ``first`` right before ``second``; "" is a caption's end."""
        ...

    def linked(self, left: str, preposition: str, noun: str) -> int:
        """Return the number of captions with a prepositional link (noun or verb, preposition, governed noun); "" is a wildcard."""
        ...

    def plausibility(self, word: str, context: Iterable[str]) -> float:
        """Return the association of a word with others, in [-1, 1]; 0 is chance."""
        ...

    def plausibilities(self, word: str, others: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the `plausibility` of each of others with a word."""
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
        """Return all hyponyms of the lemma."""
        ...

    def hypernyms(self, lemma: str, pos: str) -> Iterable[str]:
        """Return all hypernyms of the lemma."""
        ...

    def hypernym_path(self, lemma: str, pos: str) -> Sequence[str]:
        """Return the lemmas of the main sense and its hypernyms, nearest first."""
        ...

    def sense_closure(self, lemma: str, pos: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the relevant senses, and these with all their hypernyms."""
        ...

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether the lemma is a hyponym of ``kind``."""
        ...

    def related(self, a: str, b: str, pos: str) -> bool:
        """Return whether two lemmas are the same, synonyms, or hypernym and hyponym."""
        ...
