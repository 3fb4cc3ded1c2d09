"""Texts that are split into words once for all scorers.

Scorers of a fold are trained on the same captions and score the same texts. So texts are kept as places in a list of
different words: what depends on single words, such as their ids, is computed once for each of these.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from pairwright.filters.scorers.cooccurrence import is_content_word
from pairwright.generators.language.trigram_model import TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import FloatArray, IntArray, Vocabulary, sum_by_key, tokenize


class SplitTexts(NamedTuple):
    """Texts as words.

    Attributes:
        distinct: different words, among them all words of the texts.
        flat: int64, the place of each word of all texts among them.
        lengths: int64 (n,), number of words of each text.
    """

    distinct: list[str]
    flat: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
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
        return cls(list(places), flat, np.array(lengths, np.int64))

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the texts (`Vocabulary.of`)."""
        times = np.bincount(self.flat, minlength=len(self.distinct)).tolist()
        return Vocabulary.of_counts({word: each for word, each in zip(self.distinct, times, strict=True) if each})

    def encode(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return (concatenated ids of the words of all texts, number of words of each text)."""
        return vocabulary.encode([self.distinct])[0][self.flat], self.lengths

    def keep(self, wanted: Callable[[str], bool]) -> Self:
        """Return the texts without their other words."""
        inside = np.fromiter(map(wanted, self.distinct), np.bool_, len(self.distinct))[self.flat]
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)[inside]
        lengths = np.bincount(owner, minlength=len(self.lengths)).astype(np.int64)
        return type(self)(self.distinct, self.flat[inside], lengths)

    def replace(self, replacement: Callable[[str], str]) -> Self:
        """Return the texts with another text in place of each word."""
        new = type(self).of([replacement(word) for word in self.distinct])
        sizes, starts = new.lengths[self.flat], (np.cumsum(new.lengths) - new.lengths)[self.flat]
        ends = np.cumsum(sizes)
        flat = new.flat[np.repeat(starts - (ends - sizes), sizes) + np.arange(len(sizes) and int(ends[-1]))]
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        lengths = np.bincount(owner, weights=sizes, minlength=len(self.lengths)).astype(np.int64)
        return type(self)(new.distinct, flat, lengths)


class SharedTexts(tuple[str, ...]):  # noqa: SLOT001 - cached properties need __dict__
    """A tuple of texts that remembers what scorers compute of them."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "SharedTexts":
        """Return the texts as such a tuple; one that is given stays as it is."""
        return texts if isinstance(texts, cls) else cls(texts)

    @cached_property
    def split(self) -> SplitTexts:
        """The words of the texts, and their punctuation marks."""
        return SplitTexts.of(self)

    @cached_property
    def content(self) -> SplitTexts:
        """The content words of the texts."""
        return self.split.keep(is_content_word)

    @cached_property
    def words(self) -> Vocabulary:
        """Vocabulary of all words and punctuation marks."""
        return self.split.vocabulary()

    @cached_property
    def content_words(self) -> Vocabulary:
        """Vocabulary of the content words."""
        return self.content.vocabulary()

    @cached_property
    def trigram_model(self) -> TrigramModel:
        """Trigram model of these texts."""
        return TrigramModel.of_counts(self.words, *sum_by_key(trigram_keys(*self.encode(self.words))[0]))

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

    # Each entry keeps the model alive, as another object could have its id otherwise.
    @cached_property
    def _log_probs(self) -> dict[int, tuple[TrigramModel, tuple[FloatArray, IntArray]]]:
        return {}
