"""Random number generators as functions of names: equal names give equal numbers on any machine and worker count.

There is no global generator in pairwright. Code that needs random numbers names their purpose and gets its own
generator, so the order of rows and the number of workers change nothing.
"""

import hashlib
import random

import numpy as np


def _digest(names: tuple[str | int, ...], size: int) -> int:
    # Length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
    parts = [str(name).encode() for name in names]
    data = b"".join([len(part).to_bytes(4, "little") + part for part in parts])
    return int.from_bytes(hashlib.blake2b(data, digest_size=size).digest(), "little")


def make_rng(*names: str | int) -> random.Random:
    """Return the generator of ``names``, in the order (seed, epoch, generator, version, key, ordinal).

    Args:
        names: strings and integers; trailing ones that do not apply are omitted.

    Returns:
        A new ``random.Random``.
    """
    return random.Random(_digest(names, 16))


def make_numpy_rng(*names: str | int) -> np.random.Generator:
    """Return the NumPy generator of ``names``, for whole arrays."""
    return np.random.Generator(np.random.PCG64(_digest(names, 16)))


def hash_to_int(*names: str | int) -> int:
    """Return a 128-bit hash of ``names``, to order rows by: as random as `make_rng`, without the cost of a generator."""
    return _digest(names, 16)
