"""Chance as a function: the same names give the same random stream, on any machine, for any worker count.

There is no global generator anywhere in pairwright. Whoever needs chance names what it is for, and gets
a stream of its own; so the order in which rows are worked on, and by how many workers, changes nothing.
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
    """Return the random stream of ``names``, in the order (seed, epoch, generator, version, key, ordinal).

    Args:
        names: strings and integers; leave out trailing ones that do not apply.

    Returns:
        A ``random.Random`` that nobody else holds.
    """
    return random.Random(_digest(names, 16))


def make_numpy_rng(*names: str | int) -> np.random.Generator:
    """Return the NumPy generator of ``names``, for chance over whole arrays."""
    return np.random.Generator(np.random.PCG64(_digest(names, 16)))


def hash_to_int(*names: str | int) -> int:
    """Return 128 bits of ``names``, to order rows by: as random as `stream`, without the cost of a generator."""
    return _digest(names, 16)
