"""Sampling of edits by weight, so that a word classifier cannot detect edited captions.

A proposal that replaces a by b is drawn with a weight of

    p(b | context) / p(a | context) * exp(balance(b) - balance(a))

among all proposals of the caption. The first factor prefers contexts in which captions could as well have b (detailed
balance, as Metropolis et al. 1953 choose their steps). It does not suffice: likely words are often true and so removed
by truth constraints. The second factor compensates: `word_balance` learns on the pool how to insert each word as often
as it is replaced. Where only unbalanced edits are left, it is better to write none (`floors.NULL_WEIGHTS`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.proposals import FloatArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


def order_by_weight(
    log_weights: FloatArray, sizes: Sequence[int], seeds: Sequence[int], null: float = 0.0
) -> list[list[int]]:
    """Return the indices of each group in random order, drawn without replacement by weight.

    Args:
        log_weights: natural logarithms of the weights, group by group.
        sizes: sizes of the groups.
        seeds: a 64-bit seed for each group.
        null: weight of drawing nothing, the index behind the last one of each group; 0 for no such index.
    """
    if not len(log_weights):
        return [[] for _ in sizes]
    if null:
        log_weights = np.insert(log_weights, np.cumsum(sizes), np.float32(np.log(null)))
        sizes = [size + 1 for size in sizes]
    group = np.repeat(np.arange(len(sizes)), sizes)
    ends = np.cumsum(sizes, dtype=np.int64)
    within = np.arange(len(group)) - (ends - sizes)[group]
    # Exponential waiting times: the shortest is that of i with probability weight_i / sum of weights.
    waiting = np.log(-np.log(uniform(np.array(seeds, np.uint64)[group], within))) - log_weights
    order = within[np.lexsort((waiting, group))].tolist()
    return [order[end - size : end] for size, end in zip(sizes, ends.tolist(), strict=True)]


def uniform(seeds: npt.NDArray[np.uint64], at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the uniform random numbers in (0, 1) at positions ``at`` of seeded streams (SplitMix64: Steele et al. 2014)."""
    state = seeds + _GOLDEN * (at + 1).astype(np.uint64)  # arrays wrap around silently
    state = (state ^ (state >> np.uint64(30))) * _MIX1
    state = (state ^ (state >> np.uint64(27))) * _MIX2
    state = (state ^ (state >> np.uint64(31))) >> np.uint64(11)
    return np.asarray(state.astype(np.float64) * _TO_UNIT + _TO_UNIT / 2, np.float64)


def balance_of_targets(targets: Sequence[str], by_word: Mapping[str, float]) -> FloatArray:
    """Return the balance of each target: the sum over its words."""
    return np.array([sum(by_word.get(word, 0.0) for word in target.split()) for target in targets], np.float32)
