"""Which things may be added to a caption, beside what it has."""

from collections.abc import Iterator
from functools import cached_property, lru_cache

from pairwright.generators.edits.rng import MAX_DRAWN_WORDS, RandomStream, WeightedWords
from pairwright.generators.knowledge.company import Company
from pairwright.generators.knowledge.usage import Usage
from pairwright.generators.language.inflection import article
from pairwright.generators.words.nouns import ADDABLE


class Addable:
    """Draws from the things of our own table that captions have often enough.

    Args:
        usage: tells which words are frequent.
        company: tells what goes along with what.
    """

    def __init__(self, usage: Usage, company: Company) -> None:
        self._usage, self._company = usage, company
        self._beside_it = lru_cache(maxsize=20_000)(self._find_beside_it)

    def beside(self, other: str, rng: RandomStream) -> Iterator[str]:
        """Draw some of the things that captions have beside another, frequent ones sooner."""
        return rng.weighted_sample(self._beside_it(other), MAX_DRAWN_WORDS)

    def _find_beside_it(self, other: str) -> WeightedWords:
        return self._usage.urn_of(self._company.beside_which(other, self._addable))

    def like(self, noun: str, rng: RandomStream) -> list[str]:
        """Return all things of as many words that may be added, those of the same length first."""
        words = len(noun.split())
        like = [other for other in self._addable if len(other.split()) == words and other != noun]
        return sorted(rng.shuffled(like), key=lambda other: abs(len(_indefinite(other)) - len(_indefinite(noun))))

    @cached_property
    def _addable(self) -> tuple[str, ...]:
        return tuple(noun for noun in ADDABLE if self._usage.is_frequent(noun, "NOUN"))


def _indefinite(noun: str) -> str:
    return f"{article(noun)} {noun}"
