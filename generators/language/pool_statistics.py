"""Word and co-occurrence statistics of a caption pool.

Rule-based generators use them to choose words that the pool uses and that fit the caption. *Counts* are gathered in
parts and merged (`count_captions`, `PoolCounts.merged`); *statistics* are the pruned and immutable result
(`PoolCounts.frozen`), with a digest for manifests and cache keys.

- A *word* is a lemma. Frequencies are document frequencies: a caption counts once, however often it has "dog".
- *Co-occurrence* counts captions that contain both of two content words (nouns, verbs, adjectives).
- *Runs* are two adjacent word forms in lower case; the ends of a caption count as a form.
- *Adjacency* counts ordered pairs: adjective and its noun, verb or noun and its preposition, preposition (of one or
  several words, `prepositional_links.COMPLEX_PREPOSITIONS`) and the noun that it governs, verb and object, subject and
  verb (also with "is" or "who" between).
- *Links* count (noun or verb, preposition, noun) triples (`prepositional_links`).

Memory is bounded: statistics keep the 20,000 most frequent content words, pairs with a count of at least two, and the
100,000 most frequent lemmas, forms and links. While merging, pairs, runs and links with a count of one are dropped
whenever there are more than two million; below that (some 500,000 captions) the result does not depend on the order and
size of the parts.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations_with_replacement, pairwise, product, repeat
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.prepositional_links import (
    LAST_WORDS_OF_PREPOSITIONS,
    PrepositionalLink,
    find_links,
    head_nouns,
    preposition_ending_at,
)
from pairwright.generators.language.tokens import Token

CONTENT: Final = frozenset(("NOUN", "PROPN", "VERB", "ADJ"))
VOCABULARY, MOST_TYPES, LEAST_PAIR = 20_000, 100_000, 2
_MOST_PAIRS = 2_000_000
_ROWS_AT_ONCE = 10_000  # of a saved file, in memory
_TYPES: Final = {"kind": "string", "a": "string", "b": "string", "count": "int64"}  # of the columns of a saved file
_ACTS: Final = frozenset(("VBG", "VBZ", "VBP", "VBD", "VB"))
_SMOOTHING = 0.5  # added to each pair's count, so that the PMI of unseen pairs is finite

_NONE: Final[dict[str, int]] = {}
Pair = tuple[str, str]
_Key = TypeVar("_Key", str, Pair, PrepositionalLink)
_Group = TypeVar("_Group", str, Pair)


@dataclass(slots=True)
class PoolCounts:
    """Exact counts of some captions."""

    captions: int = 0
    lemmas: Counter[Pair] = field(default_factory=Counter)  # (lemma, universal tag)
    forms: Counter[str] = field(default_factory=Counter)  # as written, in lower case
    pairs: Counter[Pair] = field(default_factory=Counter)  # in alphabetical order; (a, a) counts a itself
    adjacent: Counter[Pair] = field(default_factory=Counter)  # in order of occurrence
    runs: Counter[Pair] = field(default_factory=Counter)  # adjacent forms; "" at both ends
    links: Counter[PrepositionalLink] = field(default_factory=Counter)  # (noun or verb, preposition, noun)

    def merged(self, other: "PoolCounts") -> "PoolCounts":
        """Add the counts of ``other`` in place and return self."""
        self.captions += other.captions
        for name in ("lemmas", "forms", "pairs", "adjacent", "runs", "links"):
            getattr(self, name).update(getattr(other, name))
        if len(self.pairs) > _MOST_PAIRS:
            self.pairs = Counter(
                {pair: count for pair, count in self.pairs.items() if count > 1 or len(set(pair)) == 1}
            )
        if len(self.runs) > _MOST_PAIRS:
            self.runs = Counter({run: count for run, count in self.runs.items() if count > 1})
        if len(self.links) > _MOST_PAIRS:
            self.links = Counter({link: count for link, count in self.links.items() if count > 1})
        return self

    def exact(self) -> "PoolStatistics":
        """Return unpruned statistics, in which a part is saved until it is merged."""
        return PoolStatistics(self.captions, self.lemmas, self.forms, self.pairs, self.adjacent, self.runs, self.links)

    @classmethod
    def of(cls, part: "PoolStatistics") -> "PoolCounts":
        """Return the counts from statistics made by `exact`."""
        return cls(
            part.captions,
            Counter(part.lemmas),
            Counter(part.forms),
            Counter(part.pairs),
            Counter(part.adjacent),
            Counter(part.runs),
            Counter(part.links),
        )

    def frozen(self) -> "PoolStatistics":
        """Return the pruned, immutable statistics."""
        words = {a: count for (a, b), count in self.pairs.items() if a == b}
        kept = dict(_top(words, VOCABULARY))
        often = ((pair, count) for pair, count in self.pairs.items() if count >= LEAST_PAIR or pair[0] == pair[1])
        return PoolStatistics(
            captions=self.captions,
            lemmas=dict(_top(self.lemmas, MOST_TYPES)),
            forms=dict(_top(self.forms, MOST_TYPES)),
            pairs=dict(sorted((pair, count) for pair, count in often if pair[0] in kept and pair[1] in kept)),
            adjacent=dict(sorted(item for item in self.adjacent.items() if item[1] >= LEAST_PAIR)),
            runs=dict(sorted(item for item in self.runs.items() if item[1] >= LEAST_PAIR)),
            links=dict(_top(self.links, MOST_TYPES)),
        )


def _top(counts: dict[_Key, int], most: int) -> list[tuple[_Key, int]]:
    return sorted(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])


def _by_first(counts: dict[Pair, int]) -> dict[str, dict[str, int]]:
    """Return counts of pairs by their first word; nested dicts are faster than one large dict of pairs."""
    return _grouped((a, b, count) for (a, b), count in counts.items())


def _grouped(counts: Iterable[tuple[_Group, str, int]]) -> dict[_Group, dict[str, int]]:
    table: dict[_Group, dict[str, int]] = {}
    for group, word, count in counts:
        table.setdefault(group, {})[word] = count
    return table


def _adjacent(tokens: Sequence[Token]) -> Iterable[Pair]:
    nouns = head_nouns(tokens)
    for at, token in enumerate(tokens):
        if token.pos == "ADJ" or token.tag in {"IN", "TO"}:
            noun = nouns[at + 1]
            if noun:
                yield token.lemma, noun
                if token.lemma in LAST_WORDS_OF_PREPOSITIONS:
                    yield preposition_ending_at(tokens, at)[1], noun
        elif token.pos in {"VERB", "NOUN"}:
            following = _governed_word(tokens, nouns, at)
            if following:
                yield token.lemma, following


def _governed_word(tokens: Sequence[Token], nouns: Sequence[str], at: int) -> str:
    """Return the preposition right after a verb or noun; else a verb's object, of `head_nouns`, or a noun's verb."""
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if following is not None and following.tag in {"IN", "RP"}:
        return following.lemma
    if token.tag in _ACTS:
        return nouns[at + 1]
    return _verb_after(tokens, at + 1) if token.pos == "NOUN" else ""


def _verb_after(tokens: Sequence[Token], start: int) -> str:
    """Return the verb at ``start``, after auxiliaries and relative pronouns; empty if there is none."""
    for token in tokens[start : start + 3]:
        if token.pos == "VERB":
            return token.lemma
        if token.pos != "AUX" and token.tag not in {"WDT", "WP"}:
            break
    return ""


def count_captions(captions: Iterable[Sequence[Token]]) -> PoolCounts:
    """Return the counts of a part of the pool.

    Args:
        captions: tokens of each caption.
    """
    captions = list(captions)
    counts = count_words(captions)
    forms = ([token.text.lower() for token in tokens] for tokens in captions)
    counts.runs.update(chain.from_iterable(set(pairwise(("", *words, ""))) for words in forms))
    counts.adjacent.update(chain.from_iterable(set(_adjacent(tokens)) for tokens in captions))
    counts.links.update(chain.from_iterable(set(find_links(tokens)) for tokens in captions))
    return counts


def count_words(captions: Iterable[Sequence[Token]]) -> PoolCounts:
    """Return the counts of a part of the pool that checks of written texts need: no runs, adjacent words or links."""
    captions = list(captions)
    words = [{(token.lemma, token.pos) for token in tokens} for tokens in captions]
    content = (sorted({lemma for lemma, pos in each if pos in CONTENT}) for each in words)
    return PoolCounts(
        captions=len(captions),
        lemmas=Counter(chain.from_iterable(words)),
        forms=Counter(chain.from_iterable({token.text.lower() for token in tokens} for tokens in captions)),
        pairs=Counter(chain.from_iterable(combinations_with_replacement(each, 2) for each in content)),
    )


@dataclass(frozen=True)
class PoolStatistics:
    """Immutable statistics of a pool; terms are defined in the module docstring.

    Attributes:
        captions: number of captions.
        lemmas: document frequency of (lemma, universal tag).
        forms: document frequency of lower-case word forms.
        pairs: document frequency of two content words in alphabetical order; (a, a) counts a itself.
        adjacent: document frequency of adjacent words (adjacency).
        runs: document frequency of runs; "" at the ends of a caption.
        links: document frequency of links.
    """

    captions: int
    lemmas: dict[Pair, int]
    forms: dict[str, int]
    pairs: dict[Pair, int]
    adjacent: dict[Pair, int]
    runs: dict[Pair, int]
    links: dict[PrepositionalLink, int]

    def __hash__(self) -> int:
        """Make statistics a key of caches; dicts have no hash."""
        return hash(self.captions)

    def frequency(self, lemma: str, pos: str) -> int:
        """Return the number of captions with the lemma and that universal tag."""
        return self.lemmas.get((lemma, pos), 0)

    def known_nouns(self, nouns: Collection[str]) -> float:
        """Return the share of the nouns of all captions, by number of captions, that are among some lemmas."""
        counts = {lemma: count for (lemma, pos), count in self.lemmas.items() if pos == "NOUN"}
        return sum(map(counts.get, counts.keys() & set(nouns), repeat(0))) / max(sum(counts.values()), 1)

    def form_frequency(self, form: str) -> int:
        """Return the number of captions with the word form, in any letter case."""
        return self.forms.get(form.lower(), 0)

    def cooccurrence(self, a: str, b: str) -> int:
        """Return the number of captions with both content words; for a word with itself, with that word."""
        return self._cooccurring.get(a, _NONE).get(b, 0)

    def adjacency(self, first: str, second: str) -> int:
        """Return the number of captions in which ``first`` is adjacent to ``second`` (see the module)."""
        return self._following.get(first, _NONE).get(second, 0)

    def bigram(self, first: str, second: str) -> int:
        """Return the number of captions with the form ``first`` right before ``second``; "" is an end of a caption."""
        return self._running.get(first, _NONE).get(second, 0)

    def linked(self, left: str, preposition: str, noun: str) -> int:
        """Return the number of captions with the link; "" matches anything."""
        return self._behind.get((left, preposition), _NONE).get(noun, 0)

    def plausibility(self, word: str, context: Iterable[str]) -> float:
        """Return the mean normalised pointwise mutual information of a content word with others, in [-1, 1].

        Unknown context words are skipped; 0 if none is left, or for an unknown word. Positive values mean that the
        words co-occur more often than independent words. Source: Bouma 2009, with 0.5 added to each pair's count.
        """
        own, alone = self._alone.get(word), self._alone
        if own is None:
            return 0.0
        beside, whole = self._cooccurring.get(word, _NONE), math.log(self.captions + 1)
        known, total = 0, 0.0
        for other in context:
            if other not in alone or other == word:
                continue
            known += 1
            chance = math.log(beside.get(other, 0) + _SMOOTHING) - whole
            total += max(-1.0, min(1.0, (own + alone[other] - chance) / chance))
        return total / known if known else 0.0

    def cooccurrences(self, word: str, others: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return `cooccurrence` of a word with each of others."""
        return np.array([*map(self._cooccurring.get(word, _NONE).get, others, repeat(0))], np.int64)

    def plausibilities(self, word: str, others: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return `plausibility` of each of some words with one other."""
        own, alone = self._alone.get(word, math.nan), [*map(self._alone.get, others, repeat(math.nan))]
        both = np.log(self.cooccurrences(word, others) + _SMOOTHING) - math.log(self.captions + 1)
        fits: npt.NDArray[np.float64] = np.clip((own + np.array(alone) - both) / both, -1.0, 1.0)
        fits[np.isnan(fits) | np.fromiter((other == word for other in others), bool, len(others))] = 0.0
        return fits

    @cached_property
    def _alone(self) -> dict[str, float]:
        """Log probability of each content word."""
        return {a: math.log(count / self.captions) for (a, b), count in self.pairs.items() if a == b}

    @cached_property
    def _cooccurring(self) -> dict[str, dict[str, int]]:
        """Counts of pairs by either word; nested dicts are faster than one large dict of pairs."""
        table: dict[str, dict[str, int]] = {}
        for (a, b), count in self.pairs.items():
            table.setdefault(a, {})[b] = count
            table.setdefault(b, {})[a] = count
        return table

    @cached_property
    def _following(self) -> dict[str, dict[str, int]]:
        return _by_first(self.adjacent)

    @cached_property
    def _running(self) -> dict[str, dict[str, int]]:
        return _by_first(self.runs)

    @cached_property
    def _behind(self) -> dict[Pair, dict[str, int]]:
        """Counts of links by what governs the preposition and the preposition, with their sums over any parts ("")."""
        table: dict[Pair, dict[str, int]] = {}
        for (left, preposition, noun), count in self.links.items():
            for governor, by, thing in product((left, ""), (preposition, ""), (noun, "")):
                nouns = table.setdefault((governor, by), {})
                nouns[thing] = nouns.get(thing, 0) + count
        return table

    @cached_property
    def digest(self) -> str:
        """Hash of all counts, 32 hex digits; equal for equal statistics."""
        hasher = hashlib.blake2b(digest_size=16)
        for row in zip(*self._columns(), strict=True):
            hasher.update("\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") + b"\x1e")
        return hasher.hexdigest()

    def _columns(self) -> tuple[list[str], list[str], list[str], list[int]]:
        """Return the columns kind, a, b and count of the stored table, each table of counts in order."""
        kinds, firsts, seconds, numbers = ["captions"], [""], [""], [self.captions]

        def append(kind: str, counts: Mapping[_Key, int], split: Callable[[Iterable[_Key]], Iterable[Pair]]) -> None:
            keys = sorted(counts)
            kinds.extend([kind] * len(keys))
            for first, second in split(keys):
                firsts.append(first)
                seconds.append(second)
            numbers.extend(map(counts.__getitem__, keys))

        append("lemma", self.lemmas, iter)
        append("form", self.forms, lambda forms: zip(forms, repeat("")))
        append("pair", self.pairs, iter)
        append("adjacent", self.adjacent, iter)
        append("run", self.runs, iter)
        append("link", self.links, lambda links: ((left, f"{by} {noun}") for left, by, noun in links))
        return kinds, firsts, seconds, numbers

    def save(self, path: Path) -> None:
        """Write the statistics atomically to a Parquet file with the columns kind, a, b, count."""
        import polars as pl  # slow to import, and not needed for counting

        types = (pl.String, pl.String, pl.String, pl.Int64)
        schema = dict(zip(_TYPES, types, strict=True))
        frame = pl.DataFrame(dict(zip(_TYPES, self._columns(), strict=True)), schema=schema)
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary, compression="zstd", statistics=False)

    @classmethod
    def load(cls, path: Path) -> "PoolStatistics":
        """Read the statistics that `save` wrote.

        Raises:
            StorageError: the file is missing, corrupt or of another format.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        words: dict[str, str] = {}  # one object a word
        counts = defaultdict[str, dict[Pair, int]](dict)
        try:
            with pq.ParquetFile(path) as stored:
                types = {field.name: str(field.type).removeprefix("large_") for field in stored.schema_arrow}
                if types != _TYPES or not stored.metadata.num_rows:
                    raise StorageError(f"{path}: not pool statistics. A build writes them to statistics/words.parquet.")
                # On one thread and not by polars: processes that have read the bundled statistics are forked.
                for batch in stored.iter_batches(_ROWS_AT_ONCE, use_threads=False):
                    for kind, a, b, number in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        counts[kind][words.setdefault(a, a), words.setdefault(b, b)] = number
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                f"{path}: not pool statistics ({error}). A build writes them to statistics/words.parquet."
            ) from error
        return cls(
            captions=counts["captions"]["", ""],
            lemmas=counts["lemma"],
            forms={form: number for (form, _), number in counts["form"].items()},
            pairs=counts["pair"],
            adjacent=counts["adjacent"],
            runs=counts["run"],
            links={(left, *split_place(place)): number for (left, place), number in counts["link"].items()},
        )


def split_place(place: str) -> tuple[str, str]:
    """Return the preposition and the noun of a saved place ("in front of house")."""
    preposition, _, noun = place.rpartition(" ")
    return preposition, noun
