"""WordNet relations without NLTK: synonyms, antonyms, co-hyponyms, hypernyms and hyponyms.

The table (`wordnet_table`) is compiled once from WordNet 3.0, at set-up (`wordnet_setup`).

- A lemma is in lower case with spaces ("fire hydrant"); pos is NOUN, VERB, ADJ or ADV.
- The sense of a word is chosen by frequency: `wordnet_senses`.
- A *co-hyponym* shares a hypernym within ``levels`` steps up from both. Co-hyponyms are ordered by steps, then
  frequency, then spelling, so the order is deterministic. Excluded are broad classes a step nearer to the shared
  hypernym ("vehicle" for "bus") and, if the word or the candidate is a general word for people ("man", "child"),
  everything but antonyms: a man may also be a host, a professional and a friend.
"""

import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from pairwright.datasets.errors import MissingResourceError
from pairwright.generators.language.wordnet_senses import COUNTING_SHARE, SenseWeights
from pairwright.generators.language.wordnet_table import LEXICAL_DOMAINS, WordGraph, read_graph, table_path

_PEOPLE: Final = """
    person people individual man woman boy girl child kid baby infant toddler adult lady gentleman guy gal fellow male
    female teenager youth youngster someone somebody human mother father parent son daughter friend"""
_GENERAL_PEOPLE: Final = frozenset(_PEOPLE.split())
_ATTRIBUTE: Final = LEXICAL_DOMAINS.index("noun.attribute")
_BROAD: Final = 40  # hyponyms


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
        self._colour = graph.number("color")
        self._broad = lru_cache(maxsize=65536)(self._is_broad)
        self._co_hyponyms = lru_cache(maxsize=4096)(self._find_co_hyponyms)
        self._meant = lru_cache(maxsize=65536)(self._find_meant)
        self._above = lru_cache(maxsize=65536)(self._find_above)

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

    def co_hyponyms(
        self, lemma: str, pos: str, levels: int = 2, keep: Callable[[str], bool] | None = None
    ) -> list[str]:
        """Return the co-hyponyms of a lemma, nearest first; never a synonym, hypernym or hyponym.

        Nouns and verbs share a hypernym within ``levels`` steps. Adjectives share a head, and, if the word is also a
        noun (colours), their co-hyponyms are those of the noun that are adjectives, too.

        Args:
            lemma: the lemma.
            pos: its part of speech.
            levels: maximum number of steps up.
            keep: filter for candidates, applied early, since most of WordNet's nouns are in no caption; filtered
                results are not cached.
        """
        if keep is not None:
            return list(self._find_co_hyponyms(lemma, pos, levels, keep))
        return list(self._co_hyponyms(lemma, pos, levels))

    def hypernyms(self, lemma: str, pos: str) -> set[str]:
        """Return all hypernyms of the relevant senses, up to the root, with their synonyms."""
        above = self._synsets(lemma, pos, "up")
        return set(self._graph.words(member for synset in above for member in self._graph.members(synset)))

    def hyponyms(self, lemma: str, pos: str) -> set[str]:
        """Return all hyponyms of the relevant senses: words that mean one of them (a "toy" is seldom a dog)."""
        graph, means = self._graph, self._senses.means
        # Most words have one sense, which then is the synset: a person has ten thousand kinds.
        members = ((member, synset) for synset in self._synsets(lemma, pos, "down") for member in graph.members(synset))
        return set(
            graph.words(
                member for member, synset in members if graph.is_unambiguous(member, pos) or means(member, pos, synset)
            )
        )

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
        return self._graph.words(member for synset, _ in above for member in self._graph.members(synset))

    def sense_closure(self, lemma: str, pos: str) -> tuple[frozenset[int], frozenset[int]]:
        """Return the relevant senses of a lemma as numbers, and those with all senses above them."""
        senses = self._meant(lemma, pos)
        return frozenset(senses), frozenset[int]().union(*map(self._above, senses))

    def count(self, lemma: str, pos: str) -> int:
        """Return the count of the lemma in WordNet's sense-tagged texts; 0 for most words."""
        return sum(self._graph.counts(self._graph.number(lemma), pos))

    def _find_meant(self, lemma: str, pos: str) -> tuple[int, ...]:
        return tuple(self._senses.counting(self._graph.number(lemma), pos))

    def _find_above(self, synset: int) -> frozenset[int]:
        """Return a synset and all synsets above it."""
        return frozenset(above for above, _ in self._graph.walk(synset, "up"))

    def _synsets(self, lemma: str, pos: str, relation: str) -> set[int]:
        starts = self._senses.counting(self._graph.number(lemma), pos)
        return {synset for start in starts for synset, steps in self._graph.walk(start, relation) if steps}

    def _find_co_hyponyms(
        self, lemma: str, pos: str, levels: int, keep: Callable[[str], bool] | None = None
    ) -> tuple[str, ...]:
        word = self._graph.number(lemma)
        main = self._senses.main(word, pos)
        if main < 0:
            return ()
        if pos == "NOUN" and lemma in _GENERAL_PEOPLE:
            return tuple(self.antonyms(lemma, pos))
        near = self._near_adjectives(word, main) if pos == "ADJ" else self._near(main, levels)
        steps: dict[int, int] = {}
        for synset, distance in near:
            for member in self._graph.members(synset):
                if keep is not None and not keep(self._graph.spelling(member)):
                    continue
                if pos == "ADJ" or self._senses.means(member, pos, synset):
                    steps.setdefault(member, distance)
        names = self._ranked(self._unrelated(steps, word, pos), pos)
        return tuple(name for name in names if name != lemma and not (pos == "NOUN" and name in _GENERAL_PEOPLE))

    def _near(self, start: int, levels: int) -> list[tuple[int, int]]:
        """Return the synsets that share a hypernym with ``start``, with their number of steps, nearest first."""
        nearest: dict[int, int] = {}
        for ancestor, up in self._graph.walk(start, "up", levels):
            for synset, down in self._graph.walk(ancestor, "down", levels) if up else ():
                if not down or up + down >= nearest.get(synset, sys.maxsize):
                    continue
                if down >= up or not self._broad(synset):
                    nearest[synset] = up + down
        return sorted(nearest.items(), key=lambda item: (item[1], item[0]))

    def _is_broad(self, synset: int) -> bool:
        return next(islice(self._graph.walk(synset, "down"), _BROAD, None), None) is not None

    def _near_adjectives(self, word: int, start: int) -> list[tuple[int, int]]:
        """Return the satellites that share a head with ``start``; for a colour, the other colours."""
        colours = [synset for synset in self._graph.senses(word, "NOUN") if self._is_colour(synset)]
        if colours:
            return [(other, steps) for other, steps in self._near(colours[0], 2) if self._is_colour(other)]
        heads = self._graph.next(start, "similar")
        return [(other, 2) for head in heads for other in self._graph.next(head, "similar") if other != start]

    def _is_colour(self, synset: int) -> bool:
        above = (member for up, _ in self._graph.walk(synset, "up", 3) for member in self._graph.members(up))
        return self._graph.domain[synset] == _ATTRIBUTE and self._colour in above

    def _unrelated(self, steps: dict[int, int], word: int, pos: str) -> dict[int, int]:
        own = set(self._graph.senses(word, pos))
        meant = self._senses.counting(word, pos)
        kin = {synset for start in meant for way in ("up", "down") for synset, _ in self._graph.walk(start, way)} | own
        return {
            member: at
            for member, at in steps.items()
            if (senses := self._graph.senses(member, pos)) and kin.isdisjoint(senses)
        }

    def _ranked(self, steps: dict[int, int], pos: str) -> list[str]:
        def order(word: int) -> tuple[int, int, bytes]:
            return steps[word], -sum(self._graph.counts(word, pos)), self._graph.encoded(word)

        return self._graph.words(sorted(steps, key=order))


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
