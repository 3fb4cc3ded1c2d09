"""Word balance: weights with which every word is inserted about as often as it is replaced.

A classifier that sees many edited texts learns which words were inserted more often than replaced. The *balance* of a
word is added to the log-weight of proposals that insert it and subtracted from those that replace it. It is fitted on
pairs of the pool: the expected number of insertions and replacements of each word over all captions is computed, the
balance is moved towards their ratio, and this is repeated. It depends on the captions and the constraints, not on a
random draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.generators.edits.proposals import FloatArray, IntArray

ROUNDS = 25
_STEP = 0.5
_PRIOR = 5.0  # insertions and replacements added to the expected numbers of each word
_LIMIT = 5.0  # maximum absolute balance


@dataclass(frozen=True, slots=True)
class AllowedProposals:
    """Proposals of one kind that no constraint rejects, of many captions; arrays of one entry a proposal.

    Attributes:
        caption: number of the caption, ascending, int64.
        old: index of the replaced word into the targets, int64.
        new: index of the inserted word into the targets, int64.
        log_ratio: natural logarithm of p(new | context) / p(old | context), float32.
    """

    caption: IntArray
    old: IntArray
    new: IntArray
    log_ratio: FloatArray

    @classmethod
    def joined(cls, parts: "Sequence[AllowedProposals]") -> "AllowedProposals":
        """Return the proposals of all parts, in order; none without parts."""
        empty = cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
        every = [empty, *parts]
        return cls(*(np.concatenate([getattr(each, field.name) for each in every]) for field in fields(cls)))

    def save(self, path: Path) -> None:
        """Write the arrays to an .npz file atomically."""
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(handle, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Path) -> "AllowedProposals":
        """Read a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            return cls(**{field.name: stored[field.name] for field in fields(cls)})


def learn_balance(targets: Sequence[str], allowed: AllowedProposals) -> dict[str, float]:
    """Return the balance of each word of the targets; the balance of a target is the sum over its words.

    Args:
        targets: the vocabulary.
        allowed: proposals of the captions of a pool.
    """
    if not len(allowed.caption):
        return {}
    words = sorted({word for target in targets for word in target.split()})
    number = {word: at for at, word in enumerate(words)}
    parts = [[number[word] for word in target.split()] for target in targets]
    count = np.zeros((len(targets), max(map(len, parts))), np.int64) - 1
    for at, row in enumerate(parts):
        count[at, : len(row)] = row
    balance = np.zeros(len(words) + 1)  # the last one, -1, pads
    starts = np.flatnonzero(np.diff(allowed.caption, prepend=-1))
    sizes = np.diff(np.append(starts, len(allowed.caption)))
    for _ in range(ROUNDS):
        of_target = balance[count].sum(axis=1)
        weights = allowed.log_ratio + of_target[allowed.new] - of_target[allowed.old]
        weights = np.exp(weights - np.repeat(np.maximum.reduceat(weights, starts), sizes))
        share = weights / np.repeat(np.add.reduceat(weights, starts), sizes)
        inserted = _expected(count[allowed.new], share, len(words))
        replaced = _expected(count[allowed.old], share, len(words))
        balance[:-1] += _STEP * np.log((replaced + _PRIOR) / (inserted + _PRIOR))
        balance[:-1] = balance[:-1].clip(-_LIMIT, _LIMIT)
    return {word: round(float(balance[at]), 4) for word, at in number.items() if abs(balance[at]) >= 0.0001}


def _expected(words: IntArray, share: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Return the expected number of proposals drawn that have each word."""
    total = np.zeros(size + 1)
    for column in words.T:
        total += np.bincount(np.where(column < 0, size, column), share, size + 1)
    return total[:size]
