"""Texts that are split into words once for all scorers, and what scorers count in them.

Scorers of a fold are trained on the same captions and score the same texts. So texts are kept as places in a table of
different words: what depends on single words, such as their ids, is computed once for each of these.

Scorers are trained on counts (`CountedTexts`), which are summed over chunks of some thousand texts: the memory of a
training grows with the different n-grams, not with the texts, which may be on disk.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pairwright.filters.scorers.cooccurrence import WINDOW, find_cooccurrences, is_content_word
from pairwright.generators.language.trigram_model import TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import (
    FloatArray,
    IntArray,
    Vocabulary,
    lookup_sorted,
    sum_by_key,
    tokenize,
)

CHUNK_SIZE = 5_000  # texts that are counted at a time; a text takes some KB meanwhile
_LEAST_WAITING = 200_000  # counts that are summed at once, at least


class WordTable:
    """Different words, and what is known of each of them."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._ids: tuple[Vocabulary, IntArray] | None = None
        self._replaced: dict[Callable[[str], str], SplitTexts] = {}

    @cached_property
    def is_content(self) -> npt.NDArray[np.bool_]:
        """Whether each is a content word."""
        return np.fromiter(map(is_content_word, self.words), np.bool_, len(self.words))

    def ids(self, vocabulary: Vocabulary) -> IntArray:
        """Return the id of each word; those of the last vocabulary are remembered."""
        if self._ids is None or self._ids[0] is not vocabulary:
            self._ids = vocabulary, vocabulary.encode([self.words])[0]
        return self._ids[1]

    def replaced(self, replacement: Callable[[str], str]) -> "SplitTexts":
        """Return what replaces each word, as texts."""
        if replacement not in self._replaced:
            self._replaced[replacement] = SplitTexts.of([replacement(word) for word in self.words])
        return self._replaced[replacement]

    @cached_property
    def spelled(self) -> tuple[IntArray, IntArray]:
        """The code points of all words, a space before each; and the offsets of the words."""
        points = "".join(f" {word}" for word in self.words)
        lengths = np.fromiter((len(word) + 1 for word in self.words), np.int64, len(self.words))
        return read_code_points(points), find_offsets(lengths)


class SplitTexts(NamedTuple):
    """Texts as words.

    Attributes:
        table: different words, among them all words of the texts.
        flat: int64, the place of each word of all texts in the table.
        lengths: int64 (n,), number of words of each text.
    """

    table: WordTable
    flat: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Split texts."""
        places: dict[str, int] = {}
        lengths: list[int] = []

        def split() -> Iterator[list[str]]:
            for text in texts:
                words = tokenize(text)
                lengths.append(len(words))
                yield words

        words = chain.from_iterable(split())
        flat = np.fromiter((places.setdefault(word, len(places)) for word in words), np.int64)
        return cls(WordTable(list(places)), flat, np.array(lengths, np.int64))

    @property
    def owner(self) -> IntArray:
        """The number of the text of each word, int64."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def encode(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return (concatenated ids of the words of all texts, number of words of each text)."""
        return self.table.ids(vocabulary)[self.flat], self.lengths

    def only_content(self) -> Self:
        """Return the texts without all but their content words."""
        inside = self.table.is_content[self.flat]
        lengths = np.bincount(self.owner[inside], minlength=len(self.lengths)).astype(np.int64)
        return type(self)(self.table, self.flat[inside], lengths)

    def replace(self, replacement: Callable[[str], str]) -> Self:
        """Return the texts with another text in place of each word."""
        new = self.table.replaced(replacement)
        flat, sizes = gather_runs(new.flat, find_offsets(new.lengths), self.flat)
        lengths = np.bincount(self.owner, weights=sizes, minlength=len(self.lengths)).astype(np.int64)
        return type(self)(new.table, flat, lengths)

    def spell(self) -> tuple[IntArray, IntArray]:
        """Return the code points of all texts, with one space between two words, and how many each text has."""
        points, sizes = gather_runs(*self.table.spelled, self.flat)
        lengths = np.bincount(self.owner, weights=sizes, minlength=len(self.lengths)).astype(np.int64)
        spelled = lengths > 0
        inside = np.ones(len(points), np.bool_)
        inside[(np.cumsum(lengths) - lengths)[spelled]] = False  # the space before the first word
        return points[inside], lengths - spelled


def find_offsets(lengths: IntArray) -> IntArray:
    """Return where each run begins if runs of these lengths follow one another, and where the last one ends."""
    return np.append(0, np.cumsum(lengths))


def gather_runs(
    flat: npt.NDArray[Any], offsets: IntArray, places: npt.NDArray[np.integer[Any]]
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return runs of ``flat``, one after another, and their lengths.

    Args:
        flat: all runs, one after another.
        offsets: int64, where each begins, and where the last one ends.
        places: number of each wanted run.
    """
    starts = offsets[places]
    sizes = offsets[places + 1] - starts
    ends = np.cumsum(sizes)
    return flat[np.repeat(starts - (ends - sizes), sizes) + np.arange(len(sizes) and int(ends[-1]))], sizes


def read_code_points(text: str) -> IntArray:
    """Return the code points of a text, int64."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


class CountedTexts(Sequence[str], ABC):
    """Texts of which scorers are trained: what they count in them, chunk by chunk."""

    @property
    @abstractmethod
    def table(self) -> WordTable:
        """The table of the words of all chunks."""

    @abstractmethod
    def chunks(self) -> Iterator[SplitTexts]:
        """Yield all texts as words, some thousand at a time."""

    def count_keys(self, keys_of: Callable[[SplitTexts], IntArray]) -> tuple[IntArray, IntArray]:
        """Return the ascending distinct keys of all texts, and how often each occurs."""
        return sum_counts(sum_by_key(keys_of(chunk)) for chunk in self.chunks())

    @cached_property
    def word_counts(self) -> IntArray:
        """How often each word of the table occurs, int64."""
        counts = np.zeros(len(self.table.words), np.int64)
        for chunk in self.chunks():
            counts += np.bincount(chunk.flat, minlength=len(counts))
        return counts

    @cached_property
    def words(self) -> Vocabulary:
        """Vocabulary of all words and punctuation marks."""
        return rank_words(self.table.words, self.word_counts)

    @cached_property
    def content_words(self) -> Vocabulary:
        """Vocabulary of the content words."""
        return rank_words(self.table.words, np.where(self.table.is_content, self.word_counts, 0))

    @cached_property
    def trigram_model(self) -> TrigramModel:
        """Trigram model of these texts."""
        return self.count_trigrams(self.words)

    def count_trigrams(
        self, vocabulary: Vocabulary, read: Callable[[SplitTexts], SplitTexts] = lambda chunk: chunk
    ) -> TrigramModel:
        """Return the trigram model of what is read of each chunk."""
        return TrigramModel.of_counts(
            vocabulary, *self.count_keys(lambda chunk: trigram_keys(*read(chunk).encode(vocabulary))[0])
        )

    def count_pairs(self, window: int = WINDOW) -> tuple[IntArray, IntArray]:
        """Return the counts of co-occurring content words (`cooccurrence.find_cooccurrences`)."""
        return self.count_keys(
            lambda chunk: find_cooccurrences(*chunk.only_content().encode(self.content_words), window)[0]
        )


class SharedTexts(CountedTexts):
    """Texts that remember what scorers compute of them.

    Args:
        texts: any number.
        split: their words, if these are known; then the texts are read when they are asked for.
    """

    def __init__(self, texts: Iterable[str], split: SplitTexts | None = None) -> None:
        self._texts = texts if split is not None and isinstance(texts, Sequence) else tuple(texts)
        if split is not None:
            self.split = split
        # Each entry keeps the model alive, as another object could have its id otherwise.
        self._log_probs: dict[int, tuple[TrigramModel, tuple[FloatArray, IntArray]]] = {}

    @classmethod
    def of(cls, texts: Sequence[str]) -> "SharedTexts":
        """Return the texts as such an object; one that is given stays as it is."""
        return texts if isinstance(texts, cls) else cls(texts)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._texts)

    def __getitem__(self, place: Any) -> Any:
        """Return a text or several ones."""
        return self._texts[place]

    @cached_property
    def split(self) -> SplitTexts:
        """The words of the texts, and their punctuation marks."""
        return SplitTexts.of(self._texts)

    @property
    def table(self) -> WordTable:
        """The table of the words."""
        return self.split.table

    @cached_property
    def content(self) -> SplitTexts:
        """The content words of the texts."""
        return self.split.only_content()

    def chunks(self) -> Iterator[SplitTexts]:
        """Yield all texts as words, some thousand at a time."""
        offsets = find_offsets(self.split.lengths)
        for start in range(0, len(self), CHUNK_SIZE):
            lengths = self.split.lengths[start : start + CHUNK_SIZE]
            yield SplitTexts(self.table, self.split.flat[offsets[start] : offsets[start + len(lengths)]], lengths)

    def encode(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return (concatenated ids of the words of all texts, number of words of each text)."""
        return self.split.encode(vocabulary)

    def encode_content(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return the same of the content words."""
        return self.content.encode(vocabulary)

    def log_prob(self, model: TrigramModel) -> tuple[FloatArray, IntArray]:
        """Return `TrigramModel.log_prob` of these texts."""
        if id(model) not in self._log_probs:
            self._log_probs[id(model)] = model, model.log_prob_encoded(*self.encode(model.vocabulary))
        return self._log_probs[id(model)][1]


def rank_words(words: Sequence[str], counts: IntArray) -> Vocabulary:
    """Return the vocabulary of words with these counts; those without any are left out."""
    pairs = zip(words, counts.tolist(), strict=True)
    return Vocabulary.of_counts({word: count for word, count in pairs if count})


def count_texts(texts: Sequence[str]) -> CountedTexts:
    """Return texts as such whose n-grams can be counted; those that are given so stay as they are."""
    return texts if isinstance(texts, CountedTexts) else SharedTexts(texts)


def sum_counts(counts: Iterable[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return the distinct keys of several counts in ascending order, and the sum of the counts of each.

    Counts wait until they are half as many as the sum so far, so that the time is linear in their number.
    """
    total = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[tuple[IntArray, IntArray]] = []
    for some in counts:
        waiting.append(some)
        if sum(len(keys) for keys, _ in waiting) > max(len(total[0]) // 2, _LEAST_WAITING):
            total, waiting = _add_counts(total, waiting), []
    return _add_counts(total, waiting)


def _add_counts(
    total: tuple[IntArray, IntArray], some: Sequence[tuple[IntArray, IntArray]]
) -> tuple[IntArray, IntArray]:
    # What is new is inserted, which takes less memory than to sort all keys again. The total is changed.
    if not some:
        return total
    keys, times = sum_by_key(*map(np.concatenate, zip(*some, strict=True)))
    places = np.searchsorted(total[0], keys)
    new = lookup_sorted(total[0], np.zeros(len(total[0]), np.bool_), keys, otherwise=True)
    total[1][places[~new]] += times[~new]
    places = places[new]
    return np.insert(total[0], places, keys[new]), np.insert(total[1], places, times[new])
