"""WordNet's graph in flat arrays, and the reader of its file.

Lemmas and synsets are numbers. A lemma is in lower case with spaces; lemmas are sorted by their bytes, so that a lemma
is found by bisection, without a dict of 147,000 strings. Rows of unequal length (the senses of a lemma, the members of
a synset, its hypernyms ``up``, hyponyms ``down``, the antonyms of a lemma) are a flat array and an array of row starts.
The file is an uncompressed .npz of unsigned integers, about 10 MB, that loads in some 50 ms. It is written by
`wordnet_compiler`.
"""

import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError

POS: Final = ("NOUN", "VERB", "ADJ", "ADV")
TABLE_VERSION: Final = 1
_COLUMN: Final = {pos: at for at, pos in enumerate(POS)}
_DOMAIN_NAMES: Final = """
    adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
    noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
    noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
    noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption
    verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative
    verb.weather adj.ppl"""
LEXICAL_DOMAINS: Final = tuple(_DOMAIN_NAMES.split())

Arrays = dict[str, NDArray[np.unsignedinteger[Any]]]


def table_path(prefix: Path | None = None) -> Path:
    """Return the path of the table: ``PAIRWRIGHT_WORDNET``, or under ``prefix`` (default: this environment)."""
    named = os.environ.get("PAIRWRIGHT_WORDNET", "")
    if named and prefix is None:
        return Path(named)
    return (prefix or Path(sys.prefix)) / "share" / "pairwright" / f"wordnet-v{TABLE_VERSION}.npz"


class WordGraph:
    """Lemmas, senses and edges by number; an unknown lemma is -1 and has no senses."""

    def __init__(self, arrays: Arrays) -> None:
        self._blob = arrays["lemma_bytes"].tobytes()
        self._lemma_at = arrays["lemma_at"].tolist()
        self._sense_at, self._sense_synset, self._sense_count = _views(
            arrays, "sense_at", "sense_synset", "sense_count"
        )
        self._member_at, self._member = _views(arrays, "member_at", "member")
        self._edges = {name: _views(arrays, f"{name}_at", name) for name in ("up", "down")}
        self._antonym_at, *self._antonym = _views(arrays, "antonym_at", "antonym_from", "antonym_to", "antonym_sense")
        self.number = lru_cache(maxsize=20_000)(self._find_number)  # a search in 150,000 spellings
        (self.domain,) = _views(arrays, "domain")  # of each synset, an index in LEXICAL_DOMAINS

    def _find_number(self, lemma: str) -> int:
        """Return the number of a lemma; -1 if it is unknown."""
        wanted = lemma.encode("utf-8", "surrogatepass")
        at = bisect_left(range(len(self._lemma_at) - 1), wanted, key=self.encoded)
        return at if at < len(self._lemma_at) - 1 and self.encoded(at) == wanted else -1

    def encoded(self, word: int) -> bytes:
        """Return the spelling of a lemma, encoded."""
        return self._blob[self._lemma_at[word] : self._lemma_at[word + 1]]

    def spelling(self, word: int) -> str:
        """Return the spelling of a lemma."""
        return self.encoded(word).decode()

    def words(self, words: Iterable[int]) -> list[str]:
        """Return the spellings of lemmas, each once, in order."""
        return [self.encoded(word).decode() for word in dict.fromkeys(words)]

    def _slot(self, word: int, pos: str) -> tuple[int, int]:
        if word < 0 or pos not in _COLUMN:
            return 0, 0
        slot = word * len(POS) + _COLUMN[pos]
        return self._sense_at[slot], self._sense_at[slot + 1]

    def senses(self, word: int, pos: str) -> list[int]:
        """Return the synsets of a lemma, in WordNet's order."""
        start, end = self._slot(word, pos)
        return self._sense_synset[start:end].tolist()

    def only_sense(self, word: int, pos: str) -> int:
        """Return the synset of a lemma that has one alone, as most have; else -1."""
        start, end = self._slot(word, pos)
        return self._sense_synset[start] if end - start == 1 else -1

    def counts(self, word: int, pos: str) -> list[int]:
        """Return the count of each sense, in the order of `senses`."""
        start, end = self._slot(word, pos)
        return self._sense_count[start:end].tolist()

    def counted(self, pos: str) -> dict[str, int]:
        """Return the lemmas with a count above 0 as a part of speech, with the sum over their senses."""
        starts, at = np.asarray(self._sense_at), POS.index(pos)
        before = np.append(0, np.cumsum(np.asarray(self._sense_count), dtype=np.int64))  # counts before each sense
        counts = before[starts[at + 1 :: len(POS)]] - before[starts[at : -1 : len(POS)]]
        return {self.encoded(word).decode(): int(counts[word]) for word in np.flatnonzero(counts).tolist()}

    def members(self, synset: int) -> list[int]:
        """Return the lemmas of a synset."""
        return self._member[self._member_at[synset] : self._member_at[synset + 1]].tolist()

    def antonyms(self, word: int) -> list[tuple[int, int, int]]:
        """Return the direct antonyms of a lemma as (its synset, other lemma, synset of the other lemma)."""
        if word < 0:
            return []
        rows = slice(self._antonym_at[word], self._antonym_at[word + 1])
        source, target, sense = (column[rows].tolist() for column in self._antonym)
        return list(zip(source, target, sense, strict=True))

    def walk(self, start: int, relation: str) -> Iterator[int]:
        """Yield the synsets on all ways ``up`` or ``down``, nearest first, beginning with ``start``."""
        starts, targets = self._edges[relation]
        seen, layer = {start}, [start]
        while layer:
            yield from layer
            reached = []
            for synset in layer:
                for target in targets[starts[synset] : starts[synset + 1]]:
                    if target not in seen:
                        seen.add(target)
                        reached.append(target)
            layer = reached


def _views(arrays: Arrays, *names: str) -> tuple["memoryview[int]", ...]:
    # Indexing a memoryview returns a Python int and is several times faster than indexing an array.
    return tuple(arrays[name].data for name in names)


def read_graph(path: Path) -> WordGraph:
    """Read the graph of a table file.

    Raises:
        StorageError: the file is corrupt or of another version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if int(file["version"]) != TABLE_VERSION:
                raise StorageError(
                    f"{path}: version {int(file['version'])}, expected {TABLE_VERSION}: run `pairwright doctor --fix`."
                )
            return WordGraph({name: file[name] for name in file.files if name != "version"})
    except (ValueError, KeyError, EOFError, BadZipFile) as error:
        raise StorageError(f"{path}: corrupt WordNet table: run `pairwright doctor --fix`.") from error
