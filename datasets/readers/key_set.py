"""Set of seen keys in eight bytes per key.

Keys are 128-bit hashes in hex; their first 64 bits are stored in sorted NumPy arrays (runs). A batch is looked up in every
run by bisection and becomes a new run; runs of similar size are merged, so that n keys are in at most log2(n) runs and
each is moved log2(n) times.

A Python set of the strings takes over 100 bytes per key. Limits: 8 bytes per key at rest, 16 while the largest runs merge. Two keys
with equal first 64 bits count as a repetition: the probability of any is n²/2⁶⁵ (3e-8 for a million keys, 3e-4 for a
hundred million).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

HashPrefixes = NDArray[np.uint64]


class KeySet:
    """A growing set of keys."""

    def __init__(self) -> None:
        self._runs: list[HashPrefixes] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def nbytes(self) -> int:
        """Bytes held at rest."""
        return sum(run.nbytes for run in self._runs)

    def add(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Add ``keys`` and return which of them had been seen.

        Args:
            keys: each at least 16 hex digits.

        Returns:
            One boolean per key: true if it was added by an earlier call, or occurs earlier in ``keys``.
        """
        prints = hash_prefixes(keys)
        order = np.argsort(prints, kind="stable")
        ordered = prints[order]
        repeated = np.zeros(len(prints), dtype=np.bool_)
        repeated[1:] = ordered[1:] == ordered[:-1]
        for run in self._runs:
            # Clip the index past the end: the last entry is smaller there and does not match.
            found = np.minimum(np.searchsorted(run, ordered), len(run) - 1)
            repeated |= run[found] == ordered
        self._append(ordered[~repeated])
        seen = np.empty_like(repeated)
        seen[order] = repeated
        return seen

    def _append(self, run: HashPrefixes) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort()
        self._runs.append(run)


def hash_prefixes(keys: Sequence[str]) -> HashPrefixes:
    """Return the first 64 bits of each key, uint64 (n,)."""
    digits = bytes.fromhex("".join([key[:16] for key in keys]))
    return np.frombuffer(digits, dtype=">u8").astype(np.uint64)
