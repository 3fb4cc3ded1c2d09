"""By which words captions may speak of a thing: its name, what means the same, and what is a kind of it."""

from functools import lru_cache

from pairwright.generators.captions.context import ImageWords, plural_of
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.words.nouns import FRAMES

_MANY = 400  # kinds of a thing, of which those are left out that the pool does not have: of plants there are thousands


class Names:
    """Tells whether a thing is spoken of, and remembers its names.

    Args:
        pool: statistics of the captions; of a thing with very many kinds those count that it has.
        thesaurus: WordNet.
        things: tells what nouns stand for.
    """

    def __init__(self, pool: Pool, thesaurus: Thesaurus, things: Things) -> None:
        self._pool, self._thesaurus, self._things = pool, thesaurus, things
        self.of = lru_cache(maxsize=20_000)(self._find_of)
        self._sayings = lru_cache(maxsize=100_000)(self._find_sayings)

    def is_said(self, candidate: str, instead_of: str, words: ImageWords) -> bool:
        """Whether a caption or box speaks of the candidate; words that may mean the original do not count."""
        single, compounds = self._sayings(candidate, instead_of)
        return not words.all.isdisjoint(single) or any(
            words.has_any(compounds[last]) for last in words.all & compounds.keys()
        )

    def _find_sayings(self, candidate: str, instead_of: str) -> tuple[frozenset[str], dict[str, list[str]]]:
        """Return the forms of one word, and those of several by their last: of most that one is not said at all."""
        forms = self.of(candidate)
        if self._things.is_bird(candidate) and not self._things.is_bird(instead_of):
            forms |= {"bird", "birds"}  # somebody's bird may be another's duck
        if instead_of:
            forms -= loosely_same(instead_of)
        else:
            same = loosely_same(candidate) | loosely_same(candidate.rsplit(maxsplit=1)[-1])
            forms |= same | {plural_of(word) for word in same}
        compounds: dict[str, list[str]] = {}
        for form in forms:
            if " " in form:
                compounds.setdefault(form.rpartition(" ")[2], []).append(form)
        return frozenset(form for form in forms if " " not in form), compounds

    def _find_of(self, candidate: str) -> frozenset[str]:
        """Return the word forms that would make the candidate true: itself, its synonyms, and its kinds."""
        same = {candidate, *self._thesaurus.synonyms(candidate, "NOUN"), *loosely_same(candidate)}
        kinds = [*self._thesaurus.hyponyms(candidate, "NOUN")]
        if len(kinds) > _MANY:
            kinds = [word for word in kinds if self._pool.frequency(word, "NOUN")]
        forms = {*same, *kinds} - FRAMES
        return frozenset(forms | {plural_of(form) for form in forms})
