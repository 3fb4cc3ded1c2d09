"""Choice of word senses by frequency.

The *main* sense of a noun is its most frequent one in a visible domain (animal, artifact, food, person, ...), unless
its first sense has four times the count, or ``noun_senses.tsv`` gives the rank of another; for other words it is the
most frequent. A sense is *relevant* if it is the main one or has a tenth of the lemma's count; a lemma without counts
has its first two. A word *means* a sense that is its main one or has a quarter of its count: so "lap" is no synonym of
"circle", and "sit" none of "ride".
"""

from functools import lru_cache
from typing import Final

from pairwright.generators.language.wordnet_table import LEXICAL_DOMAINS, WordGraph
from pairwright.generators.lexicon.tables import read_rows

_VISIBLE = frozenset(
    LEXICAL_DOMAINS.index(f"noun.{name}")
    for name in (
        "Tops",
        "animal",
        "artifact",
        "body",
        "food",
        "location",
        "object",
        "person",
        "plant",
        "shape",
        "substance",
    )
)
# Rank (from 0) of the only sense in captions.
_CAPTION_SENSES: Final = {row["noun"]: int(row["rank"]) for row in read_rows("noun_senses")}
_PLANT: Final = LEXICAL_DOMAINS.index("noun.plant")
_FOOD: Final = LEXICAL_DOMAINS.index("noun.food")
_DOMINANCE_RATIO = 4  # count of the first sense to that of a visible one, from which the first is the main one
COUNTING_SHARE: Final = 0.10  # of the lemma's count, of a sense that counts
_NEAR_MAIN: Final = 0.25  # the same, of a sense that is good enough for a candidate
_UNCOUNTED_SENSES = 2


class SenseWeights:
    """Senses of words with their weights; synsets and words are numbers of the graph."""

    def __init__(self, graph: WordGraph) -> None:
        self._graph = graph
        self._weighed = lru_cache(maxsize=65536)(self._weigh)

    def main(self, word: int, pos: str) -> int:
        """Return the main sense; -1 if there is none."""
        return self._weighed(word, pos)[0]

    def counting(self, word: int, pos: str) -> list[int]:
        """Return the relevant senses, the main one first."""
        main, shares = self._weighed(word, pos)
        others = [synset for synset, share in shares if share >= COUNTING_SHARE and synset != main]
        return [main, *others] if main >= 0 else []

    def _weigh(self, word: int, pos: str) -> tuple[int, list[tuple[int, float]]]:
        """Return the main sense (-1: none) and each sense's share of the counts."""
        senses = self._graph.senses(word, pos)
        if len(senses) < 2:
            return (senses[0], [(senses[0], 1.0)]) if senses else (-1, [])
        counts = self._graph.counts(word, pos)
        total = sum(counts)
        shares = [count / total if total else float(at < _UNCOUNTED_SENSES) for at, count in enumerate(counts)]
        best = self._main_noun(word, senses, counts) if pos == "NOUN" else 0
        return senses[best], list(zip(senses, shares, strict=True))

    def _main_noun(self, word: int, senses: list[int], counts: list[int]) -> int:
        named = _CAPTION_SENSES.get(self._graph.encoded(word).decode())
        if named is not None and named < len(senses):
            return named
        visible = (at for at, synset in enumerate(senses) if self._graph.domain[synset] in _VISIBLE)
        best = next((at for at in visible if at == 0 or counts[0] < _DOMINANCE_RATIO * max(counts[at], 1)), 0)
        if self._graph.domain[senses[best]] != _PLANT:
            return best
        # a banana, not its tree
        eaten = (at for at, synset in enumerate(senses) if self._graph.domain[synset] == _FOOD)
        return next((at for at in eaten if counts[best] < _DOMINANCE_RATIO * max(counts[at], 1)), best)

    def means(self, word: int, pos: str, synset: int, least: float = _NEAR_MAIN) -> bool:
        """Return whether the word means the synset: its main sense, or one with that share of its count."""
        only = self._graph.only_sense(word, pos)  # without the cache: hyponyms of "person" are thousands of words
        if only >= 0:
            return synset == only
        main, shares = self._weighed(word, pos)
        return synset == main or any(share >= least for sense, share in shares if sense == synset)

    def usually_means(self, word: int, pos: str, synset: int) -> bool:
        """Return whether the word means the synset according to counts; without counts, only WordNet's first sense.

        A sense of `_CAPTION_SENSES` needs no counts.
        """
        counted = sum(self._graph.counts(word, pos)) > 0 or self._graph.encoded(word).decode() in _CAPTION_SENSES
        return self.means(word, pos, synset) and (counted or self._graph.senses(word, pos)[0] == synset)
