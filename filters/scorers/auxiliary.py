"""Auxiliary text scorers, which see the same words as the named attacks through coarser features.

A set that is balanced for one trigram model and one co-occurrence model still leaves a little for the next model, which
weighs the same words differently. With these scorers, what several models have in common is balanced rather than the
noise of one:

- *frequency*: the mean log-frequency of the words;
- *word_shapes*: a trigram model of word shapes (function words unchanged, all other words by their last two letters);
- *cooccurrence*: which words a whole text names together, at any distance (`cooccurrence.py`);
- *similarity*: distributional similarity of the content words of a text (a truncated singular value decomposition of
  positive pointwise mutual information; Levy and Goldberg, 2014);
- *word_order*: the same of all words and of the words one, two and three places after them;
- *spelling*: a character model of six letters (`character_model.py`).

They are `TextScorer`s like those of `text_scorers.py`, with scores in 0-1, and cross-fitted in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.scorers.character_model import CharacterModel
from pairwright.filters.scorers.cooccurrence import (
    FUNCTION_WORDS,
    Cooccurrence,
    add_boundaries,
    find_cooccurrences,
)
from pairwright.filters.scorers.shared_texts import SharedTexts, SplitTexts, count_texts, rank_words
from pairwright.filters.scorers.text_scorers import rounded_logistic
from pairwright.generators.language.trigram_model import TrigramModel
from pairwright.generators.language.vocabulary import ID_BITS, FloatArray, IntArray, Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DIMENSIONS = 48
MIN_COUNT = 3
FOLLOWING_WORDS = 3
WIDE_WINDOW = 12  # content words: the length of a caption
OVERSAMPLING, POWER_ITERATIONS = 8, 5
_LOW_BITS = (1 << ID_BITS) - 1


@dataclass(frozen=True, eq=False)
class FrequencyScorer:
    """Word frequency: the mean natural log m of the words' shares, as 1 / (1 + exp(-(m + 5)))."""

    vocabulary: Vocabulary
    log_share: FloatArray

    @classmethod
    def train(cls, captions: Sequence[str]) -> "FrequencyScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        counts = np.full(len(texts.words), 0.5)
        np.add.at(counts, texts.table.ids(texts.words), texts.word_counts)
        return cls(texts.words, np.log(counts / counts.sum()))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1."""
        flat, lengths = SharedTexts.of(texts).encode(self.vocabulary)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        return rounded_logistic(_average_by_text(self.log_share[flat], owner, len(lengths)) + 5.0)


@dataclass(frozen=True, eq=False)
class WordShapeScorer:
    """Fluency of the word shapes: their mean natural log-probability m, as 1 / (1 + exp(-(m + 2)))."""

    model: TrigramModel

    @classmethod
    def train(cls, captions: Sequence[str]) -> "WordShapeScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        shapes = texts.table.replaced(describe_word_shape)
        counts = np.zeros(len(shapes.table.words), np.int64)
        np.add.at(counts, shapes.flat, np.repeat(texts.word_counts, shapes.lengths))
        words = rank_words(shapes.table.words, counts)
        return cls(texts.count_trigrams(words, lambda chunk: chunk.replace(describe_word_shape)))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1."""
        shapes = SharedTexts.of(texts).split.replace(describe_word_shape)
        total, tokens = self.model.log_prob_encoded(*shapes.encode(self.model.vocabulary))
        return rounded_logistic(total / tokens + 2.0)


@dataclass(frozen=True, eq=False)
class CooccurrenceScorer:
    """Co-occurrence of the content words at any distance: their association x, as 1 / (1 + exp(-x))."""

    model: Cooccurrence

    @classmethod
    def train(cls, captions: Sequence[str]) -> "CooccurrenceScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        pairs = texts.count_pairs(WIDE_WINDOW)
        return cls(Cooccurrence.of_counts(texts.content_words, *pairs, WIDE_WINDOW))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1; 0.5 without two known words."""
        encoded = SharedTexts.of(texts).encode_content(self.model.vocabulary)
        return rounded_logistic(self.model.association_encoded(*encoded))


@dataclass(frozen=True, eq=False)
class SimilarityScorer:
    """Distributional similarity: the mean cosine c of co-occurring content words, as 1 / (1 + exp(-4 c))."""

    vocabulary: Vocabulary
    vectors: FloatArray

    @classmethod
    def train(cls, captions: Sequence[str]) -> "SimilarityScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        vocabulary = texts.content_words
        return cls(vocabulary, _compute_cooccurrence_factors(*texts.count_pairs(), len(vocabulary)))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1; 0.5 without two known words."""
        keys, owner = find_cooccurrences(*SharedTexts.of(texts).encode_content(self.vocabulary))
        distinct, place = np.unique(keys, return_inverse=True)  # texts repeat
        low, high = self.vectors[distinct >> ID_BITS], self.vectors[distinct & _LOW_BITS]
        cosine = np.einsum("nd,nd->n", low, high)[place]
        return rounded_logistic(4.0 * _average_by_text(cosine, owner, len(texts)))


@dataclass(frozen=True, eq=False)
class WordOrderScorer:
    """Fit of each word to the words after it: the mean m over the pairs, as 1 / (1 + exp(-(2 m - 1))).

    A word, and a word at a distance, have one vector each; their product approximates the positive mutual information.
    """

    vocabulary: Vocabulary
    before: FloatArray
    after: FloatArray

    @classmethod
    def train(cls, captions: Sequence[str]) -> "WordOrderScorer":
        """Return the scorer trained on ``captions``."""
        texts = count_texts(captions)
        vocabulary = texts.words
        size = len(vocabulary)

        def pack(chunk: SplitTexts) -> IntArray:
            left, right, _ = _find_following_pairs(*chunk.encode(vocabulary), size)
            return left * (FOLLOWING_WORDS * size) + right

        keys, times = texts.count_keys(pack)
        return cls(
            vocabulary,
            *_factorize_ppmi(
                keys // (FOLLOWING_WORDS * size), keys % (FOLLOWING_WORDS * size), times, (size, FOLLOWING_WORDS * size)
            ),
        )

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1."""
        flat, lengths = SharedTexts.of(texts).encode(self.vocabulary)
        left, right, owner = _find_following_pairs(flat, lengths, len(self.vocabulary))
        distinct, place = np.unique(left * len(self.after) + right, return_inverse=True)  # texts repeat
        before, after = self.before[distinct // len(self.after)], self.after[distinct % len(self.after)]
        fit = np.einsum("nd,nd->n", before, after)[place]
        return rounded_logistic(2.0 * _average_by_text(fit, owner, len(texts)) - 1.0)


@dataclass(frozen=True, eq=False)
class SpellingScorer:
    """Character model: the mean natural log-probability m of the characters, as 1 / (1 + exp(-2 (m + 1.6)))."""

    model: CharacterModel

    @classmethod
    def train(cls, captions: Sequence[str]) -> "SpellingScorer":
        """Return the scorer trained on ``captions``."""
        return cls(CharacterModel.fit(captions))

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1."""
        total, letters = self.model.log_prob(texts)
        return rounded_logistic(2.0 * (total / np.maximum(letters, 1) + 1.6))


def _average_by_text(values: FloatArray, owner: IntArray, texts: int) -> FloatArray:
    # The mean of the values of each text, given the number of the text of each value; 0 without any.
    total = np.bincount(owner, weights=values, minlength=texts)
    return total / np.maximum(np.bincount(owner, minlength=texts), 1)


def describe_word_shape(word: str) -> str:
    """Return the shape of a word: a function word or punctuation mark unchanged, else its last two letters and "x"."""
    return word if word in FUNCTION_WORDS or not word[0].isalpha() else f"{word[-2:]}x"


def _compute_cooccurrence_factors(pairs: IntArray, times: IntArray, size: int) -> FloatArray:
    # Unit vectors (size, d) of the words, 0 for rare words.
    often = times >= MIN_COUNT
    low, high, times = pairs[often] >> ID_BITS, pairs[often] & _LOW_BITS, times[often]
    both = np.concatenate([low, high]), np.concatenate([high, low])
    vectors, _ = _factorize_ppmi(*both, np.tile(times, 2), (size, size))
    vectors /= np.maximum(np.sqrt((vectors**2).sum(axis=1, keepdims=True)), 1e-9)
    return vectors


def _find_following_pairs(flat: IntArray, lengths: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
    # (word, following word as distance and id in one number, number of the text) for each distance, boundaries
    # included.
    row, owner = add_boundaries(flat, lengths)
    parts = []
    for distance in range(1, FOLLOWING_WORDS + 1):
        inside = owner[:-distance] == owner[distance:]
        parts.append(
            (row[:-distance][inside], row[distance:][inside] + (distance - 1) * size, owner[distance:][inside])
        )
    left, right, owners = (np.concatenate(part) for part in zip(*parts, strict=True))
    return left, right, owners


def _factorize_ppmi(
    row: IntArray, column: IntArray, times: IntArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    # Vectors of rows and of columns whose products approximate the positive mutual information of the two.
    from scipy.sparse import csr_matrix

    totals = (
        np.bincount(row, weights=times, minlength=shape[0]),
        np.bincount(column, weights=times, minlength=shape[1]),
    )
    number = float(times.sum())
    again = times > 1  # most pairs occur once
    row, column, weight = row[again], column[again], times[again].astype(np.float64)
    pmi = np.log(weight * number / (totals[0][row] * totals[1][column]))
    used = pmi > 0
    known, columns = np.unique(row[used]), np.unique(column[used])
    size = min(len(known), len(columns))
    dimensions = min(DIMENSIONS, size // 2)
    vectors = [np.zeros((length, max(dimensions, 1))) for length in shape]
    if dimensions:
        places = np.searchsorted(known, row[used]), np.searchsorted(columns, column[used])
        matrix = csr_matrix((pmi[used], places), (len(known), len(columns)))
        left, strength, right = _compute_truncated_svd(matrix, dimensions)
        vectors[0][known], vectors[1][columns] = left * np.sqrt(strength), right * np.sqrt(strength)
    return vectors[0], vectors[1]


def _compute_truncated_svd(matrix: "csr_matrix", number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    # The largest singular values with their vectors, by subspace iteration (Halko, Martinsson and Tropp, 2011,
    # algorithm 4.4). ARPACK restarts with random numbers on matrices of low rank, so its output differs from run to
    # run.
    size = min(*matrix.shape, number + OVERSAMPLING)
    with limit_blas_to_one_thread():
        right = np.linalg.qr(make_numpy_rng(0, "guards").standard_normal((matrix.shape[1], size)))[0]
        for _ in range(POWER_ITERATIONS):
            left = np.linalg.qr(matrix @ right)[0]
            right = np.linalg.qr(matrix.T @ left)[0]
        left, strength, rotation = np.linalg.svd(matrix @ right, full_matrices=False)
        return left[:, :number], strength[:number], right @ rotation[:number].T
