"""Which things captions have side by side: what is strange in a company, and what may be there though nobody says so."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp

from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.sources import Pool
from pairwright.generators.knowledge.things import Things
from pairwright.generators.knowledge.usage import OFTEN, SEEN, Usage

SLACK = 0.05  # plausibility by which a word may fall short of another, or has to do better
STRANGE = -0.15  # plausibility of two words that are hardly ever seen together where chance alone would have them
COMMON = 0.05  # share of a word's captions in which another is usual
# How much sooner a thing is taken that goes better with a caption: as e to the power of this, for a plausibility of one.
_LEANING = 10.0
_LEAST = -600.0  # powers of e below which weights would be none
UNSAID = 0.02  # share of a word's captions in which a thing is, above which it may be there though nobody says so


class Company:
    """Asks the pool what goes along with what, and remembers.

    Args:
        pool: statistics of the captions that the texts are to look like.
        things: tells what nouns stand for.
        usage: tells which words are frequent.
        least: plausibility that words which go together have.
    """

    def __init__(self, pool: Pool, things: Things, usage: Usage, least: float) -> None:
        self._pool, self._things, self._usage, self._least = pool, things, usage, least
        self.beside = lru_cache(maxsize=200_000)(self._find_beside)
        self._belongs = lru_cache(maxsize=200_000)(self._find_belongs)

    def goes_along(self, candidate: str, context: Sequence[str]) -> bool:
        """Whether captions have a thing in such company: strange beside none of it, and sensible beside all of it."""
        total, beside = 0.0, self.beside
        for other in context:
            fit = beside(candidate, other)
            if fit <= STRANGE:
                return False
            total += fit
        return bool(context) and total >= (self._least + SLACK) * len(context)

    def fit(self, candidate: str, context: Sequence[str]) -> float:
        """Return how well a thing goes with all the words of a context together."""
        return sum(self.beside(candidate, other) for other in context)

    def better_first(self, candidates: Sequence[str], context: Sequence[str], rng: RandomStream) -> list[str]:
        """Return things in random order, sooner those that go better with all the words of a context together."""
        fits = [_LEANING * self.fit(each, context) for each in candidates]
        best = max(fits, default=0.0)  # a text of a thousand words has fits that no power of e can tell
        return rng.weighted_shuffle(candidates, [exp(max(fit - best, _LEAST)) for fit in fits])

    def goes_well(self, candidate: str, other: str) -> bool:
        """Whether captions have a thing with another one more often than chance would."""
        return self.beside(candidate, other) >= self._least + SLACK

    def makes_sense(self, word: str, instead_of: str, context: Sequence[str]) -> bool:
        """Whether the pool does not find a word strange beside the others of a caption."""
        rest = [lemma for lemma in context if lemma != instead_of]
        return self._pool.plausibility(word, rest) >= self._least - SLACK

    def is_strange_beside_any(self, noun: str, words: Iterable[str]) -> bool:
        """Whether captions hardly ever have a thing beside one of the words where chance alone would have it."""
        return any(self.beside(noun, word) <= STRANGE for word in words)

    def stands_beside(self, candidate: str, other: str) -> bool:
        """Whether captions have a thing with another one as often as chance would, or often enough not to matter."""
        return self._stands(candidate, other, self.beside(candidate, other))

    def beside_which(self, other: str, among: Iterable[str]) -> tuple[str, ...]:
        """Return those things that captions have beside another one."""
        # Asked once, of many: remembered one by one, these would drive out what is asked again.
        fits = ((noun, self._find_beside(noun, other)) for noun in among)
        return tuple(noun for noun, fit in fits if self._stands(noun, other, fit))

    def _stands(self, candidate: str, other: str, fit: float) -> bool:
        return fit >= self._least or self._is_common(candidate.rsplit(maxsplit=1)[-1], other)

    def _find_beside(self, candidate: str, other: str) -> float:
        """Return how well a thing goes with a word; of a compound, its worst word ("hot dog" is not about dogs)."""
        if " " not in candidate:
            return self._plausible(candidate, other)
        return min(self._plausible(word, other) for word in candidate.split())

    def _plausible(self, word: str, other: str) -> float:
        """Return the plausibility of two words, below zero where they are never seen together: rare ones rarely are."""
        seen, fit = self._pool.context_fit(word, (other,), SEEN)
        return fit if seen or word == other else min(fit, -SLACK)

    def _is_common(self, word: str, beside: str) -> bool:
        often = self._pool.cooccurrence(beside, beside)
        return often > 0 and self._pool.cooccurrence(word, beside) >= max(SEEN, COMMON * often)

    def belongs_with_any(self, noun: str, words: Iterable[str]) -> bool:
        """Whether captions speak so often of a thing beside one of the words that it may be there unsaid."""
        return any(self._belongs(noun, word) for word in words)

    def _find_belongs(self, noun: str, word: str) -> bool:
        often = self._pool.cooccurrence(word, word)
        return self._pool.cooccurrence(noun.rsplit(maxsplit=1)[-1], word) > UNSAID * often

    def is_another(self, noun: str, other: str) -> bool:
        """Whether nobody would call a thing by the other noun: one of another kind, or one that often stands beside it.

        Words that the pool hardly has are never sure: they may be slips of the pen.
        """
        if not self._usage.is_frequent(other, "NOUN"):
            return False
        one, two = self._things.kinds(noun), self._things.kinds(other)
        often = min(self._pool.cooccurrence(word, other) for word in noun.split()) >= OFTEN
        return (bool(one) and one.isdisjoint(two)) or (often and self.beside(noun, other) >= SLACK)
