"""Which words go together: the statistics behind the plausibility scorer.

A caption is read as its *content words*: words without the function words below, punctuation and numerals in
digits. Two content words *meet* when they are different and at most ``WINDOW`` content words apart, in either
order; one of the guards (`guards.py`) reaches further. How much more often two words meet than their own
frequencies explain is their pointwise mutual information,

    pmi(a, b) = ln((n(a, b) + 1) / (e(a, b) + 1)),   e(a, b) = n(a) n(b) / (2 n)

with n(a, b) meetings of the two, n(a) meetings of a with anything and n meetings in all. The added ones pull
pairs with little evidence to 0: two rare words that never totals say nothing, two frequent ones do. A caption's
*association* is the mean over its meetings, a text in which nothing meets has association 0.

Counts are sorted arrays (16 bytes a distinct pair), frozen once fitted.
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
    """How often content words totals in a set of captions; make one with `fit`.

    Attributes:
        vocabulary: the content words.
        totals: int64, meetings of each id with anything.
        pairs: ascending keys of the pairs that totals, the smaller id first.
        times: int64, how often each of them totals.
        window: how many content words apart two may be that meet.
    """

    vocabulary: Vocabulary
    totals: IntArray
    pairs: IntArray
    times: IntArray
    window: int = WINDOW

    @classmethod
    def fit(cls, captions: Sequence[str], window: int = WINDOW) -> "Cooccurrence":
        """Return the counts of ``captions``; their order does not matter."""
        tokens = [content_words(caption) for caption in captions]
        vocabulary = Vocabulary.of(tokens)
        keys, _ = cooccurrence_keys(*vocabulary.encode(tokens), window)
        return cls.of_counts(vocabulary, *sum_by_key(keys), window)

    @classmethod
    def of_counts(
        cls, vocabulary: Vocabulary, pairs: IntArray, times: IntArray, window: int = WINDOW
    ) -> "Cooccurrence":
        """Return the statistics of counted meetings: ascending keys as of `meetings`, and how often each was seen."""
        totals = np.bincount(pairs >> ID_BITS, weights=times, minlength=len(vocabulary))
        totals += np.bincount(pairs & _LOW_BITS, weights=times, minlength=len(vocabulary))
        return cls(vocabulary, totals.astype(np.int64), pairs, times, window)

    def association(self, texts: Sequence[str]) -> FloatArray:
        """Return the mean pmi over the meetings in each text, float64 (n,); 0 where no two known words meet."""
        return self.association_encoded(*self.vocabulary.encode([content_words(text) for text in texts]))

    def association_encoded(self, flat: IntArray, lengths: IntArray) -> FloatArray:
        """Return the same as `association` of the content words of texts, which the vocabulary has encoded."""
        keys, owner = cooccurrence_keys(flat, lengths, self.window)
        expected = self.totals[keys >> ID_BITS] * self.totals[keys & _LOW_BITS] / max(2.0 * self.times.sum(), 1.0)
        pmi = np.log((lookup_sorted(self.pairs, self.times, keys, 0) + 1.0) / (expected + 1.0))
        often = np.bincount(owner, minlength=len(lengths))
        total = np.bincount(owner, weights=pmi, minlength=len(lengths))
        return np.asarray(total / np.maximum(often, 1), np.float64)


def content_words(text: str) -> list[str]:
    """Return the words of ``text`` that name something: no function words, punctuation or digits."""
    return list(_content_words(text))


@lru_cache(maxsize=16_384)  # as in `words`
def _content_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in tokenize(text) if is_content_word(word))


def is_content_word(word: str) -> bool:
    """Say whether a word, as `words` gives them, names something."""
    return word[0].isalpha() and word not in FUNCTION_WORDS


def cooccurrence_keys(flat: IntArray, lengths: IntArray, window: int = WINDOW) -> tuple[IntArray, IntArray]:
    """Return the key of each meeting and the number of its caption; unknown words meet nobody: they have no statistics."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    keys, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for apart in range(1, window + 1):
        left, right = flat[:-apart], flat[apart:]
        meet = (owner[:-apart] == owner[apart:]) & (left != right) & (left != UNKNOWN) & (right != UNKNOWN)
        low, high = np.minimum(left, right)[meet], np.maximum(left, right)[meet]
        keys.append((low << ID_BITS) | high)
        owners.append(owner[apart:][meet])
    return np.concatenate(keys), np.concatenate(owners)


def add_boundaries(flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return each encoded text with a mark before and after, and the number of the text that each id belongs to."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    row = np.full(len(flat) + 2 * len(lengths), START, np.int64)
    row[np.arange(len(flat)) + 2 * owner + 1] = flat
    row[np.cumsum(lengths + 2) - 1] = END
    return row, np.repeat(np.arange(len(lengths)), lengths + 2)
