"""WordNet relations without NLTK: synonyms, antonyms, hypernyms and hyponyms.

The table (`wordnet_table`) is compiled once from WordNet 3.0, at set-up (`wordnet_setup`).

- A lemma is in lower case with spaces ("fire hydrant"); pos is NOUN, VERB, ADJ or ADV.
- The sense of a word is chosen by frequency: `wordnet_senses`.
"""

import importlib.util
from functools import lru_cache
from itertools import islice
from pathlib import Path

from pairwright.datasets.errors import MissingResourceError
from pairwright.generators.language.wordnet_senses import COUNTING_SHARE, SenseWeights
from pairwright.generators.language.wordnet_table import POS, WordGraph, read_graph, table_path


def wordnet_status() -> tuple[bool, str]:
    """Return whether the table is set up, and one line about it, without loading it."""
    path = table_path()
    if path.is_file():
        return True, f"WordNet 3.0 table, {path.stat().st_size / 1e6:.1f} MB, {path}"
    reader = "NLTK is installed" if importlib.util.find_spec("nltk") else "NLTK is not installed"
    return False, f"WordNet is not set up ({reader}): run `pairwright doctor --fix`"


class WordNet:
    """WordNet relations by lemma; unknown words have none. Senses and order: see the module docstring."""

    def __init__(self, graph: WordGraph, path: Path) -> None:
        self._path = path
        self._graph = graph
        self._senses = SenseWeights(graph)
        self._meant = lru_cache(maxsize=65536)(self._find_meant)
        self._above = lru_cache(maxsize=65536)(self._find_above)
        self._counted = lru_cache(maxsize=len(POS))(graph.counted)
        self._meaning = lru_cache(maxsize=65536)(self._find_meaning)

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return _cached, (self._path,)

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether WordNet has the lemma with that part of speech."""
        return bool(self._graph.senses(self._graph.number(lemma), pos))

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> list[str]:
        """Return the lemmas of the first ``senses`` relevant senses, in WordNet's order.

        Only lemmas that usually have the sense (`SenseWeights.usually_means`): "icon" may mean any picture, but rarely
        does.
        """
        word = self._graph.number(lemma)
        synsets = self._senses.counting(word, pos)[:senses]
        found = ((member, synset) for synset in synsets for member in self._graph.members(synset))
        return self._graph.words(
            member for member, synset in found if member != word and self._senses.usually_means(member, pos, synset)
        )

    def antonyms(self, lemma: str, pos: str) -> list[str]:
        """Return the direct antonyms; a symmetric relation."""
        word = self._graph.number(lemma)
        means = self._senses.means
        return self._graph.words(
            other
            for sense, other, other_sense in self._graph.antonyms(word)
            # At least one must usually have the opposed sense: "bear" and "bull" are opposites only on the stock exchange.
            if means(word, pos, sense, COUNTING_SHARE) or means(other, pos, other_sense, COUNTING_SHARE)
        )

    def hypernyms(self, lemma: str, pos: str) -> set[str]:
        """Return all hypernyms of the relevant senses, up to the root, with their synonyms."""
        above = self._synsets(lemma, pos, "up")
        return set(self._graph.words(member for synset in above for member in self._graph.members(synset)))

    def hyponyms(self, lemma: str, pos: str) -> set[str]:
        """Return all hyponyms of the relevant senses: words that mean one of them (a "toy" is seldom a dog)."""
        return {word for synset in self._synsets(lemma, pos, "down") for word in self._meaning(synset, pos)}

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether a relevant sense of ``lemma`` is, or is below, a relevant sense of ``kind``."""
        kinds = self._meant(kind, pos)
        return any(not self._above(start).isdisjoint(kinds) for start in self._meant(lemma, pos))

    def related(self, a: str, b: str, pos: str) -> bool:
        """Return whether the two are the same word, synonyms, or one is a hypernym of the other."""
        return a == b or self.is_a(a, b, pos) or self.is_a(b, a, pos)

    def hypernym_path(self, lemma: str, pos: str) -> list[str]:
        """Return the lemmas of the main sense and of all senses above it, nearest first."""
        main = self._senses.main(self._graph.number(lemma), pos)
        above = self._graph.walk(main, "up") if main >= 0 else ()
        return self._graph.words(member for synset in above for member in self._graph.members(synset))

    def sense_closure(self, lemma: str, pos: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the relevant senses of a lemma as numbers, and those with all senses above them."""
        senses = self._meant(lemma, pos)
        return frozenset(senses), frozenset[int]().union(*map(self._above, senses))

    def count(self, lemma: str, pos: str) -> int:
        """Return the count of the lemma in WordNet's sense-tagged texts; 0 for most words."""
        return self._counted(pos).get(lemma, 0) if pos in POS else 0

    def _find_meant(self, lemma: str, pos: str) -> tuple[int, ...]:
        return tuple(self._senses.counting(self._graph.number(lemma), pos))

    def _find_above(self, synset: int) -> frozenset[int]:
        """Return a synset and all synsets above it."""
        return frozenset(self._graph.walk(synset, "up"))

    def _find_meaning(self, synset: int, pos: str) -> tuple[str, ...]:
        """Return the words that mean a synset."""
        means, spelling = self._senses.means, self._graph.spelling
        return tuple([spelling(each) for each in self._graph.members(synset) if means(each, pos, synset)])

    def _synsets(self, lemma: str, pos: str, relation: str) -> set[int]:
        return {
            synset for start in self._meant(lemma, pos) for synset in islice(self._graph.walk(start, relation), 1, None)
        }


@lru_cache(maxsize=2)
def _cached(path: Path) -> WordNet:
    return WordNet(read_graph(path), path)


def load_wordnet() -> WordNet:
    """Load the WordNet of this environment; cached.

    Raises:
        MissingResourceError: it is not set up.
        StorageError: its table is corrupt.
    """
    path = table_path()
    if not path.is_file():
        raise MissingResourceError(f"WordNet is not set up ({path} does not exist): run `pairwright doctor --fix`.")
    return _cached(path)
