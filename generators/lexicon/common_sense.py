"""Which words go together, for pools that are too small to count it (``common_sense.tsv``).

Counts of a pool show which preposition follows which verb, what is eaten and what flies. Without them, "a cat flying on
a road" would be as plausible as any text. The table has the most common pairs; a verb or preposition that it does not
list beside a covered word is taken not to go with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from pairwright.generators.lexicon.attributes import concepts, opposites
from pairwright.generators.lexicon.nouns import cell_words
from pairwright.generators.lexicon.tables import read_rows

IsA = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class _Words:
    """Words and kinds of things; none at all is any word."""

    words: frozenset[str]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, cell: str) -> "_Words":
        found = cell_words(cell)
        kinds = tuple(word[1:] for word in found if word.startswith("@"))
        return cls(frozenset(word for word in found if not word.startswith("@")), kinds)

    def has(self, word: str, is_a: IsA) -> bool:
        return word in self.words or any(is_a(word, kind) for kind in self.kinds)

    @property
    def any(self) -> bool:
        return not self.words and not self.kinds


@dataclass(frozen=True, slots=True)
class _Claim:
    first: _Words
    second: _Words
    unless: _Words

    def allows(self, second: str, is_a: IsA) -> bool:
        return (self.second.any or self.second.has(second, is_a)) and not self.unless.has(second, is_a)


@lru_cache(maxsize=1)
def _claims() -> dict[str, tuple[_Claim, ...]]:
    table: dict[str, tuple[_Claim, ...]] = {}
    for row in read_rows("common_sense"):
        claim = _Claim(*(_Words.of(row[column]) for column in ("first", "second", "unless")))
        table[row["claim"]] = (*table.get(row["claim"], ()), claim)
    return table


@lru_cache(maxsize=1)
def _known() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the verbs and the prepositions of which something is claimed, and the adjectives, which also look like verbs."""
    verbs = frozenset[str]().union(*(claim.first.words for claim in _claims()["verb"]))
    before = frozenset[str]().union(*(claim.second.words for claim in _claims()["before"]))
    prepositions = before | {"atop", "above", "below", "against"}
    done = frozenset[str]().union(*(claim.first.words for claim in _claims()["takes"]))
    return verbs, prepositions, frozenset(concepts()).union(*opposites()) - done


def is_plausible_pair(first: str, second: str, is_a: IsA) -> bool | None:
    """Whether the second word may follow the first as captions have words follow each other; None where nothing tells.

    Args:
        first: a verb before its preposition or object, a doer before the verb, a preposition before its noun.
        second: what follows; lemmas.
        is_a: whether a noun is a kind of another.
    """
    verbs, prepositions, adjectives = _known()
    if first in adjectives:
        return None  # "open" of a door
    claims = _claims()
    if first in verbs and second in prepositions:
        return any(first in claim.first.words and second in claim.second.words for claim in claims["before"])
    governed = [claim for claim in claims["governs"] if first in claim.first.words]
    if governed:
        return any(second in claim.second.words for claim in governed)
    if second in verbs and first not in verbs:
        doing = next(claim for claim in claims["does"] if claim.first.any or claim.first.has(first, is_a))
        return doing.allows(second, is_a)
    if first in verbs and second not in prepositions:
        return any(claim.allows(second, is_a) for claim in claims["takes"] if first in claim.first.words)
    return None
