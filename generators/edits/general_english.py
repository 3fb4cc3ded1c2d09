"""General English statistics: the fallback for a caption pool that is too small to count.

Word frequency comes from WordNet's sense counts (running text), word co-occurrence from the tables in
`lexicon/common_sense.py`. Pairs that the tables do not cover count as attested, with neutral plausibility. Fewer
implausible edits are rejected than with a pool of some thousand captions.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.common_sense import is_plausible_pair

MIN_CAPTIONS = 200
SEEN_COUNT, COMMON_COUNT = 2, 1000  # captions: for unknown pairs, and for plausible pairs


class GeneralEnglish:
    """The interface of `pool_statistics.PoolStatistics`, answered from WordNet alone."""

    captions = 0

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._is_plausible_pair = lru_cache(maxsize=100_000)(self._find_plausible_pair)

    def __reduce__(self) -> tuple[object, tuple[WordNet]]:
        """Pickle without the cache."""
        return GeneralEnglish, (self._wordnet,)

    def _find_plausible_pair(self, first: str, second: str) -> bool | None:
        return is_plausible_pair(first, second, lambda noun, kind: self._wordnet.is_a(noun, kind, "NOUN"))

    def frequency(self, lemma: str, pos: str) -> int:
        """Return how often sense-tagged running text has the lemma as that part of speech."""
        return self._wordnet.count(lemma, pos)

    def known_nouns(self, nouns: Collection[str]) -> float:  # noqa: ARG002 - the protocol's arguments
        """Return 1: nouns are not counted."""
        return 1.0

    def form_frequency(self, form: str) -> int:
        """Return `SEEN_COUNT`: forms are not counted."""
        return SEEN_COUNT if form else 0

    def cooccurrence(self, a: str, b: str) -> int:
        """Return `SEEN_COUNT`, or 0 for pairs that the tables exclude."""
        return SEEN_COUNT if a and b and (a == b or self._is_plausible_pair(a, b) is not False) else 0

    def cooccurrences(self, word: str, others: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return `cooccurrence` of a word with each of others."""
        return np.array([self.cooccurrence(other, word) for other in others], np.int64)

    def plausibilities(self, word: str, others: Sequence[str]) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """Return zeros: neutral."""
        return np.zeros(len(others))

    def adjacency(self, first: str, second: str) -> int:
        """Return `COMMON_COUNT` for plausible pairs, 0 for implausible ones and `SEEN_COUNT` for unknown ones."""
        if not (first and second):
            return 0
        match = self._is_plausible_pair(first, second)
        return SEEN_COUNT if match is None else COMMON_COUNT if match else 0

    def bigram(self, first: str, second: str) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return `SEEN_COUNT`: bigrams are not counted."""
        return SEEN_COUNT

    def linked(self, left: str, preposition: str, noun: str) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return 0: prepositional links are not counted."""
        return 0

    def plausibility(self, word: str, context: Iterable[str]) -> float:  # noqa: ARG002 - the protocol's arguments
        """Return 0: neutral."""
        return 0.0


def pool_or_general_english(statistics: PoolStatistics, wordnet: WordNet) -> PoolStatistics | GeneralEnglish:
    """Return ``statistics`` if they cover at least `MIN_CAPTIONS` captions, else general English."""
    return statistics if statistics.captions >= MIN_CAPTIONS else GeneralEnglish(wordnet)
