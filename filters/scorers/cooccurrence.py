"""Co-occurrence statistics of content words, for the plausibility scorer.

A caption is reduced to its *content words*: words other than the function words below, without punctuation and digits.
Two different content words *co-occur* when they are at most ``WINDOW`` content words apart, in either order;
`auxiliary.CooccurrenceScorer` uses a wider window. The pointwise mutual information of two words is

    pmi(a, b) = ln((n(a, b) + 1) / (e(a, b) + 1)),   e(a, b) = n(a) n(b) / (2 n)

with n(a, b) co-occurrences of the two, n(a) co-occurrences of a with any word and n co-occurrences in all. The added
ones shrink pairs with little evidence to 0. The *association* of a caption is the mean pmi of its co-occurring pairs,
0 without any.

Counts are sorted arrays (16 bytes per distinct pair), frozen once fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pairwright.generators.language.vocabulary import (
    END,
    ID_BITS,
    START,
    UNKNOWN,
    FloatArray,
    IntArray,
    Vocabulary,
    lookup_sorted,
    sum_by_key,
    tokenize,
)

WINDOW = 2
_LOW_BITS = (1 << ID_BITS) - 1

FUNCTION_WORDS = frozenset(
    tokenize("""
    a an the this that these those some any each every another other its it they them their there here he she him
    her his hers we us our you your i me my who whom whose which what where when while as if than then so such
    and or but nor not no of in on at to from by for with without into onto upon over under above below behind
    beside besides between among against along around near next off out up down through across toward towards
    about after before during inside outside within is are was were be been being am has have had having do does
    did doing done can could will would may might must shall should very too also just only both all
    """)
)


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """Co-occurrence counts of a set of captions; create one with `fit`.

    Attributes:
        vocabulary: the content words.
        totals: int64, co-occurrences of each id with any word.
        pairs: ascending keys of the co-occurring pairs, the smaller id first.
        times: int64, co-occurrences of each pair.
        window: maximum distance in content words.
    """

    vocabulary: Vocabulary
    totals: IntArray
    pairs: IntArray
    times: IntArray
    window: int = WINDOW

    @classmethod
    def fit(cls, captions: Sequence[str], window: int = WINDOW) -> "Cooccurrence":
        """Return the counts of ``captions``; their order does not matter."""
        tokens = [extract_content_words(caption) for caption in captions]
        vocabulary = Vocabulary.of(tokens)
        keys, _ = find_cooccurrences(*vocabulary.encode(tokens), window)
        return cls.of_counts(vocabulary, *sum_by_key(keys), window)

    @classmethod
    def of_counts(
        cls, vocabulary: Vocabulary, pairs: IntArray, times: IntArray, window: int = WINDOW
    ) -> "Cooccurrence":
        """Return the statistics of counted pairs: ascending keys of `find_cooccurrences`, and the count of each."""
        totals = np.bincount(pairs >> ID_BITS, weights=times, minlength=len(vocabulary))
        totals += np.bincount(pairs & _LOW_BITS, weights=times, minlength=len(vocabulary))
        return cls(vocabulary, totals.astype(np.int64), pairs, times, window)

    def association(self, texts: Sequence[str]) -> FloatArray:
        """Return the mean pmi of the co-occurring pairs of each text, float64 (n,); 0 without two known words."""
        return self.association_encoded(*self.vocabulary.encode([extract_content_words(text) for text in texts]))

    def association_encoded(self, flat: IntArray, lengths: IntArray) -> FloatArray:
        """Return `association` of texts whose content words the vocabulary has encoded."""
        keys, owner = find_cooccurrences(flat, lengths, self.window)
        times = lookup_sorted(self.pairs, self.times, keys, 0)
        return mean_pmi(keys, times, owner, len(lengths), self.totals, int(self.times.sum()))


def mean_pmi(  # noqa: PLR0913, PLR0917 - the pairs, and the statistics
    keys: IntArray, times: IntArray, owner: IntArray, texts: int, totals: IntArray, together: int
) -> FloatArray:
    """Return the association of texts, float64 (texts,).

    Args:
        keys: of the co-occurring pairs of all texts.
        times: co-occurrences of each pair.
        owner: number of the text of each pair.
        texts: how many there are.
        totals: co-occurrences of each id with any word.
        together: co-occurrences in all.
    """
    expected = totals[keys >> ID_BITS] * totals[keys & _LOW_BITS] / max(2.0 * together, 1.0)
    pmi = np.log((times + 1.0) / (expected + 1.0))
    pairs = np.bincount(owner, minlength=texts)
    total = np.bincount(owner, weights=pmi, minlength=texts)
    return np.asarray(total / np.maximum(pairs, 1), np.float64)


def extract_content_words(text: str) -> list[str]:
    """Return the words of ``text`` without function words, punctuation and digits."""
    return list(_extract_content_words(text))


@lru_cache(maxsize=16_384)  # as in `tokenize`
def _extract_content_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in tokenize(text) if is_content_word(word))


def is_content_word(word: str) -> bool:
    """Return whether a token of `tokenize` is a content word."""
    return word[0].isalpha() and word not in FUNCTION_WORDS


def find_cooccurrences(flat: IntArray, lengths: IntArray, window: int = WINDOW) -> tuple[IntArray, IntArray]:
    """Return the key of each co-occurring pair and the number of its caption; unknown words are ignored."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    keys, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for distance in range(1, window + 1):
        left, right = flat[:-distance], flat[distance:]
        paired = (owner[:-distance] == owner[distance:]) & (left != right) & (left != UNKNOWN) & (right != UNKNOWN)
        low, high = np.minimum(left, right)[paired], np.maximum(left, right)[paired]
        keys.append((low << ID_BITS) | high)
        owners.append(owner[distance:][paired])
    return np.concatenate(keys), np.concatenate(owners)


def add_boundaries(flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return each encoded text with boundary marks at both ends, and the number of the text of each id."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    row = np.full(len(flat) + 2 * len(lengths), START, np.int64)
    row[np.arange(len(flat)) + 2 * owner + 1] = flat
    row[np.cumsum(lengths + 2) - 1] = END
    return row, np.repeat(np.arange(len(lengths)), lengths + 2)
