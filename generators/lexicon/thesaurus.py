"""Protocol of WordNet (`language.wordnet.WordNet`), so that tests can replace it by small tables."""

from collections.abc import Iterable, Sequence
from typing import Protocol


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
