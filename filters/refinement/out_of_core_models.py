"""Word statistics of a part of the captions, and the two language models of Algorithm 1 fitted on the sum of all parts.

Words have the same number in all parts. A part counts its captions apart by the folds that may not train on them
(`count_captions`); the model of a fold is fitted on the sum of the counts of the others (`TextModels.fit`). Models and
scores equal those of `GrammarScorer` and `PlausibilityScorer` trained on the same captions, to the last bit, as long as
the captions have at most `vocabulary.MAX_WORDS` different words. They are stored in an Arrow file, which jobs that
score map into memory instead of loading a copy each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pairwright.filters.refinement.part_arrays import map_arrays, save_mapped
from pairwright.filters.scorers.cooccurrence import Cooccurrence, find_cooccurrences, is_content_word
from pairwright.filters.scorers.text_scorers import compute_grammar_score, compute_plausibility_score
from pairwright.generators.language.trigram_model import ARRAYS, TrigramModel, trigram_keys
from pairwright.generators.language.vocabulary import (
    ID_BITS,
    SPECIAL,
    UNKNOWN,
    FloatArray,
    IntArray,
    Vocabulary,
    sum_by_key,
)

GRAMMAR, PLAUSIBILITY = "grammar", "plausibility"
_LOW_BITS = (1 << ID_BITS) - 1
_COOCCURRENCE_ARRAYS = ("totals", "pairs", "times")

Flags = npt.NDArray[np.bool_]


class EncodedTexts(NamedTuple):
    """Texts as numbers of words.

    Attributes:
        flat: int64, the number of each word of all texts, -1 for a word that no caption has.
        content: bool, whether it is a content word (`cooccurrence.is_content_word`).
        lengths: int64 (k,), number of words of each text.
    """

    flat: IntArray
    content: Flags
    lengths: IntArray

    @classmethod
    def of(cls, flat: IntArray, lengths: IntArray, words: Sequence[str], numbers: IntArray) -> Self:
        """Return texts that are given as places among ``words``, whose ``numbers`` are known."""
        content = np.fromiter(map(is_content_word, words), np.bool_, len(words))
        return cls(numbers[flat], content[flat], lengths)

    def take(self, wanted: Flags) -> Self:
        """Return the wanted texts, bool (k,)."""
        inside = np.repeat(wanted, self.lengths)
        return type(self)(self.flat[inside], self.content[inside], self.lengths[wanted])

    def only_content(self) -> tuple[IntArray, IntArray]:
        """Return the numbers of the content words, and how many each text has."""
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)[self.content]
        return self.flat[self.content], np.bincount(owner, minlength=len(self.lengths)).astype(np.int64)


KINDS = ("words", "trigrams", "pairs")
CaptionCounts = Mapping[str, tuple[IntArray, IntArray]]
"""Ascending keys and their counts, of each of ``KINDS``."""


def count_captions(texts: EncodedTexts, times: IntArray) -> CaptionCounts:
    """Return the counts of words, trigrams and co-occurring pairs of content words.

    Args:
        texts: distinct captions.
        times: int64 (k,), at least 1, how often each occurs.
    """
    known = texts.flat >= 0
    owner = np.repeat(np.arange(len(times)), texts.lengths)
    grams, of = trigram_keys(np.where(known, texts.flat + SPECIAL, UNKNOWN), texts.lengths)
    content, lengths = texts.only_content()
    pairs, of_pair = find_cooccurrences(np.where(content >= 0, content + SPECIAL, UNKNOWN), lengths)
    return {
        "words": sum_by_key(texts.flat[known], times[owner[known]]),
        "trigrams": sum_by_key(grams, times[of]),
        "pairs": sum_by_key(pairs, times[of_pair]),
    }


@dataclass(frozen=True, eq=False)
class TextModels:
    """Both models of one fold, and their ids of the words.

    Attributes:
        trigrams: grammar model.
        trigram_ids: int64, by the number of the word; the last is that of unknown words.
        cooccurrence: plausibility model.
        content_ids: int64, likewise.
    """

    trigrams: TrigramModel
    trigram_ids: IntArray
    cooccurrence: Cooccurrence
    content_ids: IntArray

    @classmethod
    def fit(cls, words: Sequence[str], counts: CaptionCounts) -> Self:
        """Return the models of captions.

        Args:
            words: all words in alphabetical order; the number of a word is its place.
            counts: of the captions.
        """
        numbers, seen = counts["words"]
        times = np.zeros(len(words), np.int64)
        times[numbers] = seen
        vocabulary, ids = _rank_words(words, times)
        content = np.fromiter(map(is_content_word, words), np.bool_, len(words))
        content_words, content_ids = _rank_words(words, np.where(content, times, 0))
        return cls(
            TrigramModel.of_counts(vocabulary, *_renumber_trigrams(*counts["trigrams"], ids)),
            ids,
            Cooccurrence.of_counts(content_words, *_renumber_pairs(*counts["pairs"], content_ids)),
            content_ids,
        )

    def scores(self, texts: EncodedTexts) -> dict[str, FloatArray]:
        """Return the score of each text by each model, float64 (k,) in 0-1."""
        total, tokens = self.trigrams.log_prob_encoded(self.trigram_ids[texts.flat], texts.lengths)
        content, lengths = texts.only_content()
        association = self.cooccurrence.association_encoded(self.content_ids[content], lengths)
        return {GRAMMAR: compute_grammar_score(total, tokens), PLAUSIBILITY: compute_plausibility_score(association)}

    def save(self, path: Path) -> None:
        """Write all arrays to a file."""
        arrays = {name: getattr(self.trigrams, name) for name in ARRAYS}
        arrays |= {name: getattr(self.cooccurrence, name) for name in _COOCCURRENCE_ARRAYS}
        save_mapped(path, arrays | {"trigram_ids": self.trigram_ids, "content_ids": self.content_ids})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return models that `save` wrote, as arrays that stay on disk; they can score and nothing else."""
        array, none = map_arrays(path), Vocabulary(())
        return cls(
            TrigramModel(none, *(array[name] for name in ARRAYS)),
            array["trigram_ids"],
            Cooccurrence(none, array["totals"], array["pairs"], array["times"]),
            array["content_ids"],
        )


def _rank_words(words: Sequence[str], times: IntArray) -> tuple[Vocabulary, IntArray]:
    # The vocabulary of words with these counts (`Vocabulary.of`), and its id of each word and of unknown words.
    ranked = np.argsort(-times, kind="stable")[: int(np.count_nonzero(times))]
    ids = np.full(len(words) + 1, UNKNOWN, np.int64)
    ids[ranked] = np.arange(len(ranked)) + SPECIAL
    return Vocabulary(tuple(words[word] for word in ranked.tolist())), ids


def _renumber_trigrams(keys: IntArray, times: IntArray, ids: IntArray) -> tuple[IntArray, IntArray]:
    new = _renumber(keys >> 2 * ID_BITS, ids) << 2 * ID_BITS
    new |= _renumber(keys >> ID_BITS & _LOW_BITS, ids) << ID_BITS
    new |= _renumber(keys & _LOW_BITS, ids)
    order = np.argsort(new)
    return new[order], times[order]


def _renumber_pairs(keys: IntArray, times: IntArray, ids: IntArray) -> tuple[IntArray, IntArray]:
    one, other = _renumber(keys >> ID_BITS, ids), _renumber(keys & _LOW_BITS, ids)
    new = np.minimum(one, other) << ID_BITS | np.maximum(one, other)
    order = np.argsort(new)
    return new[order], times[order]


def _renumber(numbers: IntArray, ids: IntArray) -> IntArray:
    # Unknown words and the marks of both ends keep their ids.
    return np.where(numbers < SPECIAL, numbers, ids[numbers - SPECIAL])
