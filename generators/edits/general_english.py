"""Stands in for the statistics of a pool when there are too few captions to count.

Ten captions say nothing about which words captions use. Then how common a word is comes from WordNet's sense
counts (running text), and which words follow each other from lists of our own (`words/common_sense.py`). Of what these
do not tell every two words count as seen, and fit as well as by chance. Fewer implausible edits are caught so; a pool
of some thousand captions does better.
"""

from collections.abc import Iterable
from functools import lru_cache

from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.words.common_sense import goes_together

MIN_CAPTIONS = 200
SEEN_COUNT, COMMON_COUNT = 2, 1000  # captions, of what nothing is known and of what goes together


class GeneralEnglish:
    """Answers what `pool.PoolStatistics` is asked, from WordNet alone."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._goes_together = lru_cache(maxsize=100_000)(self._ask)

    def __reduce__(self) -> tuple[object, tuple[WordNet]]:
        """Go to another process without what was remembered, which does not pickle."""
        return GeneralEnglish, (self._wordnet,)

    def _ask(self, first: str, second: str) -> bool | None:
        return goes_together(first, second, lambda noun, kind: self._wordnet.is_a(noun, kind, "NOUN"))

    def frequency(self, lemma: str, pos: str) -> int:
        """Return how often running text tagged with senses holds the lemma as that part of speech."""
        return self._wordnet.count(lemma, pos)

    def form_frequency(self, form: str) -> int:
        """Return `SEEN_COUNT`: forms are not counted."""
        return SEEN_COUNT if form else 0

    def cooccurrence(self, a: str, b: str) -> int:
        """Return `SEEN_COUNT`, but 0 for a noun and what such a thing does not do."""
        return SEEN_COUNT if a and b and (a == b or self._goes_together(a, b) is not False) else 0

    def adjacency(self, first: str, second: str) -> int:
        """Return `COMMON_COUNT` for words that go together, 0 for words that do not, and `SEEN_COUNT` where nothing is known."""
        if not (first and second):
            return 0
        told = self._goes_together(first, second)
        return SEEN_COUNT if told is None else COMMON_COUNT if told else 0

    def run(self, first: str, second: str) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return `SEEN_COUNT`: nothing is known of two words."""
        return SEEN_COUNT

    def linked(self, left: str, preposition: str, noun: str) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return 0: nothing is known of things and their places."""
        return 0

    def plausibility(self, word: str, context: Iterable[str]) -> float:  # noqa: ARG002 - the protocol's arguments
        """Return 0, as good as chance."""
        return 0.0

    def company(self, word: str, context: Iterable[str], least: int = SEEN_COUNT) -> tuple[int, float]:
        """Return that every word of the context was seen beside the word, and fits as well as by chance."""
        return (sum(1 for other in context if other != word) if least <= SEEN_COUNT else 0), 0.0


def pool_or_general_english(statistics: PoolStatistics, wordnet: WordNet) -> PoolStatistics | GeneralEnglish:
    """Return the statistics when they are over enough captions, else general English."""
    return statistics if statistics.captions >= MIN_CAPTIONS else GeneralEnglish(wordnet)
