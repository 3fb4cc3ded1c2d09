"""Pair keys as 16 bytes each: duplicate check and lookup with bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError

KeyArray = NDArray[np.uint8]

_MAX_SORTED_KEYS = 2**24  # keys sorted at a time: 0.6 GB including the sort
_CHUNK = 2**20  # keys read at a time
_MIX = np.uint64(0x9E3779B97F4A7C15)  # bits of the golden ratio


@dataclass(frozen=True)
class PartKeys:
    """Keys of the entries of a part.

    Attributes:
        where: folder of the part, for messages.
        keys: keys of the entries, uint8 (n, 16), memory-mapped.
        captions: caption index of each entry, uint16 (n,), memory-mapped; None if every pair has one entry.
    """

    where: Path
    keys: KeyArray
    captions: NDArray[np.uint16] | None = None

    def chunks(self) -> Iterator[KeyArray]:
        """Yield the keys of the pairs in chunks, each pair once."""
        for start in range(0, len(self.keys), _CHUNK):
            some = slice(start, start + _CHUNK)
            yield self.keys[some] if self.captions is None else self.keys[some][self.captions[some] == 0]


def encode_keys(keys: Sequence[str]) -> KeyArray:
    """Return hexadecimal keys as bytes, uint8 (n, 16).

    Raises:
        InputError: if a key is not 32 hexadecimal digits.
    """
    try:
        data = b"".join(map(bytes.fromhex, keys))
    except ValueError:
        data = b""
    if len(data) != 16 * len(keys) or any(len(key) != 32 for key in keys):
        wrong = next(key for key in keys if not _is_key(key))
        raise InputError(f"{wrong!r} is not a pair key", where="index", fix="Keys are 32 hexadecimal digits.")
    return np.frombuffer(data, np.uint8).reshape(-1, 16)


def check_unique_keys(parts: Sequence[PartKeys]) -> None:
    """Check that no key occurs twice in ``parts`` of one modality.

    Keys are hashed into as many rounds as bounded memory requires; each round reads them all.

    Raises:
        InputError: for a duplicate key, naming the parts that hold it.
    """
    rounds = max(1, -(-sum(len(part.keys) for part in parts) // _MAX_SORTED_KEYS))
    for number in range(rounds):
        found = [(which, piece) for which, part in enumerate(parts) for piece in _keys_of_round(part, number, rounds)]
        words = np.concatenate([piece for _, piece in found])
        owners = np.repeat(np.array([which for which, _ in found]), [len(piece) for _, piece in found])
        order = np.lexsort((words[:, 1], words[:, 0]))
        same = np.flatnonzero((words[order[1:]] == words[order[:-1]]).all(axis=1))
        if len(same):
            first, second = sorted(int(owners[order[same[0] + step]]) for step in (0, 1))
            _raise_duplicate(words[order[same[0]]], parts[first].where, parts[second].where)


def find_known_keys(parts: Sequence[PartKeys], keys: KeyArray) -> NDArray[np.bool_]:
    """Return a mask (n,) of the ``keys``, uint8 (n, 16), that are in ``parts``."""
    wanted = np.ascontiguousarray(keys).view("S16")[:, 0]
    ordered, places_of = np.unique(wanted, return_inverse=True)
    found = np.zeros(len(ordered), np.bool_)
    for part in parts:
        for chunk in part.chunks():
            known = np.ascontiguousarray(chunk).view("S16")[:, 0]
            places = np.minimum(np.searchsorted(ordered, known), len(ordered) - 1)
            found[places[ordered[places] == known]] = True
    return found[places_of]


def _keys_of_round(part: PartKeys, number: int, rounds: int) -> Iterator[NDArray[np.uint64]]:
    for chunk in part.chunks():
        words = _key_words(chunk)
        if rounds > 1:  # keys are usually hashes, but need not be
            words = words[((words[:, 0] * _MIX) ^ words[:, 1]) % np.uint64(rounds) == number]
        yield words


def _key_words(keys: KeyArray) -> NDArray[np.uint64]:
    """Return keys as two uint64 each, (n, 2), in the order of their hexadecimal form."""
    return np.ascontiguousarray(keys).view(">u8").astype(np.uint64)


def _is_key(key: str) -> bool:
    try:
        return len(key) == 32 and len(bytes.fromhex(key)) == 16
    except ValueError:
        return False


def _raise_duplicate(words: NDArray[np.uint64], first: Path, second: Path) -> None:
    key = "".join(f"{int(word):016x}" for word in words)
    if first == second:
        raise InputError("duplicate pair key", where=f"pair {key}", fix="Remove duplicate pairs from the input.")
    raise InputError(
        f"in {first} and in {second}",
        where=f"pair {key}",
        fix="Remove it from one of the inputs and rebuild that index.",
    )
