"""How likely captions have one word where another stands: the odds by which exchanges are chosen.

Whoever sees texts alone tells a negative from its caption by words that exchanges put in more often than they take them
out. They even out where the words a and b are exchanged as often one way as the other in the same surroundings. Captions
with a are there p(a) times, so a has to become b in a share of them that goes with p(b) / p(a) (detailed balance, as
Metropolis et al. 1953 choose their steps). Shares are those of the pool, smoothed by how often it has the word at all.

What is much more frequent than all that may stand for it ("on") is lost all the same, wherever nothing else can be
exchanged; words that are rare in their surroundings are therefore given up first.
"""

from functools import lru_cache

from pairwright.generators.knowledge import Pool
from pairwright.generators.language.pool import WORDINGS

SMOOTHING = 3.0  # captions' worth of what is known of a word whatever stands beside it
LEAST, MOST = 1e-3, 30.0
RARE = 0.01  # share of the captions that have a word of rarity 1


class Odds:
    """Asks the pool how often a word stands where another does, and remembers.

    Args:
        pool: statistics of the captions that the texts are to look like.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._whole = pool.form_frequency("a") + 1  # about as many as there are captions
        self.of_places = lru_cache(maxsize=50_000)(self._of_places)
        self.of_deeds = lru_cache(maxsize=50_000)(self._of_deeds)
        self.of_words = lru_cache(maxsize=50_000)(self._of_words)
        self.rarity = lru_cache(maxsize=20_000)(self._rarity)

    def _of_places(self, old: str, news: tuple[str, ...], noun: str) -> tuple[float, ...]:
        """Return how much more often captions have other relations before a noun than the ``old`` one."""
        known = self._before(old, noun)
        return tuple(_bounded(self._before(new, noun) / known) for new in news)

    def _of_deeds(self, old: str, news: tuple[str, ...], after: str, doer: str) -> tuple[float, ...]:
        """Return how much more often captions have other verbs than ``old`` between a doer and an object or preposition.

        All are lemmas; ``after`` and ``doer`` may be empty.
        """
        known = self._between(old, after, doer)
        return tuple(_bounded(self._between(new, after, doer) / known) for new in news)

    def _of_words(self, old: str, news: tuple[str, ...], noun: str) -> tuple[float, ...]:
        """Return how much more often captions describe a noun by other words than ``old``, adjectives or numbers."""
        known = self._describing(old, noun)
        return tuple(_bounded(self._describing(new, noun) / known) for new in news)

    def _rarity(self, word: str) -> float:
        """Return how rare a word is in captions, above 0."""
        return _bounded((RARE / self._share(self._pool.form_frequency(word))) ** 1.5)

    def _before(self, wording: str, noun: str) -> float:
        words = tuple(wording.split())
        known = len(words) == 1 or words in WORDINGS
        seen = self._pool.adjacency(wording, noun) if known else 0
        return seen + SMOOTHING * self._share(min(self._pool.form_frequency(word) for word in words))

    def _between(self, verb: str, after: str, doer: str) -> float:
        often = self._share(self._pool.frequency(verb, "VERB"))
        found = often
        for seen in (
            self._pool.adjacency(verb, after) if after else -1,
            self._pool.adjacency(doer, verb) if doer else -1,
        ):
            if seen >= 0:
                found *= (seen + SMOOTHING * often) / often
        return found

    def _describing(self, word: str, noun: str) -> float:
        return self._pool.adjacency(word, noun) + SMOOTHING * self._share(self._pool.form_frequency(word))

    def _share(self, often: int) -> float:
        return (often + 1) / self._whole


def _bounded(odds: float) -> float:
    return min(max(odds, LEAST), MOST)
