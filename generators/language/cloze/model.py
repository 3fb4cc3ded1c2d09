"""Cloze model of captions: the probability of every word or phrase in a slot, from the words around the slot.

One small network per slot kind (`context.SLOT_KINDS`), as in Bengio et al. (2003): the vectors of the words at each
position and the sum of those in the bag, divided by the root of their number, pass through one hidden layer of
rectified units and a softmax over the targets of the kind. The networks share nothing, so each is trained alone.

A row of `ClozeNetwork.log_probs` is bitwise the same in any batch: products are taken in blocks of `_BLOCK` rows,
filled up with empty ones, so that each row passes through the same instructions. Weights are float16 values, so that a
model that was saved and loaded gives the same rows.
"""

import hashlib
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.cloze.context import HEADS, MAX_BAG, REACH, SLOT_KINDS, ClozeContext

Weights = NDArray[np.float32]
WordIds = NDArray[np.int32]

FORMAT_VERSION: Final = 2
PAD, UNKNOWN, FIRST_WORD = 0, 1, 2  # word ids: beyond an end of the caption, not in the vocabulary, first real word
POSITIONS: Final = 2 * REACH + HEADS
# Rows of a product. Every kernel of OpenBLAS treats four rows alike; of 16, Haswell's treats the last four differently.
_BLOCK: Final = 4
_CHUNK: Final = 128 * _BLOCK  # rows that are computed at once, to stay in the cache
_ARRAYS: Final = ("vectors", "hidden", "hidden_bias", "output", "output_bias")


class WordIndex(dict[str, int]):
    """Ids of context words; an unlisted word is `UNKNOWN`."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__({word: number for number, word in enumerate(words, FIRST_WORD)})

    def __missing__(self, word: str) -> int:
        return UNKNOWN


@dataclass(frozen=True, eq=False)
class ClozeNetwork:
    """The network of a slot kind; created by `training.train_network`.

    Attributes:
        words: context words with a vector, from id `FIRST_WORD` on.
        targets: what can stand in a slot of the kind; column j of the output is ``targets[j]``.
        vectors: float32 (FIRST_WORD + len(words), d); the row of `PAD` is zero.
        hidden: float32 ((POSITIONS + 1) * d, h).
        hidden_bias: float32 (h,).
        output: float32 (h, len(targets)).
        output_bias: float32 (len(targets),).
    """

    words: tuple[str, ...]
    targets: tuple[str, ...]
    vectors: Weights
    hidden: Weights
    hidden_bias: Weights
    output: Weights
    output_bias: Weights

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Column of each target."""
        return {target: column for column, target in enumerate(self.targets)}

    @cached_property
    def word_index(self) -> WordIndex:
        """Id of each context word."""
        return WordIndex(self.words)

    def log_probs(self, contexts: Sequence[ClozeContext]) -> Weights:
        """Return the natural log-probability of every target in every context, float32 (n, len(targets)).

        A row does not depend on the other contexts, bit by bit.
        """
        found = np.empty((_fill_up(len(contexts)), len(self.targets)), np.float32)
        if self.targets and contexts:
            with limit_blas_to_one_thread():
                for start in range(0, len(contexts), _CHUNK):
                    self._score(contexts[start : start + _CHUNK], found[start : start + _CHUNK])
        return found[: len(contexts)]

    def _score(self, contexts: Sequence[ClozeContext], out: Weights) -> None:
        ids = np.zeros((len(out), POSITIONS + MAX_BAG), np.int32)
        ids[: len(contexts)] = encode_contexts(self.word_index, contexts)
        inputs = layer_input(self.vectors, ids).reshape(-1, _BLOCK, len(self.hidden))
        hidden = inputs @ self.hidden
        hidden += self.hidden_bias
        np.maximum(hidden, 0, out=hidden)
        np.matmul(hidden, self.output, out=out.reshape(-1, _BLOCK, out.shape[1]))
        out += self.output_bias
        out -= out.max(1, keepdims=True)
        out -= np.log(np.exp(out).sum(1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ClozeModel:
    """The networks of slot kinds, mostly all; created by `training.train_cloze_model` or `load`."""

    networks: Mapping[str, ClozeNetwork]

    def targets(self, kind: str) -> tuple[str, ...]:
        """Return the targets of a slot kind, in the order of the columns of `log_probs`."""
        return self.networks[kind].targets

    def index(self, kind: str) -> Mapping[str, int]:
        """Return the column of each target of a slot kind."""
        return self.networks[kind].index

    def log_probs(self, kind: str, contexts: Sequence[ClozeContext]) -> Weights:
        """Return `ClozeNetwork.log_probs` of a slot kind."""
        return self.networks[kind].log_probs(contexts)

    @cached_property
    def digest(self) -> str:
        """Hash of the model, 32 hex digits; equal for equal models."""
        hasher = hashlib.blake2b(digest_size=16)
        for name, array in sorted(self._stored().items()):
            hasher.update(f"{name} {array.shape}".encode())
            hasher.update(array.tobytes())
        return hasher.hexdigest()

    def _stored(self) -> dict[str, Any]:
        stored: dict[str, Any] = {}
        for kind, network in self.networks.items():
            stored[f"{kind}.words"], stored[f"{kind}.targets"] = _to_bytes(network.words), _to_bytes(network.targets)
            for name in _ARRAYS:
                stored[f"{kind}.{name}"] = getattr(network, name).astype(np.float16)
        return stored

    def save(self, path: Path) -> None:
        """Write the model to a ``.npz`` file atomically; equal models give equal bytes."""
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez_compressed(
                handle,
                format=np.array([FORMAT_VERSION]),
                digest=np.frombuffer(bytes.fromhex(self.digest), np.uint8),
                **self._stored(),
            )

    @classmethod
    def load(cls, path: Path) -> "ClozeModel":
        """Read a model that `save` wrote.

        Raises:
            StorageError: the file is missing, corrupt, of another format, or modified.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                kinds = [kind for kind in SLOT_KINDS if f"{kind}.targets" in stored]
                model = cls({kind: _load_network(stored, kind) for kind in kinds})
                intact = stored["format"][0] == FORMAT_VERSION and stored["digest"].tobytes().hex() == model.digest
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path}: not a cloze model ({error}). Train it again.") from None
        if not intact:
            raise StorageError(f"{path}: the cloze model was changed or is of another version. Train it again.")
        return model


def round_weights(array: NDArray[np.floating[Any]]) -> Weights:
    """Return weights as they are stored: float32 with the precision of float16."""
    return array.astype(np.float16).astype(np.float32)


def encode_contexts(ids: Mapping[str, int], contexts: Sequence[ClozeContext]) -> WordIds:
    """Return the word ids of contexts, int32 (n, POSITIONS + MAX_BAG): left, right, heads, bag, each filled up with `PAD`.

    Unknown words of the bag are left out.
    """
    known = map(ids.__getitem__, chain.from_iterable(chain.from_iterable(contexts)))
    flat = np.fromiter(known, np.int32)
    widths = (REACH, REACH, HEADS, MAX_BAG)
    lengths = np.array([[len(part) for part in context] for context in contexts], np.intp).reshape(-1, len(widths))
    filled = np.concatenate(
        [np.arange(width) < length[:, None] for width, length in zip(widths, lengths.T, strict=True)], axis=1
    )
    encoded = np.full(filled.shape, PAD, np.int32)
    encoded[filled] = flat
    bag = encoded[:, POSITIONS:]
    bag[bag == UNKNOWN] = PAD
    return encoded


def layer_input(vectors: Weights, ids: WordIds) -> Weights:
    """Return what the hidden layer reads, float32 (n, (POSITIONS + 1) * d), for ids as of `encode_contexts`."""
    bag = ids[:, POSITIONS:]
    summed = vectors[bag].sum(1)
    summed *= bag_scale(bag)
    return np.concatenate([vectors[ids[:, :POSITIONS]].reshape(len(ids), -1), summed], axis=1)


def bag_scale(bag: WordIds) -> Weights:
    """Return 1 / sqrt(number of words) of each bag, float32 (n, 1); 1 for an empty one."""
    found: Weights = _SCALES[np.count_nonzero(bag, axis=1)][:, None]
    return found


_SCALES: Final = np.array([1 / math.sqrt(max(number, 1)) for number in range(MAX_BAG + 1)], np.float32)


def _fill_up(rows: int) -> int:
    return -(-rows // _BLOCK) * _BLOCK


def _to_bytes(words: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(list(words)).encode(), np.uint8)


def _from_bytes(stored: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(json.loads(stored.tobytes()))


def _load_network(stored: Mapping[str, NDArray[Any]], kind: str) -> ClozeNetwork:
    arrays = [stored[f"{kind}.{name}"].astype(np.float32) for name in _ARRAYS]
    words, targets = (_from_bytes(stored[f"{kind}.{name}"]) for name in ("words", "targets"))
    return ClozeNetwork(words, targets, *arrays)
