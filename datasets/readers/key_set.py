"""Which keys have been seen, in eight bytes a key.

Keys are 128-bit hashes in hex; their first 64 bits are kept, as sorted NumPy runs. A batch is looked up in
every run by bisection and becomes a run of its own; runs of similar size are merged, so that n keys lie in
at most log2(n) runs and each is moved log2(n) times.

Limits: 8 bytes a key at rest, 16 while the largest runs merge. Two different keys with the same 64 bits are
taken for a repetition: the chance that this happens at all is n²/2⁶⁵ (3e-8 for a million keys, 3e-4 for a
hundred million).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

HashPrefixes = NDArray[np.uint64]


class KeySet:
    """A growing set of keys that can only be asked and added to."""

    def __init__(self) -> None:
        self._runs: list[HashPrefixes] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def nbytes(self) -> int:
        """Bytes held at rest."""
        return sum(run.nbytes for run in self._runs)

    def add(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Add ``keys`` and say which of them had been seen.

        Args:
            keys: each at least 16 hex digits.

        Returns:
            One boolean a key: true when it was added by an earlier call, or stands earlier in ``keys``.
        """
        prints = _hash_prefixes(keys)
        order = np.argsort(prints, kind="stable")
        ordered = prints[order]
        repeated = np.zeros(len(prints), dtype=np.bool_)
        repeated[1:] = ordered[1:] == ordered[:-1]
        for run in self._runs:
            # The index past the end is clipped: the last entry is then smaller and does not match.
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


def _hash_prefixes(keys: Sequence[str]) -> HashPrefixes:
    digits = bytes.fromhex("".join([key[:16] for key in keys]))
    return np.frombuffer(digits, dtype=">u8").astype(np.uint64)
