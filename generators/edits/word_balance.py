"""Word balance: weights with which every word is inserted about as often as it is replaced.

A classifier that sees many edited texts learns which words were inserted more often than replaced. The *balance* of a
word is added to the log-weight of proposals that insert it and subtracted from those that replace it. It is fitted on
pairs of the pool: the expected number of insertions and replacements of each word over all captions is computed, the
balance is moved towards their ratio, and this is repeated. It depends on the captions and the constraints, not on a
random draw.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pairwright.generators.edits.proposals import IntArray

ROUNDS = 25  # words compete within captions, so that one step is not exact
_STEP = 0.5  # a word's balance raises one count and lowers the other: half the log ratio equates them
_PRIOR = 5.0  # insertions and replacements added to the expected numbers of each word
_LIMIT = 5.0  # maximum absolute balance


ALLOWED: Final = np.dtype([("caption", "i8"), ("old", "i8"), ("new", "i8"), ("log_ratio", "f4")])
"""Proposals of one type that no constraint rejects, of many captions: number of the caption (ascending), indices of the
replaced and of the inserted word into the targets, and natural logarithm of p(new | context) / p(old | context)."""

AllowedProposals = npt.NDArray[np.void]  # of `ALLOWED`


def learn_balance(targets: Sequence[str], allowed: AllowedProposals, null: float = 0.0) -> dict[str, float]:
    """Return the balance of each word of the targets; the balance of a target is the sum over its words.

    Args:
        targets: the vocabulary.
        allowed: proposals of the captions of a pool.
        null: weight of writing nothing for a caption.
    """
    if not len(allowed):
        return {}
    words = sorted({word for target in targets for word in target.split()})
    number = {word: at for at, word in enumerate(words)}
    parts = [[number[word] for word in target.split()] for target in targets]
    count = np.zeros((len(targets), max(map(len, parts))), np.int64) - 1
    for at, row in enumerate(parts):
        count[at, : len(row)] = row
    balance = np.zeros(len(words) + 1)  # the last one, -1, pads
    starts = np.flatnonzero(np.diff(allowed["caption"], prepend=-1))
    sizes = np.diff(np.append(starts, len(allowed)))
    old, new = allowed["old"], allowed["new"]
    for _ in range(ROUNDS):
        of_target = balance[count].sum(axis=1)
        weights = allowed["log_ratio"] + of_target[new] - of_target[old]
        greatest = np.maximum.reduceat(weights, starts)
        weights = np.exp(weights - np.repeat(greatest, sizes))
        share = weights / np.repeat(np.add.reduceat(weights, starts) + null * np.exp(-greatest), sizes)
        inserted = _expected(count[new], share, len(words))
        replaced = _expected(count[old], share, len(words))
        balance[:-1] += _STEP * np.log((replaced + _PRIOR) / (inserted + _PRIOR))
        balance[:-1] = balance[:-1].clip(-_LIMIT, _LIMIT)
    return {word: round(float(balance[at]), 4) for word, at in number.items() if abs(balance[at]) >= 0.0001}


def _expected(words: IntArray, share: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Return the expected number of proposals drawn that have each word."""
    total = np.zeros(size + 1)
    for column in words.T:
        total += np.bincount(np.where(column < 0, size, column), share, size + 1)
    return total[:size]
