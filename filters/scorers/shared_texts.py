"""Texts whose word ids and trigram model are computed once for all scorers.

Scorers of a fold are trained on the same captions and score the same texts, most of them with one of two vocabularies.
"""

from collections.abc import Sequence
from functools import cached_property

from pairwright.filters.scorers.cooccurrence import extract_content_words
from pairwright.generators.language.trigram_model import TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import FloatArray, IntArray, Vocabulary, sum_by_key, tokenize


class SharedTexts(tuple[str, ...]):  # noqa: SLOT001 - cached properties need __dict__
    """A tuple of texts that remembers what scorers compute of them."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "SharedTexts":
        """Return the texts as such a tuple; one that is given stays as it is."""
        return texts if isinstance(texts, cls) else cls(texts)

    @cached_property
    def words(self) -> Vocabulary:
        """Vocabulary of all words and punctuation marks."""
        return Vocabulary.of(tokenize(text) for text in self)

    @cached_property
    def content_words(self) -> Vocabulary:
        """Vocabulary of the content words."""
        return Vocabulary.of(extract_content_words(text) for text in self)

    @cached_property
    def trigram_model(self) -> TrigramModel:
        """Trigram model of these texts."""
        return TrigramModel.of_counts(self.words, *sum_by_key(trigram_keys(*self.encode(self.words))[0]))

    def encode(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return (concatenated ids of the words of all texts, number of words of each text)."""
        key = "words", id(vocabulary)
        if key not in self._encoded:
            self._encoded[key] = vocabulary, vocabulary.encode([tokenize(text) for text in self])
        return self._encoded[key][1]

    def encode_content(self, vocabulary: Vocabulary) -> tuple[IntArray, IntArray]:
        """Return the same of the content words."""
        key = "content words", id(vocabulary)
        if key not in self._encoded:
            self._encoded[key] = vocabulary, vocabulary.encode([extract_content_words(text) for text in self])
        return self._encoded[key][1]

    def log_prob(self, model: TrigramModel) -> tuple[FloatArray, IntArray]:
        """Return `TrigramModel.log_prob` of these texts."""
        if id(model) not in self._log_probs:
            self._log_probs[id(model)] = model, model.log_prob_encoded(*self.encode(model.vocabulary))
        return self._log_probs[id(model)][1]

    # Each entry keeps the vocabulary or model alive, as another object could have its id otherwise.
    @cached_property
    def _encoded(self) -> dict[tuple[str, int], tuple[Vocabulary, tuple[IntArray, IntArray]]]:
        return {}

    @cached_property
    def _log_probs(self) -> dict[int, tuple[TrigramModel, tuple[FloatArray, IntArray]]]:
        return {}
