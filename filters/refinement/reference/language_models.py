"""Word statistics of a part of the captions, and the two language models of Algorithm 1 that the sums of all parts give.

Words have the same number in all parts. A part counts its captions apart by the folds that may not train on them
(`count_captions`); `fold_sums.py` adds up what a fold may train on. A model is these sums: probabilities are computed
when texts are scored, for their n-grams only. Scores equal those of `GrammarScorer` and `PlausibilityScorer` trained on
the same captions, to the last bit, as long as the captions have at most `vocabulary.MAX_WORDS` different words.

Keys are *spread*: a trigram's begins with its middle word, a pair's with its lower id, both mixed so that frequent words
are far apart. So a range of keys has about its share of the counts, and whatever the probability of a trigram depends on
is in the same range: the trigrams of its two-word context, the words before its last two words, those after its middle
word. Only the statistics without context are of all ranges (`GlobalCounts`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pairwright.filters.refinement.part_arrays import Array, map_arrays
from pairwright.filters.scorers.cooccurrence import find_cooccurrences, is_content_word, mean_pmi
from pairwright.filters.scorers.text_scorers import compute_grammar_score, compute_plausibility_score
from pairwright.generators.language.trigram_model import sum_discounts, trigram_keys
from pairwright.generators.language.vocabulary import (
    ID_BITS,
    SPECIAL,
    UNKNOWN,
    FloatArray,
    IntArray,
    lookup_sorted,
    sum_by_key,
)

GRAMMAR, PLAUSIBILITY = "grammar", "plausibility"
LOW_BITS = (1 << ID_BITS) - 1
_SPREAD = 0x13C6EF  # odd, so that multiplying by it is a permutation of the ids
_GATHERED = pow(_SPREAD, -1, 1 << ID_BITS)

Flags = npt.NDArray[np.bool_]
CaptionCounts = Mapping[str, tuple[IntArray, IntArray]]
"""Ascending spread keys and their counts, of each of ``KINDS``."""
BIGRAMS, TRIGRAMS, PAIRS = "bigrams", "trigrams", "pairs"
KINDS = (TRIGRAMS, PAIRS)
_KEY_BITS = {TRIGRAMS: 3 * ID_BITS, PAIRS: 2 * ID_BITS}


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

    def trigrams(self, ids: IntArray) -> tuple[IntArray, IntArray]:
        """Return the spread key of each trigram and the number of its text, given the id of each word of all texts."""
        keys, owner = trigram_keys(ids, self.lengths)
        middle = spread_ids(keys >> ID_BITS & LOW_BITS)
        return middle << 2 * ID_BITS | keys >> 2 * ID_BITS << ID_BITS | keys & LOW_BITS, owner

    def pairs(self, ids: IntArray) -> tuple[IntArray, IntArray]:
        """Return the key of each co-occurring pair of content words, not spread, and the number of its text."""
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)[self.content]
        lengths = np.bincount(owner, minlength=len(self.lengths)).astype(np.int64)
        return find_cooccurrences(ids[self.content], lengths)


def spread_ids(ids: IntArray) -> IntArray:
    """Return a permutation of ids that puts frequent words, whose ids are near each other, far apart."""
    return ids * _SPREAD & LOW_BITS


def gather_ids(spread: IntArray) -> IntArray:
    """Return the ids that `spread_ids` permuted."""
    return spread * _GATHERED & LOW_BITS


def spread_pairs(keys: IntArray) -> IntArray:
    """Return the spread keys of pairs."""
    return spread_ids(keys >> ID_BITS) << ID_BITS | keys & LOW_BITS


def range_edges(kind: str, ranges: int) -> IntArray:
    """Return the first key of each of so many equal ranges of keys, int64."""
    return (np.arange(ranges) << ID_BITS) // ranges << (_KEY_BITS[kind] - ID_BITS)


def count_captions(texts: EncodedTexts, times: IntArray) -> CaptionCounts:
    """Return the counts of trigrams and co-occurring pairs of content words.

    Args:
        texts: distinct captions.
        times: int64 (k,), at least 1, how often each occurs.
    """
    ids = np.where(texts.flat >= 0, texts.flat + SPECIAL, UNKNOWN)
    grams, of = texts.trigrams(ids)
    pairs, of_pair = texts.pairs(ids)
    return {TRIGRAMS: sum_by_key(grams, times[of]), PAIRS: sum_by_key(spread_pairs(pairs), times[of_pair])}


@dataclass(frozen=True, eq=False)
class GlobalCounts:
    """What the models of a fold need of all ranges of keys; a file holds it (`fold_sums.finish_fold`).

    Attributes:
        ids: int64, the id of each number of a word, that of unknown words for words that the fold does not train on; the
            last is for -1.
        unigrams: probability of each id without context, float64.
        discounts2: of pairs of words, float64 (4,).
        discounts3: of trigrams.
        totals: int64, co-occurrences of each id with any word.
        together: int64 (1,), co-occurrences in all.
        ranges: int64 (1,), number of ranges of keys, each of which has a file.
    """

    ids: IntArray
    unigrams: FloatArray
    discounts2: FloatArray
    discounts3: FloatArray
    totals: IntArray
    together: IntArray
    ranges: IntArray


@dataclass(frozen=True, eq=False)
class TextModels:
    """Both models of one fold.

    Attributes:
        every: statistics of all ranges.
        ranges: the counts of each range of keys, which stay on disk.
    """

    every: GlobalCounts
    ranges: Sequence[Mapping[str, Array]]

    @classmethod
    def load(cls, folder: Path, fold: int) -> Self:
        """Return the models whose files `fold_sums.py` wrote."""
        every = GlobalCounts(**map_arrays(every_path(folder, fold)))
        return cls(every, [map_arrays(range_path(folder, fold, number)) for number in range(int(every.ranges[0]))])

    def scores(self, texts: EncodedTexts) -> dict[str, FloatArray]:
        """Return the score of each text by each model, float64 (k,) in 0-1."""
        ids = self.every.ids[texts.flat]
        grams, owner = texts.trigrams(ids)
        logs = self._look_up(TRIGRAMS, grams, self._log_prob)
        total = np.bincount(owner, weights=logs, minlength=len(texts.lengths))
        pairs, of_pair = texts.pairs(ids)
        times = self._look_up(PAIRS, spread_pairs(pairs), _look_up_pairs)
        association = mean_pmi(
            pairs, times, of_pair, len(texts.lengths), self.every.totals, int(self.every.together[0])
        )
        return {
            GRAMMAR: compute_grammar_score(np.asarray(total, np.float64), texts.lengths + 1),
            PLAUSIBILITY: compute_plausibility_score(association),
        }

    def _look_up(self, kind: str, keys: IntArray, look_up: Callable[[Mapping[str, Array], IntArray], Array]) -> Array:
        # What is found for each key in its range.
        distinct, place = np.unique(keys, return_inverse=True)  # texts repeat, and sorted keys are found faster
        starts = np.searchsorted(distinct, range_edges(kind, len(self.ranges))[1:])
        found = [look_up(*each) for each in zip(self.ranges, np.split(distinct, starts), strict=True)]
        return np.concatenate(found)[place]

    def _log_prob(self, arrays: Mapping[str, Array], keys: IntArray) -> FloatArray:
        # Natural log-probabilities of trigrams of one range, computed as in `TrigramModel`.
        middle, last = keys >> 2 * ID_BITS, keys & LOW_BITS
        probability = self.every.unigrams[last]
        logs: FloatArray = np.log(probability)
        levels = (
            (BIGRAMS, middle << ID_BITS | last, self.every.discounts2),
            (TRIGRAMS, keys, self.every.discounts3),
        )
        for name, grams, discounts in levels if len(arrays[TRIGRAMS]) else ():
            known, place = _find(arrays[f"{name}-contexts"], grams >> ID_BITS)
            total = arrays[f"{name}-total"][place]
            left = sum_discounts(discounts, arrays[f"{name}-classes"].reshape(-1, 3)[place]) / total
            seen, place = _find(arrays[name], grams)
            times = arrays[f"{name}-times"][place]
            probability = (times - discounts[np.minimum(times, 3)]) / total + left * probability
            with np.errstate(divide="ignore", invalid="ignore"):  # of n-grams that were not seen
                logs = np.where(seen, np.log(probability), np.where(known, np.log(left), 0.0) + logs)
        return logs


def _find(among: IntArray, wanted: IntArray) -> tuple[Flags, IntArray]:
    # Which keys are among ascending ones, and their places; any place for the others.
    place = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return among[place] == wanted, place


def _look_up_pairs(arrays: Mapping[str, Array], keys: IntArray) -> Array:
    return lookup_sorted(arrays["pairs"], arrays["pairs-times"], keys, 0)


def texts_path(folder: Path, part: str) -> Path:
    """Return the file with the texts of a part (`parts.encode_part`)."""
    return folder / f"texts-{part}.arrow"


def folds_path(folder: Path, part: str) -> Path:
    """Return the file with the folds of a part (`fold_assignment.assign_batch`)."""
    return folder / f"folds-{part}.arrow"


def every_path(folder: Path, fold: int) -> Path:
    """Return the file with the `GlobalCounts` of a fold."""
    return folder / f"fold-{fold}.arrow"


def range_path(folder: Path, fold: int, number: int) -> Path:
    """Return the file with the sums of a fold in one range of keys."""
    return folder / f"sums-{fold}-{number}.arrow"
