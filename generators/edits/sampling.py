"""Sampling of edits, such that the words of the edited captions do not tell that they were edited.

A proposal that replaces a by b is drawn with a weight of

    p(b | context) / p(a | context) * exp(balance(b) - balance(a))

among all proposals of the caption. The first factor prefers places in which captions could as well say b (detailed
balance, as Metropolis et al. 1953 choose their steps). It does not suffice: what is true of an image is what captions
are likely to say, so truth constraints remove likely words. The second factor makes up for it: `word_balance` learns on
the pool how to insert each word as often as it is replaced.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.proposals import FloatArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


def order_by_weight(log_weights: FloatArray, seed: int) -> Iterator[int]:
    """Yield indices in random order, each next one drawn by weight; weights are natural logarithms."""
    if not len(log_weights):
        return
    # Exponential waiting times: the shortest is that of i with probability weight_i / sum of weights.
    waiting = np.log(-np.log(uniform(seed, len(log_weights)))) - log_weights
    yield from np.argsort(waiting, kind="stable").tolist()


def uniform(seed: int, count: int) -> npt.NDArray[np.float64]:
    """Return ``count`` numbers in (0, 1) of the stream of a seed (SplitMix64: Steele et al. 2014)."""
    state = np.uint64(seed) + _GOLDEN * np.arange(1, count + 1, dtype=np.uint64)  # arrays wrap around silently
    state = (state ^ (state >> np.uint64(30))) * _MIX1
    state = (state ^ (state >> np.uint64(27))) * _MIX2
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * _TO_UNIT + _TO_UNIT / 2


def balance_of_targets(targets: Sequence[str], by_word: Mapping[str, float]) -> FloatArray:
    """Return the balance of each target: that of the whole, or of its words together."""
    return np.array([sum(by_word.get(word, 0.0) for word in target.split()) for target in targets], np.float32)
