"""Plausible word pairs, for pools that are too small for counts (``common_sense.tsv``).

Counts of a pool show which preposition follows which verb, what is eaten and what flies. Without them, "a cat flying on
a road" would be as plausible as any text. The table has the most common pairs; for a covered word, an unlisted verb or
preposition counts as implausible.
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
    """Words and hypernyms; an empty set matches any word."""

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
class _Rule:
    first: _Words
    second: _Words
    unless: _Words

    def allows(self, second: str, is_a: IsA) -> bool:
        return (self.second.any or self.second.has(second, is_a)) and not self.unless.has(second, is_a)


@lru_cache(maxsize=1)
def _rules() -> dict[str, tuple[_Rule, ...]]:
    table: dict[str, tuple[_Rule, ...]] = {}
    for row in read_rows("common_sense"):
        rule = _Rule(*(_Words.of(row[column]) for column in ("first", "second", "unless")))
        table[row["rule"]] = (*table.get(row["rule"], ()), rule)
    return table


@lru_cache(maxsize=1)
def _known() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the covered verbs and prepositions, and the adjectives, which may look like verbs."""
    verbs = frozenset[str]().union(*(rule.first.words for rule in _rules()["verb"]))
    before = frozenset[str]().union(*(rule.second.words for rule in _rules()["before"]))
    prepositions = before | {"atop", "above", "below", "against"}
    done = frozenset[str]().union(*(rule.first.words for rule in _rules()["takes"]))
    return verbs, prepositions, frozenset(concepts()).union(*opposites()) - done


def is_plausible_pair(first: str, second: str, is_a: IsA) -> bool | None:
    """Return whether the second word plausibly follows the first; None for pairs that the table does not cover.

    Args:
        first: a verb before its preposition or object, a subject before the verb, a preposition before its noun.
        second: the following word; both are lemmas.
        is_a: whether a noun is a kind of another.
    """
    verbs, prepositions, adjectives = _known()
    if first in adjectives:
        return None  # "open" of a door
    rules = _rules()
    if first in verbs and second in prepositions:
        return any(first in rule.first.words and second in rule.second.words for rule in rules["before"])
    governed = [rule for rule in rules["governs"] if first in rule.first.words]
    if governed:
        return any(second in rule.second.words for rule in governed)
    if second in verbs and first not in verbs:
        doing = next(rule for rule in rules["does"] if rule.first.any or rule.first.has(first, is_a))
        return doing.allows(second, is_a)
    if first in verbs and second not in prepositions:
        return any(rule.allows(second, is_a) for rule in rules["takes"] if first in rule.first.words)
    return None
