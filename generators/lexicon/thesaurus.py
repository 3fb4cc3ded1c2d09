"""What the lexicon asks of WordNet (`language.wordnet.WordNet`), which reads tables of the lexicon itself."""

from collections.abc import Sequence
from typing import Protocol


class Thesaurus(Protocol):
    """Relations of lemmas with a part of speech."""

    def antonyms(self, lemma: str, pos: str) -> Sequence[str]:
        """Return the direct antonyms."""
        ...

    def hypernym_path(self, lemma: str, pos: str) -> Sequence[str]:
        """Return the lemmas of the main sense and of all senses above it, nearest first."""
        ...

    def sense_closure(self, lemma: str, pos: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the relevant senses of a lemma as numbers, and those with all senses above them."""
        ...
