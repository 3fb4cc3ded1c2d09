"""Attribute lexicon: classes of adjectives and number words, their exclusions, and their substitutes.

A *class* (colour, size, ...) contains *concepts*, sets of synonyms (``attributes.tsv``). Two concepts of a class
exclude each other for the nouns of the class (``attribute_classes.tsv``), unless they are *neighbours*, which viewers
confuse (``attribute_neighbours.tsv``). *Opposites* are pairs without a class (``attribute_opposites.tsv``); antonyms in
WordNet are opposites of words in no table. Number words exclude each other if their ranges are disjoint
(``numbers.tsv``). A word may replace those that it excludes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from pairwright.generators.lexicon.nouns import NounLexicon
from pairwright.generators.lexicon.tables import cell_words, grouped, read_rows
from pairwright.generators.lexicon.thesaurus import Thesaurus

NUMBER: Final = "number"  # class of number words
_UNLIMITED: Final = 10**9

Concept = tuple[str, str]  # class and name


@dataclass(frozen=True, slots=True)
class NounCondition:
    """Nouns for which a rule holds: lemmas and ``@class`` names; an empty ``beside`` is any noun."""

    beside: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()

    @classmethod
    def of(cls, beside: str, never: str = "") -> "NounCondition":
        """Return the condition of two cells of a table."""
        return cls(frozenset(cell_words(beside)), frozenset(cell_words(never)))

    def holds(self, names: frozenset[str]) -> bool:
        """Return whether it holds for a noun with these names and classes."""
        return self.never.isdisjoint(names) and (not self.beside or not self.beside.isdisjoint(names))


@lru_cache(maxsize=1)
def concepts() -> dict[str, tuple[Concept, ...]]:
    """Return the concepts of each word, in the order of the table."""
    return grouped((row["word"], (row["class"], row["concept"])) for row in read_rows("attributes"))


@lru_cache(maxsize=1)
def concept_words() -> dict[Concept, tuple[str, ...]]:
    """Return the words of each concept, in the order of the table."""
    return grouped((concept, word) for word, found in concepts().items() for concept in found)


def concepts_of(name: str) -> dict[str, tuple[str, ...]]:
    """Return the concepts of a class with their words, in the order of the table."""
    return {concept: words for (group, concept), words in concept_words().items() if group == name}


@lru_cache(maxsize=100)
def words_of_class(name: str) -> frozenset[str]:
    """Return the words of a class."""
    return frozenset(word for words in concepts_of(name).values() for word in words)


def _classes_of(word: str) -> frozenset[str]:
    return frozenset(group for group, _ in concepts().get(word, ()))


def share_class(one: str, other: str) -> bool:
    """Return whether two words share a class, such as colour."""
    return not _classes_of(one).isdisjoint(_classes_of(other))


def other_concepts(one: str, other: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the classes of which two words without a common concept both are, each with their two concepts."""
    ours, theirs = concepts().get(one, ()), concepts().get(other, ())
    for (group, concept), (other_group, other_concept) in product(ours, theirs) if {*ours}.isdisjoint(theirs) else ():
        if group == other_group:
            yield group, frozenset((concept, other_concept))


@lru_cache(maxsize=1)
def class_conditions() -> dict[str, NounCondition]:
    """Return the nouns for which each class holds."""
    return {row["class"]: NounCondition.of(row["beside"], row["never"]) for row in read_rows("attribute_classes")}


@lru_cache(maxsize=1)
def _usual_nouns() -> dict[str, frozenset[str]]:
    """Return the nouns, lemmas and ``@class`` names, beside which every word of a class is usual."""
    return {row["class"]: frozenset(cell_words(row["usual"])) for row in read_rows("attribute_classes")}


@lru_cache(maxsize=2)
def neighbours(*, distinguished: bool = True) -> dict[frozenset[str], NounCondition]:
    """Return the pairs of neighbouring concepts, and the nouns for which they are neighbours.

    Those that captioners hardly confuse are included if ``distinguished``.
    """
    table: dict[frozenset[str], NounCondition] = {}
    for row in read_rows("attribute_neighbours"):
        if distinguished or not row["distinguished"]:
            pair, condition = frozenset((row["one"], row["other"])), NounCondition.of(row["beside"])
            known = table.get(pair, condition)
            anywhere = not (known.beside and condition.beside)
            table[pair] = NounCondition() if anywhere else NounCondition(known.beside | condition.beside)
    return table


@lru_cache(maxsize=1)
def opposites() -> dict[frozenset[str], NounCondition]:
    """Return the pairs of opposites, in the order of the table, and the nouns for which they hold."""
    rows = read_rows("attribute_opposites")
    return {frozenset((row["one"], row["other"])): NounCondition.of(row["beside"], row["never"]) for row in rows}


@lru_cache(maxsize=1)
def untouched_words() -> frozenset[str]:
    """Return the adjectives that order, count or point instead of describing: never edited."""
    return frozenset(row["word"] for row in read_rows("attribute_words"))


@lru_cache(maxsize=1)
def counts() -> dict[str, int]:
    """Return the value of each word for a small number: "two", "2", "pair"."""
    return {row["word"]: int(row["count"]) for row in read_rows("numbers") if row["count"]}


@lru_cache(maxsize=1)
def number_ranges() -> dict[str, tuple[int, int]]:
    """Return the range (least, greatest) of each number word."""
    return _ranges("least", "greatest")


@lru_cache(maxsize=1)
def own_number_ranges() -> dict[str, tuple[int, int]]:
    """Return the ranges in which one captioner uses number words, where these differ."""
    return _ranges("own_least", "own_greatest")


def _ranges(least: str, greatest: str) -> dict[str, tuple[int, int]]:
    rows = (row for row in read_rows("numbers") if row[least])
    return {row["word"]: (int(row[least]), int(row[greatest] or _UNLIMITED)) for row in rows}


@lru_cache(maxsize=5_000)
def same_concept(word: str) -> frozenset[str]:
    """Return all words of the concepts of a word, including itself."""
    return frozenset((word, *(other for concept in concepts().get(word, ()) for other in concept_words()[concept])))


class AttributeLexicon:
    """Classes and replacements of adjectives and number words, in lower case."""

    def __init__(self, thesaurus: Thesaurus, nouns: NounLexicon) -> None:
        self._thesaurus, self._nouns = thesaurus, nouns
        self._near = neighbours(distinguished=False)
        self._names = lru_cache(maxsize=20_000)(self._find_names)
        self._antonyms = lru_cache(maxsize=20_000)(self._find_antonyms)
        self._candidates = lru_cache(maxsize=20_000)(self._find_candidates)

    def class_of(self, word: str) -> str:
        """Return the first class of a word, `NUMBER` of number words; empty if it has none."""
        if word in number_ranges():
            return NUMBER
        found = concepts().get(word, ())
        return found[0][0] if found else ""

    def exclusive(self, one: str, other: str, noun: str) -> bool:
        """Return whether two attributes of a noun (a lemma) exclude each other; symmetric."""
        ranges = number_ranges()
        if one in ranges or other in ranges:
            return one in ranges and other in ranges and _are_other_numbers(ranges[one], ranges[other])
        if one == other or not untouched_words().isdisjoint((one, other)):
            return False
        names, opposed = self._names(noun), opposites().get(frozenset((one, other)))
        if opposed is not None:
            return opposed.holds(names)
        return other in self._antonyms(one) or any(
            class_conditions()[group].holds(names) and not (pair in self._near and self._near[pair].holds(names))
            for group, pair in other_concepts(one, other)
        )

    def is_usual(self, word: str, noun: str) -> bool:
        """Return whether captions use every word of a class of an attribute beside a noun: a purse of any colour."""
        names = self._names(noun)
        return any(not names.isdisjoint(_usual_nouns()[group]) for group in _classes_of(word))

    def substitutes(self, word: str, noun: str, vocabulary: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a vocabulary that exclude a word for a noun, in the order of the vocabulary; symmetric."""
        found = self._candidates(word, tuple(vocabulary))
        return tuple(other for other in found if self.exclusive(word, other, noun))

    def _find_candidates(self, word: str, vocabulary: tuple[str, ...]) -> tuple[str, ...]:
        """Return the words of a vocabulary that exclude a word for some noun."""
        classes, counted = _classes_of(word), word in number_ranges()
        return tuple(
            other
            for other in vocabulary
            if (counted and other in number_ranges())
            or not classes.isdisjoint(_classes_of(other))
            or frozenset((word, other)) in opposites()
            or other in self._antonyms(word)
        )

    def _find_names(self, noun: str) -> frozenset[str]:
        head = noun.rpartition(" ")[2]
        return frozenset({noun, head, *(f"@{name}" for name in self._nouns.classes(noun))})

    def _find_antonyms(self, word: str) -> frozenset[str]:
        """Return the antonyms in WordNet of a word, if both are in no table."""
        known = concepts().keys() | number_ranges().keys() | frozenset().union(*opposites())
        return frozenset() if word in known else frozenset(self._thesaurus.antonyms(word, "ADJ")) - known


def _are_other_numbers(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] < other[0] or other[1] < one[0]
