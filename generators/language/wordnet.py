"""WordNet as a neighbour table: synonyms, antonyms, co-hyponyms and what-is-a-what, without loading NLTK.

The table is compiled once from WordNet 3.0 at set-up (`wordnet_setup.py`) and holds the bare graph: lemmas,
their senses with frequency counts, hypernym, similarity and antonym edges. It loads in milliseconds; lemmas
are found by bisection, so no dictionary of 147,000 strings is built.

- A lemma is in lower case with spaces ("fire hydrant"); pos is NOUN, VERB, ADJ or ADV.
- Senses are told apart by frequency, since a caption does not say which is meant. The *main* sense of a noun
  is its most frequent one in a visible domain (animal, artifact, food, person, ...), unless its first sense has
  four times the count, or the one that `_CAPTION_SENSES` names; of other words the most frequent. A sense
  *counts* when it is the main one or has a tenth of the lemma's count; a lemma without any count has its first
  two. A word is given only for a sense that is its own main one or has a quarter of its count: hence "circle"
  never gives "lap", nor "ride" its rare synonym "sit".
- A *co-hyponym* shares a hypernym within ``levels`` steps up from both. They come ordered by steps, then by
  frequency, then by spelling, so the order is the same everywhere. Left out are broad classes a step nearer to
  the shared hypernym ("vehicle" for "bus") and, where the word or the candidate is a general word for people
  ("man", "child"), everything but antonyms: a man may well be a host, a professional and a friend.
"""

import importlib.util
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

from pairwright.datasets.errors import MissingResource, StorageError

POS: Final = ("NOUN", "VERB", "ADJ", "ADV")
TABLE_VERSION: Final = 1
_DOMAIN_NAMES: Final = """
    adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
    noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
    noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
    noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption
    verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative
    verb.weather adj.ppl"""
LEXICAL_DOMAINS: Final = tuple(_DOMAIN_NAMES.split())
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
# The rank (from 0) of the sense that captions mean, where it is neither the first nor the most frequent visible one.
_CAPTION_SENSES: Final = {
    "bat": 4,  # of baseball
    "bike": 1,  # the bicycle
    "board": 2,
    "cake": 2,  # baked
    "case": 4,  # a container
    "court": 3,  # of tennis
    "glass": 1,  # to drink from
    "grill": 1,
    "lot": 1,
    "meter": 1,
    "mouse": 3,  # of a computer
    "mug": 3,
    "net": 4,  # of a game
    "plate": 3,  # a dish
    "ring": 2,
    "seat": 2,
    "sign": 3,
    "star": 4,  # the shape
    "tank": 1,
    "toilet": 1,  # the fixture
    "yard": 1,  # of a house
}
_PEOPLE: Final = """
    person people individual man woman boy girl child kid baby infant toddler adult lady gentleman guy gal fellow male
    female teenager youth youngster someone somebody human mother father parent son daughter friend"""
_GENERAL_PEOPLE: Final = frozenset(_PEOPLE.split())
_ATTRIBUTE: Final = LEXICAL_DOMAINS.index("noun.attribute")
_PLANT: Final = LEXICAL_DOMAINS.index("noun.plant")
_FOOD: Final = LEXICAL_DOMAINS.index("noun.food")
_BROAD: Final = 40  # hyponyms
_OUTWEIGHS = 4  # a sense outside the visible domains is the main one from this many times the count on
_SHARE, _NEAR_MAIN = 0.10, 0.25  # of the lemma's count: a sense that counts; a sense good enough for a candidate
_UNCOUNTED_SENSES = 2

Arrays = dict[str, NDArray[np.unsignedinteger[Any]]]


def table_path(prefix: Path | None = None) -> Path:
    """Return where the table is: ``PAIRWRIGHT_WORDNET``, else under ``prefix`` (default: this environment)."""
    named = os.environ.get("PAIRWRIGHT_WORDNET", "")
    if named and prefix is None:
        return Path(named)
    return (prefix or Path(sys.prefix)) / "share" / "pairwright" / f"wordnet-v{TABLE_VERSION}.npz"


def wordnet_status() -> tuple[bool, str]:
    """Return whether the table is set up, and one line about it; loads nothing."""
    path = table_path()
    if path.is_file():
        return True, f"WordNet 3.0 table, {path.stat().st_size / 1e6:.1f} MB, {path}"
    reader = "NLTK is there to read it" if importlib.util.find_spec("nltk") else "NLTK is not installed"
    return False, f"WordNet is not set up ({reader}): run `pairwright doctor --mend`"


class WordNet:
    """The graph of words; see the module's docstring for senses and order. Unknown words have no neighbours."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self._path = path
        self._blob = arrays["lemma_bytes"].tobytes()
        self._lemma_at = arrays["lemma_at"].tolist()
        self._sense_at, self._sense_synset, self._sense_count = _views(
            arrays, "sense_at", "sense_synset", "sense_count"
        )
        self._member_at, self._member = _views(arrays, "member_at", "member")
        (self._domain,) = _views(arrays, "domain")
        self._edges = {name: _views(arrays, f"{name}_at", name) for name in ("up", "down", "similar")}
        self._antonym_at, self._antonym_from, self._antonym_to, self._antonym_sense = _views(
            arrays, "antonym_at", "antonym_from", "antonym_to", "antonym_sense"
        )
        self._colour = self._id("color")
        self._broad = lru_cache(maxsize=65536)(self._is_broad)
        self._co_hyponyms = lru_cache(maxsize=4096)(self._find_co_hyponyms)
        self._main_cached = lru_cache(maxsize=65536)(self._main)

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return _cached, (self._path,)

    def has(self, lemma: str, pos: str) -> bool:
        """Return whether WordNet has the lemma as that part of speech."""
        return bool(self._senses(self._id(lemma), pos))

    def synonyms(self, lemma: str, pos: str, senses: int = 1) -> list[str]:
        """Return the lemmas that share one of the first ``senses`` counting senses, in WordNet's order."""
        word = self._id(lemma)
        synsets = self._counting(word, pos)[:senses]
        found = ((member, synset) for synset in synsets for member in self._members(synset))
        return self._words(member for member, synset in found if member != word and self._means(member, pos, synset))

    def antonyms(self, lemma: str, pos: str) -> list[str]:
        """Return the direct antonyms; the relation is symmetric."""
        word = self._id(lemma)
        if word < 0:
            return []
        rows = range(self._antonym_at[word], self._antonym_at[word + 1])
        return self._words(self._antonym_to[row] for row in rows if self._opposed(word, row, pos))

    def _opposed(self, word: int, row: int, pos: str) -> bool:
        # One of the words must mean what is opposed: "bear" and "bull" are opposites but on the stock exchange.
        to, sense = self._antonym_to[row], self._antonym_sense[row]
        return self._means(word, pos, self._antonym_from[row], _SHARE) or self._means(to, pos, sense, _SHARE)

    def co_hyponyms(self, lemma: str, pos: str, levels: int = 2) -> list[str]:
        """Return words of the same kind that do not mean the same, nearest first.

        Nouns and verbs share a hypernym within ``levels`` steps. Adjectives have instead the satellites of the
        same head, and, when the word is also a noun (colours), the noun's co-hyponyms that are adjectives too.
        Never a synonym, hypernym or hyponym of the word.
        """
        return list(self._co_hyponyms(lemma, pos, levels))

    def hypernyms(self, lemma: str, pos: str) -> set[str]:
        """Return every lemma above the counting senses, up to the root; their synonyms included."""
        return self._closure(lemma, pos, "up")

    def hyponyms(self, lemma: str, pos: str) -> set[str]:
        """Return every lemma below the counting senses; their synonyms included."""
        return self._closure(lemma, pos, "down")

    def is_a(self, lemma: str, kind: str, pos: str) -> bool:
        """Return whether a counting sense of ``lemma`` lies under (or is) a counting sense of ``kind``."""
        kinds = set(self._counting(self._id(kind), pos))
        starts = self._counting(self._id(lemma), pos)
        return any(synset in kinds for start in starts for synset, _ in self._walk(start, "up"))

    def related(self, a: str, b: str, pos: str) -> bool:
        """Return whether the two are the same word, synonyms, or one is a kind of the other."""
        return a == b or self.is_a(a, b, pos) or self.is_a(b, a, pos)

    def count(self, lemma: str, pos: str) -> int:
        """Return how often the lemma was tagged in WordNet's sense-tagged texts; 0 for most words."""
        return sum(self._counts(self._id(lemma), pos))

    # Lemmas

    def _id(self, lemma: str) -> int:
        wanted = lemma.encode("utf-8", "surrogatepass")
        at = bisect_left(range(len(self._lemma_at) - 1), wanted, key=self._bytes)
        return at if at < len(self._lemma_at) - 1 and self._bytes(at) == wanted else -1

    def _bytes(self, word: int) -> bytes:
        return self._blob[self._lemma_at[word] : self._lemma_at[word + 1]]

    def _words(self, words: Iterable[int]) -> list[str]:
        return [self._bytes(word).decode() for word in dict.fromkeys(words)]

    # Senses

    def _slot(self, word: int, pos: str) -> tuple[int, int]:
        if word < 0:
            return 0, 0
        slot = word * len(POS) + POS.index(pos)
        return self._sense_at[slot], self._sense_at[slot + 1]

    def _senses(self, word: int, pos: str) -> list[int]:
        start, end = self._slot(word, pos)
        return self._sense_synset[start:end].tolist()

    def _counts(self, word: int, pos: str) -> list[int]:
        start, end = self._slot(word, pos)
        return self._sense_count[start:end].tolist()

    def _counting(self, word: int, pos: str) -> list[int]:
        """Return the senses that count, the main one first."""
        main, shares = self._main_cached(word, pos)
        others = [synset for synset, share in shares if share >= _SHARE and synset != main]
        return [main, *others] if main >= 0 else []

    def _main(self, word: int, pos: str) -> tuple[int, list[tuple[int, float]]]:
        """Return the main sense (-1: none) and each sense's share of the counts."""
        senses = self._senses(word, pos)
        counts = self._counts(word, pos)
        if not senses:
            return -1, []
        total = sum(counts)
        shares = [count / total if total else float(at < _UNCOUNTED_SENSES) for at, count in enumerate(counts)]
        best = self._main_noun(word, senses, counts) if pos == "NOUN" else 0
        return senses[best], list(zip(senses, shares, strict=True))

    def _main_noun(self, word: int, senses: list[int], counts: list[int]) -> int:
        named = _CAPTION_SENSES.get(self._bytes(word).decode())
        if named is not None and named < len(senses):
            return named
        visible = (at for at, synset in enumerate(senses) if self._domain[synset] in _VISIBLE)
        best = next((at for at in visible if at == 0 or counts[0] < _OUTWEIGHS * max(counts[at], 1)), 0)
        if self._domain[senses[best]] != _PLANT:
            return best
        eaten = (at for at, synset in enumerate(senses) if self._domain[synset] == _FOOD)  # a banana, not its tree
        return next((at for at in eaten if counts[best] < _OUTWEIGHS * max(counts[at], 1)), best)

    def _means(self, word: int, pos: str, synset: int, least: float = _NEAR_MAIN) -> bool:
        main, shares = self._main_cached(word, pos)
        return synset == main or dict(shares).get(synset, 0.0) >= least

    def _members(self, synset: int) -> list[int]:
        return self._member[self._member_at[synset] : self._member_at[synset + 1]].tolist()

    # The graph

    def _next(self, synset: int, relation: str) -> list[int]:
        starts, targets = self._edges[relation]
        return targets[starts[synset] : starts[synset + 1]].tolist()

    def _walk(self, start: int, relation: str, steps: int = sys.maxsize) -> Iterator[tuple[int, int]]:
        """Yield each synset within ``steps`` with its distance, nearest first, ``start`` itself at 0."""
        seen, layer, distance = {start}, [start], 0
        while layer and distance <= steps:
            yield from ((synset, distance) for synset in layer)
            reached = dict.fromkeys(target for synset in layer for target in self._next(synset, relation))
            layer = [synset for synset in reached if synset not in seen]
            seen.update(layer)
            distance += 1

    def _closure(self, lemma: str, pos: str, relation: str) -> set[str]:
        starts = self._counting(self._id(lemma), pos)
        synsets = {synset for start in starts for synset, steps in self._walk(start, relation) if steps}
        return set(self._words(member for synset in synsets for member in self._members(synset)))

    def _find_co_hyponyms(self, lemma: str, pos: str, levels: int) -> tuple[str, ...]:
        word = self._id(lemma)
        main, _ = self._main_cached(word, pos)
        if main < 0:
            return ()
        if pos == "NOUN" and lemma in _GENERAL_PEOPLE:
            return tuple(self.antonyms(lemma, pos))
        near = self._near_adjectives(word, main) if pos == "ADJ" else self._near(main, levels)
        steps: dict[int, int] = {}
        for synset, distance in near:
            for member in self._members(synset):
                if pos == "ADJ" or self._means(member, pos, synset):
                    steps.setdefault(member, distance)
        names = self._ranked(self._unrelated(steps, word, pos), pos)
        return tuple(name for name in names if name != lemma and not (pos == "NOUN" and name in _GENERAL_PEOPLE))

    def _near(self, start: int, levels: int) -> list[tuple[int, int]]:
        """Return the synsets that share a hypernym with ``start``, with their steps up and down, nearest first."""
        nearest: dict[int, int] = {}
        for ancestor, up in self._walk(start, "up", levels):
            for synset, down in self._walk(ancestor, "down", levels) if up else ():
                if not down or up + down >= nearest.get(synset, sys.maxsize):
                    continue
                if down >= up or not self._broad(synset):
                    nearest[synset] = up + down
        return sorted(nearest.items(), key=lambda item: (item[1], item[0]))

    def _is_broad(self, synset: int) -> bool:
        return sum(1 for _ in self._walk(synset, "down")) > _BROAD

    def _near_adjectives(self, word: int, start: int) -> list[tuple[int, int]]:
        """Return the satellites that share a head with ``start``; of a colour, the other colours."""
        colours = [synset for synset in self._senses(word, "NOUN") if self._is_colour(synset)]
        if colours:
            return [(other, steps) for other, steps in self._near(colours[0], 2) if self._is_colour(other)]
        heads = self._next(start, "similar")
        return [(other, 2) for head in heads for other in self._next(head, "similar") if other != start]

    def _is_colour(self, synset: int) -> bool:
        above = (member for up, _ in self._walk(synset, "up", 3) for member in self._members(up))
        return self._domain[synset] == _ATTRIBUTE and self._colour in above

    def _unrelated(self, steps: dict[int, int], word: int, pos: str) -> dict[int, int]:
        own = set(self._senses(word, pos))
        meant = self._counting(word, pos)
        kin = {synset for start in meant for way in ("up", "down") for synset, _ in self._walk(start, way)} | own
        return {
            member: at
            for member, at in steps.items()
            if (senses := self._senses(member, pos)) and kin.isdisjoint(senses)
        }

    def _ranked(self, steps: dict[int, int], pos: str) -> list[str]:
        def order(word: int) -> tuple[int, int, bytes]:
            return steps[word], -sum(self._counts(word, pos)), self._bytes(word)

        return self._words(sorted(steps, key=order))


def _views(arrays: Arrays, *names: str) -> tuple["memoryview[int]", ...]:
    # Indexing a memoryview gives a Python int and is several times faster than indexing an array.
    return tuple(arrays[name].data for name in names)


def read_table(path: Path) -> WordNet:
    """Return the WordNet of a table file.

    Raises:
        StorageError: the file is torn or not a table of this version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if int(file["version"]) != TABLE_VERSION:
                raise StorageError(f"{path} is of version {int(file['version'])}: run `pairwright doctor --mend`.")
            return WordNet({name: file[name] for name in file.files if name != "version"}, path)
    except (ValueError, KeyError, EOFError, BadZipFile) as error:
        raise StorageError(f"{path} is not a whole WordNet table: run `pairwright doctor --mend`.") from error


@lru_cache(maxsize=2)
def _cached(path: Path) -> WordNet:
    return read_table(path)


def load_wordnet() -> WordNet:
    """Return the WordNet of this environment; later calls share it.

    Raises:
        MissingResource: it was not set up.
        StorageError: its table is torn.
    """
    path = table_path()
    if not path.is_file():
        raise MissingResource(f"WordNet is not set up ({path} is not there): run `pairwright doctor --mend`.")
    return _cached(path)
