"""Trigram language model of captions.

Interpolated Kneser-Ney smoothing with three discounts for each order (Chen and Goodman, 1998, section 4.2). The
probability of a word is estimated from the two words before it, interpolated with the estimate from one word, from the
number of different words that it follows, and with a uniform distribution over the vocabulary, so that unknown words
have a probability, too.

A *key* is two or three word ids packed into one integer; a *context* is the preceding words. Counts are sorted arrays
of keys, so fitting is sorting and scoring is binary search, without a Python loop over words. A fitted model is
immutable; its fingerprint is a hash of its contents.

Memory: about 30 bytes for each distinct trigram; word ids as in `vocabulary`.
"""

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.vocabulary import (
    END,
    ID_BITS,
    SPECIAL,
    START,
    UNKNOWN,
    FloatArray,
    IntArray,
    Vocabulary,
    lookup_sorted,
    sum_by_key,
    tokenize,
)

FORMAT_VERSION = 1
_LAST = (1 << ID_BITS) - 1
_LAST_TWO = (1 << 2 * ID_BITS) - 1
ARRAYS = (
    "unigrams",
    "bigrams",
    "bigram_log",
    "contexts1",
    "backoff1",
    "trigrams",
    "trigram_log",
    "contexts2",
    "backoff2",
)
"""The fields of a `TrigramModel` that are stored as arrays, in their order."""


@dataclass(frozen=True, eq=False)
class TrigramModel:
    """A fitted model; created by `fit` or `load`.

    Attributes:
        vocabulary: the known words.
        unigrams: natural log-probability of each id without context, float64.
        bigrams: ascending keys of the observed word pairs; ``bigram_log`` their interpolated log-probability.
        contexts1: ascending ids of the one-word contexts; ``backoff1`` the log of their backoff weight.
        trigrams: ascending keys of the observed triples; ``trigram_log`` their interpolated log-probability.
        contexts2: ascending keys of the two-word contexts; ``backoff2`` the log of their backoff weight.
    """

    vocabulary: Vocabulary
    unigrams: FloatArray
    bigrams: IntArray
    bigram_log: FloatArray
    contexts1: IntArray
    backoff1: FloatArray
    trigrams: IntArray
    trigram_log: FloatArray
    contexts2: IntArray
    backoff2: FloatArray

    @classmethod
    def fit(cls, captions: Sequence[str]) -> "TrigramModel":
        """Fit a model to captions, in any order; without captions it is uniform."""
        tokens = [tokenize(caption) for caption in captions]
        vocabulary = Vocabulary.of(tokens)
        return cls.of_counts(vocabulary, *sum_by_key(trigram_keys(*vocabulary.encode(tokens))[0]))

    @classmethod
    def of_counts(cls, vocabulary: Vocabulary, trigrams: IntArray, count3: IntArray) -> "TrigramModel":
        """Fit a model to counts: ascending keys as of `trigram_keys`, and the count of each."""
        pairs = trigrams & _LAST_TWO
        # The count of a pair is the number of distinct words before it; at the start of a caption, where there is only
        # the start token, it is the number of captions.
        at_start = pairs >> ID_BITS == START
        bigrams, count2 = sum_by_key(pairs, np.where(at_start, count3, 1))
        unigrams = unigram_probabilities(np.bincount(bigrams & _LAST, minlength=len(vocabulary)))
        contexts1, share1, left1 = _apply_discounts(bigrams, count2)
        bigram = share1 + left1[np.searchsorted(contexts1, bigrams >> ID_BITS)] * unigrams[bigrams & _LAST]
        contexts2, share2, left2 = _apply_discounts(trigrams, count3)
        shorter = bigram[np.searchsorted(bigrams, pairs)]
        trigram = share2 + left2[np.searchsorted(contexts2, trigrams >> ID_BITS)] * shorter
        with np.errstate(divide="ignore"):  # the start token has probability 0
            logs = [np.log(values) for values in (unigrams, bigram, left1, trigram, left2)]
        return cls(vocabulary, logs[0], bigrams, logs[1], contexts1, logs[2], trigrams, logs[3], contexts2, logs[4])

    def log_prob(self, captions: Sequence[str]) -> tuple[FloatArray, IntArray]:
        """Return the total natural log-probability and the number of tokens of each caption.

        Returns:
            float64 (n,), each below 0, and int64 (n,), counting words, punctuation marks and the end of the caption.
        """
        return self.log_prob_encoded(*self.vocabulary.encode([tokenize(caption) for caption in captions]))

    def log_prob_encoded(self, flat: IntArray, lengths: IntArray) -> tuple[FloatArray, IntArray]:
        """Return `log_prob` of captions encoded by the vocabulary."""
        keys, owner = trigram_keys(flat, lengths)
        distinct, place = np.unique(keys, return_inverse=True)  # texts repeat, and sorted keys are found faster
        total = np.bincount(owner, weights=self._log_prob_of(distinct)[place], minlength=len(lengths))
        return np.asarray(total, np.float64), lengths + 1

    def next_word(self, before: str) -> dict[str, float]:
        """Return the probability of each word after the text ``before``; the probabilities sum to one.

        Keys are the known words, ``<end>`` for the end of the caption and ``<unknown>`` for any other word.
        """
        flat, _ = self.vocabulary.encode([tokenize(before)])
        context = np.concatenate([np.array([START, START]), flat])[-2:]
        following = np.concatenate([np.array([UNKNOWN, END]), np.arange(SPECIAL, len(self.vocabulary))])
        keys = (int(context[0]) << 2 * ID_BITS) | (int(context[1]) << ID_BITS) | following
        names = ["<unknown>", "<end>", *self.vocabulary.words]
        return dict(zip(names, np.exp(self._log_prob_of(keys)).tolist(), strict=True))

    def _log_prob_of(self, keys: IntArray) -> FloatArray:
        pairs, last = keys & _LAST_TWO, keys & _LAST
        rest = lookup_sorted(self.contexts1, self.backoff1, pairs >> ID_BITS, 0.0) + self.unigrams[last]
        rest = lookup_sorted(self.bigrams, self.bigram_log, pairs, rest)
        rest = lookup_sorted(self.contexts2, self.backoff2, keys >> ID_BITS, 0.0) + rest
        return lookup_sorted(self.trigrams, self.trigram_log, keys, rest)

    @property
    def fingerprint(self) -> str:
        """Hash of the model, 32 hex digits; equal for equal models."""
        hasher = hashlib.blake2b("\n".join(self.vocabulary.words).encode("utf-8", "surrogatepass"), digest_size=16)
        for name in ARRAYS:
            hasher.update(getattr(self, name).tobytes())
        return hasher.hexdigest()

    def save(self, path: Path) -> None:
        """Write the model to a ``.npz`` file atomically; equal models give equal bytes."""
        text = "\n".join(self.vocabulary.words).encode("utf-8", "surrogatepass")
        arrays = {name: getattr(self, name) for name in ARRAYS}
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(
                handle,
                format=np.array([FORMAT_VERSION]),
                words=np.frombuffer(text, dtype=np.uint8),
                fingerprint=np.frombuffer(bytes.fromhex(self.fingerprint), dtype=np.uint8),
                **arrays,
            )

    @classmethod
    def load(cls, path: Path) -> "TrigramModel":
        """Read a model that `save` wrote.

        Raises:
            StorageError: the file is missing, corrupt, of another format, or modified.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                text = stored["words"].tobytes().decode("utf-8", "surrogatepass")
                model = cls(Vocabulary(tuple(text.split("\n")) if text else ()), *(stored[name] for name in ARRAYS))
                intact = (
                    stored["format"][0] == FORMAT_VERSION and stored["fingerprint"].tobytes().hex() == model.fingerprint
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path}: not a language model ({error}). Train it again.") from None
        if not intact:
            raise StorageError(f"{path}: the language model was changed or is of another version. Train it again.")
        return model


def trigram_keys(flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return the trigram key of each word and end of encoded captions, and the index of its caption.

    Each caption is padded with two start tokens.
    """
    owner_of_word = np.repeat(np.arange(len(lengths)), lengths)
    padded = np.full(len(flat) + 3 * len(lengths), START, dtype=np.int64)
    padded[np.arange(len(flat)) + 3 * owner_of_word + 2] = flat
    padded[np.cumsum(lengths + 3) - 1] = END
    keys = (padded[:-2] << 2 * ID_BITS) | (padded[1:-1] << ID_BITS) | padded[2:]
    owner = np.repeat(np.arange(len(lengths)), lengths + 3)[2:]
    real = padded[2:] != START
    return keys[real], owner[real]


class ContextCounts(NamedTuple):
    """What follows each context.

    Attributes:
        contexts: ascending keys of the contexts.
        total: int64, the sum of the counts of what follows.
        classes: int64 (n, 3), how many different words follow with a count of 1, of 2, and of 3 or more.
    """

    contexts: IntArray
    total: IntArray
    classes: IntArray

    def left(self, discounts: FloatArray) -> FloatArray:
        """Return the share of each context that discounts leave to shorter contexts, float64 (n,)."""
        return sum_discounts(discounts, self.classes) / self.total


def count_contexts(keys: IntArray, counts: IntArray) -> tuple[ContextCounts, IntArray]:
    """Return the contexts of ascending keys, and the place of the context of each key."""
    contexts = keys >> ID_BITS
    first = np.ones(len(keys), np.bool_)
    first[1:] = contexts[1:] != contexts[:-1]
    starts, owner = np.flatnonzero(first), np.cumsum(first) - 1
    total = np.add.reduceat(counts, starts) if len(keys) else np.zeros(0, np.int64)
    classes = np.bincount(4 * owner + np.minimum(counts, 3), minlength=4 * len(starts)).reshape(-1, 4)[:, 1:]
    return ContextCounts(contexts[starts], total, classes), owner


def count_counts(counts: IntArray) -> IntArray:
    """Return how many of these counts, all at least 1, are 1, 2, 3 and 4, int64 (4,)."""
    return np.bincount(np.minimum(counts, 5), minlength=6)[1:5]


def estimate_discounts(counted: IntArray) -> FloatArray:
    """Return the discounts for counts of 0, 1, 2, and 3 or more, float64 (4,), given `count_counts` of all n-grams.

    They are 0.5 if a tiny corpus lacks one of these counts.
    """
    n1, n2, n3, n4 = counted.tolist()
    if not all((n1, n2, n3, n4)):
        return np.array([0.0, 0.5, 0.5, 0.5])
    share = n1 / (n1 + 2 * n2)
    raw = (1 - 2 * share * n2 / n1, 2 - 3 * share * n3 / n2, 3 - 4 * share * n4 / n3)
    return np.array([0.0, *(min(max(value, 0.1), cap) for value, cap in zip(raw, (0.9, 1.9, 2.9), strict=True))])


def sum_discounts(discounts: FloatArray, classes: IntArray) -> FloatArray:
    """Return the sum of the discounts of n-grams, given how many have counts of 1, 2, and 3 or more, int64 (..., 3).

    It does not depend on the order of the n-grams, nor on how they are divided.
    """
    one, two, more = discounts[1:].tolist()
    return np.asarray(one * classes[..., 0] + two * classes[..., 1] + more * classes[..., 2], np.float64)


def unigram_probabilities(counts: IntArray, known: npt.NDArray[np.bool_] | None = None) -> FloatArray:
    """Return the probability of each id without context, float64 (n,).

    Args:
        counts: number of different words before each id.
        known: ids that may occur at all, bool (n,); by default all.
    """
    discounts = estimate_discounts(count_counts(counts[counts > 0]))
    taken = discounts[np.minimum(counts, 3)]
    possible = np.ones(len(counts)) if known is None else known.astype(np.float64)
    possible[START] = 0.0
    total = counts.sum()
    if not total:
        return np.asarray(possible / possible.sum(), np.float64)
    left = sum_discounts(discounts, np.bincount(np.minimum(counts, 3), minlength=4)[1:])
    return np.asarray((counts - taken + left * possible / possible.sum()) / total, np.float64)


def _apply_discounts(keys: IntArray, counts: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    # (contexts, discounted probability of each key in its context, backoff weight of each context); keys ascend
    found, owner = count_contexts(keys, counts)
    discounts = estimate_discounts(count_counts(counts))
    share = (counts - discounts[np.minimum(counts, 3)]) / found.total[owner]
    return found.contexts, share, found.left(discounts)
