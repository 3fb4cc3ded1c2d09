"""Character language model of captions, across word boundaries.

Interpolated Witten-Bell smoothing (Chen and Goodman, 1998, section 2.4): the probability of a character after a context
is (n(context, character) + t(context) lower) / (n(context) + t(context)), with t(context) the number of different
characters seen after the context and ``lower`` the probability under a context shorter by one; uniform at the end. An
n-gram of up to ``ORDER`` characters is one integer of 7 bits per character: fitting is sorting, scoring is binary
search.

Text is lower-cased and its whitespace normalised; characters beyond the 124 most frequent share one unknown character.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairwright.filters.scorers.shared_texts import SharedTexts, count_texts, read_code_points
from pairwright.generators.language.vocabulary import FloatArray, IntArray, lookup_sorted, sum_by_key

ORDER = 6
_BITS = 7
_BOUNDARY, _UNKNOWN, _FIRST = 0, 1, 2
_MAX_CHARACTERS = (1 << _BITS) - _FIRST


@dataclass(frozen=True, eq=False)
class CharacterModel:
    """A fitted model; create one with `fit`.

    Attributes:
        letters: the known characters, the most frequent first.
        runs: for each length 1 to ``ORDER`` the ascending keys of the n-grams seen.
        times: how often each n-gram was seen.
        before: for each length the ascending keys of the contexts, one character shorter than the n-gram.
        total: how often each context was seen.
        kinds: number of different characters that followed each context.
    """

    letters: str
    runs: tuple[IntArray, ...]
    times: tuple[IntArray, ...]
    before: tuple[IntArray, ...]
    total: tuple[IntArray, ...]
    kinds: tuple[IntArray, ...]

    @classmethod
    def fit(cls, captions: Sequence[str]) -> "CharacterModel":
        """Return the model of ``captions``; their order does not matter."""
        texts = count_texts(captions)
        counts = np.zeros(sys.maxunicode + 1, np.int64)
        for chunk in texts.chunks():
            counts += np.bincount(chunk.spell()[0], minlength=len(counts))
        ranked = np.argsort(-counts, kind="stable")[: min(_MAX_CHARACTERS, np.count_nonzero(counts))]
        letters = "".join(map(chr, ranked.tolist()))
        parts: list[tuple[IntArray, ...]] = []
        longest, seen = texts.count_keys(lambda chunk: _build_windows(*chunk.spell(), letters)[0])
        for length in range(1, ORDER + 1):
            runs, times = sum_by_key(longest & ((1 << _BITS * length) - 1), seen)
            before, total = sum_by_key(runs >> _BITS, times)
            parts.append((runs, times, before, total, sum_by_key(runs >> _BITS)[1]))
        return cls(letters, *(tuple(part) for part in zip(*parts, strict=True)))

    def log_prob(self, texts: Sequence[str]) -> tuple[FloatArray, IntArray]:
        """Return the total natural log-probability of each text, float64 (n,), and its number of characters."""
        windows, owner = _build_windows(*SharedTexts.of(texts).split.spell(), self.letters)
        keys, place = np.unique(windows, return_inverse=True)  # texts repeat, and sorted keys are found faster
        share = np.full(len(keys), 1.0 / (len(self.letters) + _FIRST))
        for length in range(1, ORDER + 1):
            part = length - 1
            run = keys & ((1 << _BITS * length) - 1)
            times = lookup_sorted(self.runs[part], self.times[part], run, 0)
            total = lookup_sorted(self.before[part], self.total[part], run >> _BITS, 0)
            kinds = lookup_sorted(self.before[part], self.kinds[part], run >> _BITS, 0)
            share = np.where(total > 0, (times + kinds * share) / np.maximum(total + kinds, 1), share)
        total = np.bincount(owner, weights=np.log(share)[place], minlength=len(texts))
        return np.asarray(total, np.float64), np.bincount(owner, minlength=len(texts)).astype(np.int64)


def _build_windows(points: IntArray, lengths: IntArray, letters: str) -> tuple[IntArray, IntArray]:
    # The key of the ORDER characters up to each position, the end included, and the number of the text, of texts given
    # as code points.
    owner = np.repeat(np.arange(len(lengths)), lengths)
    known = np.argsort(read_code_points(letters), kind="stable")
    codes = lookup_sorted(read_code_points(letters)[known], known + _FIRST, points, _UNKNOWN)
    margin = ORDER - 1
    row = np.full(len(codes) + (margin + 1) * len(lengths), _BOUNDARY, np.int64)
    row[np.arange(len(codes)) + (margin + 1) * owner + margin] = codes
    keys = np.zeros(max(len(row) - margin, 0), np.int64)
    for place in range(ORDER):
        keys = keys << _BITS | row[place : place + len(keys)]
    text = np.repeat(np.arange(len(lengths)), lengths + margin + 1)[margin:]
    inside = np.ones(len(row), np.bool_)
    starts = np.cumsum(lengths + margin + 1) - (lengths + margin + 1)
    for place in range(margin):
        inside[starts + place] = False
    return keys[inside[margin:]], text[inside[margin:]]
