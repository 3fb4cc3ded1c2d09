"""Statistics of a caption pool: how often words occur, and with which other words.

Rule-based generators ask these to choose words that the pool uses and that fit the caption. *Counts* are
gathered part by part and merged (`count`, `PoolCounts.merged`); *statistics* are what is left of them when frozen and
pruned (`PoolCounts.frozen`): immutable, with a digest that enters manifests and cache keys.

- A *word* here is a lemma. Frequencies are document frequencies: a caption counts once however often it says "dog".
- *Co-occurrence* counts captions that hold both of two content words (nouns, verbs, adjectives).
- *Runs* are two forms right after each other, as written but in lower case; the ends of a caption count as a form.
- *Adjacency* counts, in order: adjective before its noun, verb or noun before its preposition, preposition (of one
  word or several, `links.WORDINGS`) before the noun that it governs, verb before its object, and doer before what it does ("is" and "who" between).
- *Links* count which thing, or deed, is said to be where (`links.py`).

Memory stays bounded: frozen statistics keep the 20,000 most frequent content words, pairs seen twice or more, and
the 100,000 most frequent lemmas, forms and links. While merging, pairs, runs and links seen once are dropped whenever there are more
than two million; below that (some 500,000 captions) the order and size of the parts change nothing.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, Final, TypeVar

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.prepositional_links import (
    LAST_WORDS_OF_PREPOSITIONS,
    PrepositionalLink,
    find_links,
    head_noun_after,
    preposition_ending_at,
)
from pairwright.generators.language.tokens import Token

CONTENT: Final = frozenset(("NOUN", "PROPN", "VERB", "ADJ"))
_VOCABULARY, _MOST_TYPES, _LEAST_PAIR = 20_000, 100_000, 2
_MOST_PAIRS = 2_000_000
_COLUMNS: Final = ("kind", "a", "b", "count")
_ACTS: Final = frozenset(("VBG", "VBZ", "VBP", "VBD", "VB"))
_UNSEEN = 0.5  # added to each pair's count, so that a pair never seen has a finite, negative information

_NONE: Final[dict[str, int]] = {}
Pair = tuple[str, str]
_Key = TypeVar("_Key", str, Pair, PrepositionalLink)


@dataclass(slots=True)
class PoolCounts:
    """Exact counts of some captions; grows by `add`, joins by `merged`."""

    captions: int = 0
    lemmas: Counter[Pair] = field(default_factory=Counter)  # (lemma, universal tag)
    forms: Counter[str] = field(default_factory=Counter)  # as written, in lower case
    pairs: Counter[Pair] = field(default_factory=Counter)  # in alphabetical order; (a, a) counts a itself
    adjacent: Counter[Pair] = field(default_factory=Counter)  # in order of speech
    runs: Counter[Pair] = field(default_factory=Counter)  # forms right after each other; "" at both ends
    links: Counter[PrepositionalLink] = field(default_factory=Counter)  # (thing or deed, preposition, where)

    def add(self, tokens: Sequence[Token]) -> None:
        """Count one caption."""
        self.captions += 1
        self.lemmas.update({(token.lemma, token.pos) for token in tokens})
        forms = [token.text.lower() for token in tokens]
        self.forms.update(set(forms))
        self.runs.update({*pairwise(("", *forms, ""))})
        content = sorted({token.lemma for token in tokens if token.pos in CONTENT})
        self.pairs.update(combinations(content, 2))
        self.pairs.update((word, word) for word in content)
        self.adjacent.update(set(_adjacent(tokens)))
        self.links.update(set(find_links(tokens)))

    def merged(self, other: "PoolCounts") -> "PoolCounts":
        """Return the counts of both, itself changed to hold them."""
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
        """Return all counts, nothing pruned: what a part saves until the parts are merged."""
        return PoolStatistics(self.captions, self.lemmas, self.forms, self.pairs, self.adjacent, self.runs, self.links)

    @classmethod
    def of(cls, part: "PoolStatistics") -> "PoolCounts":
        """Return the counts that `exact` gave."""
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
        kept = dict(_top(words, _VOCABULARY))
        often = ((pair, count) for pair, count in self.pairs.items() if count >= _LEAST_PAIR or pair[0] == pair[1])
        return PoolStatistics(
            captions=self.captions,
            lemmas=dict(_top(self.lemmas, _MOST_TYPES)),
            forms=dict(_top(self.forms, _MOST_TYPES)),
            pairs=dict(sorted((pair, count) for pair, count in often if pair[0] in kept and pair[1] in kept)),
            adjacent=dict(sorted(item for item in self.adjacent.items() if item[1] >= _LEAST_PAIR)),
            runs=dict(sorted(item for item in self.runs.items() if item[1] >= _LEAST_PAIR)),
            links=dict(_top(self.links, _MOST_TYPES)),
        )


def _top(counts: dict[_Key, int], most: int) -> list[tuple[_Key, int]]:
    return sorted(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])


def _by_first(counts: dict[Pair, int]) -> dict[str, dict[str, int]]:
    """Return counts of pairs by their first word: small tables are found sooner than pairs in a large one."""
    table: dict[str, dict[str, int]] = {}
    for (a, b), count in counts.items():
        table.setdefault(a, {})[b] = count
    return table


def _normalised_pmi(one: float, other: float, both: float) -> float:
    """Return the normalised pointwise mutual information of three log shares, within [-1, 1]."""
    return max(-1.0, min(1.0, (one + other - both) / both))


def _adjacent(tokens: Sequence[Token]) -> Iterable[Pair]:
    for at, token in enumerate(tokens):
        if token.pos == "ADJ" or token.tag in {"IN", "TO"}:
            noun = head_noun_after(tokens, at + 1)
            if noun:
                yield token.lemma, noun
                if token.lemma in LAST_WORDS_OF_PREPOSITIONS:
                    yield preposition_ending_at(tokens, at)[1], noun
        elif token.pos in {"VERB", "NOUN"}:
            following = _governed_word(tokens, at)
            if following:
                yield token.lemma, following


def _governed_word(tokens: Sequence[Token], at: int) -> str:
    """Return the preposition right after a verb or noun; else a verb's object, or what a noun does."""
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if following is not None and following.tag in {"IN", "RP"}:
        return following.lemma
    if token.tag in _ACTS:
        return head_noun_after(tokens, at + 1)
    return _verb_after(tokens, at + 1) if token.pos == "NOUN" else ""


def _verb_after(tokens: Sequence[Token], start: int) -> str:
    """Return the verb that goes on at ``start``, auxiliaries and "that" between; empty when there is none."""
    for token in tokens[start : start + 3]:
        if token.pos == "VERB":
            return token.lemma
        if token.pos != "AUX" and token.tag not in {"WDT", "WP"}:
            break
    return ""


def count_captions(captions: Iterable[Sequence[Token]]) -> PoolCounts:
    """Return the counts of a part of the pool: captions as their tokens."""
    counts = PoolCounts()
    for tokens in captions:
        counts.add(tokens)
    return counts


@dataclass(frozen=True)
class PoolStatistics:
    """Frozen statistics of a pool; see the module for the nouns.

    Attributes:
        captions: how many were counted.
        lemmas: document frequency of (lemma, universal tag).
        forms: document frequency of lower-case word forms.
        pairs: captions that hold both content words, in alphabetical order; (a, a) counts a itself.
        adjacent: captions in which the first word stands before the second, as the module tells.
        runs: captions in which the first form, in lower case, stands right before the second; "" at their ends.
        links: captions that say of a noun or verb, by a preposition, that it is at another noun.
    """

    captions: int
    lemmas: dict[Pair, int]
    forms: dict[str, int]
    pairs: dict[Pair, int]
    adjacent: dict[Pair, int]
    runs: dict[Pair, int]
    links: dict[PrepositionalLink, int]

    def frequency(self, lemma: str, pos: str) -> int:
        """Return how many captions hold the lemma with that universal tag."""
        return self.lemmas.get((lemma, pos), 0)

    def form_frequency(self, form: str) -> int:
        """Return how many captions hold the word form, in any letter case."""
        return self.forms.get(form.lower(), 0)

    def common(self, pos: str, minimum: int = 1) -> list[str]:
        """Return the lemmas of that tag in at least ``minimum`` captions, the most frequent first."""
        return [lemma for lemma, frequency in self._by_pos.get(pos, ()) if frequency >= minimum]

    def cooccurrence(self, a: str, b: str) -> int:
        """Return how many captions hold both content words; of a word with itself, how many hold it."""
        return self._beside.get(a, _NONE).get(b, 0)

    def adjacency(self, first: str, second: str) -> int:
        """Return in how many captions ``first`` goes with ``second``: adjective and noun, word and preposition."""
        return self._following.get(first, _NONE).get(second, 0)

    def run(self, first: str, second: str) -> int:
        """Return in how many captions the form ``first`` stands right before ``second``; "" is a caption's end."""
        return self._running.get(first, _NONE).get(second, 0)

    def linked(self, left: str, preposition: str, noun: str) -> int:
        """Return how many captions put a noun or verb, by a preposition, at a noun; "" stands for whatever is there."""
        return self._linked.get((left, preposition, noun), 0)

    def plausibility(self, word: str, context: Iterable[str]) -> float:
        """Return how well a content word fits others: mean normalised pointwise mutual information, in [-1, 1].

        Context words that the pool does not know are passed over; without any, or for an unknown word, 0.
        Above 0: the words are seen together more often than by chance. Source: Bouma 2009, with 0.5 added to
        each pair's count.
        """
        return self.context_fit(word, context)[1]

    def context_fit(self, word: str, context: Iterable[str], least: int = 2) -> tuple[int, float]:
        """Return how many of a context stand beside a word in ``least`` captions or more, and its `plausibility`."""
        own, alone = self._alone.get(word), self._alone
        if own is None:
            return 0, 0.0
        fits, never = self._fits(word), self._never
        seen, known, total = 0, 0, 0.0
        for other in context:
            if other not in alone or other == word:
                continue
            known += 1
            found = fits.get(other)
            if found is None:
                total += _normalised_pmi(own, alone[other], never)
            else:
                seen += found[0] >= least
                total += found[1]
        return seen, total / known if known else 0.0

    def _fits(self, word: str) -> dict[str, tuple[int, float]]:
        """Return, for each word that stands beside one, in how many captions and how well the two fit."""
        found = self._fits_of.get(word)
        if found is None:
            own, alone, whole = self._alone[word], self._alone, math.log(self.captions + 1)
            found = self._fits_of[word] = {
                other: (both, _normalised_pmi(own, alone[other], math.log(both + _UNSEEN) - whole))
                for other, both in self._beside[word].items()
                if other in alone
            }
        return found

    @cached_property
    def _never(self) -> float:
        """Log of the share of captions that hold two words which are never seen together."""
        return math.log(_UNSEEN) - math.log(self.captions + 1)

    @cached_property
    def _fits_of(self) -> dict[str, dict[str, tuple[int, float]]]:
        """What `_fits` found so far; never more than the pairs, both ways."""
        return {}

    @cached_property
    def _alone(self) -> dict[str, float]:
        """Log of the share of captions that hold each content word."""
        return {a: math.log(count / self.captions) for (a, b), count in self.pairs.items() if a == b}

    @cached_property
    def _beside(self) -> dict[str, dict[str, int]]:
        """The pairs by word, both ways: small tables of words are found sooner than pairs in a large one."""
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
    def _linked(self) -> dict[PrepositionalLink, int]:
        """The links, and the sums over each of their parts and over two of them."""
        table: dict[PrepositionalLink, int] = {}
        for (left, preposition, noun), count in self.links.items():
            for key in product((left, ""), (preposition, ""), (noun, "")):
                table[key] = table.get(key, 0) + count
        return table

    @cached_property
    def _by_pos(self) -> dict[str, list[tuple[str, int]]]:
        grouped: dict[str, list[tuple[str, int]]] = {}
        for (lemma, pos), frequency in self.lemmas.items():
            grouped.setdefault(pos, []).append((lemma, frequency))
        return {pos: sorted(words, key=lambda word: (-word[1], word[0])) for pos, words in grouped.items()}

    @cached_property
    def digest(self) -> str:
        """128 bits in hex over everything counted: equal for equal statistics."""
        hasher = hashlib.blake2b(digest_size=16)
        for row in self._rows():
            hasher.update("\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") + b"\x1e")
        return hasher.hexdigest()

    def _rows(self) -> list[tuple[str, str, str, int]]:
        return [
            ("captions", "", "", self.captions),
            *(("lemma", lemma, pos, number) for (lemma, pos), number in sorted(self.lemmas.items())),
            *(("form", form, "", number) for form, number in sorted(self.forms.items())),
            *(("pair", a, b, number) for (a, b), number in sorted(self.pairs.items())),
            *(("adjacent", a, b, number) for (a, b), number in sorted(self.adjacent.items())),
            *(("run", a, b, number) for (a, b), number in sorted(self.runs.items())),
            *(("link", left, f"{by} {noun}", number) for (left, by, noun), number in sorted(self.links.items())),
        ]

    def save(self, path: Path) -> None:
        """Write the statistics as one Parquet file, whole or not at all: rows of kind, a, b, count."""
        import polars as pl  # a while to import, and counting does without

        frame = pl.DataFrame(self._rows(), schema=_schema(), orient="row")
        with replace_atomically(path) as temporary:
            frame.write_parquet(temporary, compression="zstd", statistics=False)

    @classmethod
    def load(cls, path: Path) -> "PoolStatistics":
        """Return the statistics of a file that `save` wrote.

        Raises:
            StorageError: the file is missing, torn or something else.
        """
        import polars as pl

        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{path} holds no pool statistics ({error}). A build writes some: statistics/words.parquet."
            ) from error
        if dict(frame.schema) != _schema() or frame.height == 0:
            raise StorageError(f"{path} holds no pool statistics. A build writes some: statistics/words.parquet.")
        kinds: dict[str, list[tuple[Pair, int]]] = {
            "captions": [],
            "lemma": [],
            "form": [],
            "pair": [],
            "adjacent": [],
            "run": [],
            "link": [],
        }
        for kind, a, b, number in frame.iter_rows():
            kinds[kind].append(((a, b), number))
        return cls(
            captions=kinds["captions"][0][1],
            lemmas=dict(kinds["lemma"]),
            forms={form: number for (form, _), number in kinds["form"]},
            pairs=dict(kinds["pair"]),
            adjacent=dict(kinds["adjacent"]),
            runs=dict(kinds["run"]),
            links={(left, *_split_place(place)): number for (left, place), number in kinds["link"]},
        )


def _split_place(place: str) -> tuple[str, str]:
    """Return the preposition and the noun of a place as it is saved ("in front of house")."""
    preposition, _, noun = place.rpartition(" ")
    return preposition, noun


def _schema() -> dict[str, Any]:
    import polars as pl

    return dict(zip(_COLUMNS, (pl.String, pl.String, pl.String, pl.Int64), strict=True))
