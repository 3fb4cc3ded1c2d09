"""Hashed text features: words, pairs of adjacent words, and character n-grams of words.

A text is normalised (NFKC, case folded) and split into words, runs of at most 32 letters, digits or underscores. Each
word gives its 3- to 5-grams over ``<word>``, so "surfboards" shares most of its features with "surfboard". A text without
words ("!!!", an emoji, the empty text) has one feature: the stripped text.

A feature is a 52-bit BLAKE2b hash, so no vocabulary is stored and texts of any language have features. Its *kind* (word,
pair, n-gram) is stored with it, since the kinds are weighted separately.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORD, PAIR, NGRAM = 0, 1, 2
KINDS = 3
MAX_TEXTS = 1024  # texts per call of `hash_features`: 10 bits of a packed feature

_HASH_BITS, _KIND_BITS = 52, 2
_HASH_MASK = np.uint64((1 << _HASH_BITS) - 1)
_KIND_MASK = np.uint64((1 << _KIND_BITS) - 1)
_WORD_PATTERN = re.compile(r"\w{1,32}")
_NGRAM_LENGTHS = (3, 4, 5)
_WORD_CACHE_SIZE = 1 << 17

_word_cache: dict[str, NDArray[np.uint64]] = {}


@dataclass(frozen=True)
class HashedFeatures:
    """Features of a chunk of texts: each (text, kind, hash) once, in that order.

    Attributes:
        rows: position of the text, int64 (n,).
        kinds: WORD, PAIR or NGRAM, int64 (n,).
        hashes: in [0, 2**52), uint64 (n,).
        counts: occurrences in the text, int64 (n,).
    """

    rows: NDArray[np.int64]
    kinds: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]


def normalise_text(text: str) -> str:
    """Return a text in NFKC, case folded and stripped."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold().strip()


def hash_features(texts: Sequence[str]) -> HashedFeatures:
    """Return the features of at most `MAX_TEXTS` texts; every text has at least one."""
    assert len(texts) <= MAX_TEXTS
    joined, rows = _pack_features([normalise_text(text) for text in texts])
    # One 64-bit number per feature (10 bits of row, 2 of kind, 52 of hash), counted by one sort.
    packed, counts = np.unique(joined | (rows << np.uint64(_HASH_BITS + _KIND_BITS)), return_counts=True)
    return HashedFeatures(
        rows=(packed >> np.uint64(_HASH_BITS + _KIND_BITS)).astype(np.int64),
        kinds=((packed >> np.uint64(_HASH_BITS)) & _KIND_MASK).astype(np.int64),
        hashes=packed & _HASH_MASK,
        counts=counts.astype(np.int64),
    )


def split_words(text: str) -> list[str]:
    """Return the words of a text, normalised, in order."""
    return _WORD_PATTERN.findall(normalise_text(text))


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return mixed 64 bits of each value (finaliser of SplitMix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _pack_features(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return ``kind << 52 | hash`` of every occurrence of a feature in normalised texts, and the text's position."""
    words = [_WORD_PATTERN.findall(text) for text in texts]
    features = [_word_features(word) for each in words for word in each]
    sizes = np.array([len(each) for each in features], np.int64)
    of_words = np.concatenate(features) if features else np.empty(0, np.uint64)
    text_of_word = np.repeat(np.arange(len(texts), dtype=np.uint64), [len(each) for each in words])
    heads = of_words[np.cumsum(sizes) - sizes]
    # Multiplying one side keeps "dog man" and "man dog" apart.
    pairs = mix_bits(heads[:-1] * np.uint64(0x9E3779B97F4A7C15) + heads[1:]) & _HASH_MASK
    within = text_of_word[1:] == text_of_word[:-1]
    wordless = [number for number, each in enumerate(words) if not each]
    whole = np.array([_hash(texts[number], "text") for number in wordless], np.uint64)  # kind WORD
    return (
        np.concatenate([of_words, pairs[within] | np.uint64(PAIR << _HASH_BITS), whole]),
        np.concatenate([np.repeat(text_of_word, sizes), text_of_word[1:][within], np.array(wordless, np.uint64)]),
    )


def _word_features(word: str) -> NDArray[np.uint64]:
    """Return the packed features of a word: the word, then its n-grams."""
    found = _word_cache.get(word)
    if found is None:
        marked = f"<{word}>"
        ngrams = (marked[i : i + n] for n in _NGRAM_LENGTHS for i in range(len(marked) - n + 1))
        found = np.array(
            [_hash(word, "word"), *((NGRAM << _HASH_BITS) | _hash(ngram, "ngram") for ngram in ngrams)], np.uint64
        )
        if len(_word_cache) >= _WORD_CACHE_SIZE:
            _word_cache.clear()
        _word_cache[word] = found
    return found


def _hash(text: str, kind: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind.encode()).digest()
    return int.from_bytes(digest, "little") >> (64 - _HASH_BITS)
