"""Default text encoder: TF-IDF of hashed features with a seeded random projection, without downloads.

Fitting counts the captions that contain each feature (in 2**20 buckets, 4 MB). Encoding weights the features of a text by
(1 + log tf) x idf, scales words, word pairs and n-grams to squared lengths of 0.5, 0.1 and 0.4, adds for each feature its
weight times a sparse vector of eight signs, and normalises. Coordinates and signs of a feature are computed from its hash
and the seed (a sparse Johnson-Lindenstrauss transform, Kane and Nelson 2014), without a stored matrix or vocabulary.

Dot products equal those of the full TF-IDF vectors up to an error of about 1/sqrt(dim), 0.044 at the default 512. So the
best of 100,000 unrelated texts may score 0.2 (`benchmarks/caption_retrieval.py` measures the effect). A feature unknown
to the pool counts as the rarest: a query about something unknown scores low instead of matching its template words.

On one machine the same state and text give the same bytes in any batch; between machines rows may differ in the last bits
of float32.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.rng import make_rng
from pairwright.indexes.encoders.hashed_features import KINDS, MAX_TEXTS, HashedFeatures, hash_features, mix_bits
from pairwright.indexes.encoders.protocols import Vectors

NAME = "lexical"
VERSION = 1
DEFAULT_DIM = 512

_BUCKET_BITS = 20
_SIGNS_PER_FEATURE = 8  # non-zero coordinates per feature, one in each eighth of the vector
_KIND_SHARES = np.array([0.5, 0.1, 0.4])  # shares of the squared length: words, word pairs, n-grams


DocumentFrequency = tuple[NDArray[np.uint32], int]
"""Number of captions with a feature in each bucket, uint32 (2**20,), and of all captions."""


def count_document_frequency(captions: Iterable[str]) -> DocumentFrequency:
    """Count the captions that contain each feature, streaming; counts of parts of a pool can be added."""
    frequency = np.zeros(1 << _BUCKET_BITS, np.uint32)
    total = 0
    for chunk in _chunks(captions):
        frequency += np.bincount(_buckets(hash_features(chunk)), minlength=len(frequency)).astype(np.uint32)
        total += len(chunk)
    return frequency, total


@dataclass(frozen=True, eq=False)
class LexicalEncoder:
    """A fitted lexical encoder, see the module docstring.

    Attributes:
        document_frequency: number of captions with a feature in each bucket, uint32 (2**20,).
        captions: number of captions.
        dim: length of a vector, a multiple of 8.
        seed: seed of the projection.
    """

    name: ClassVar[str] = NAME
    version: ClassVar[int] = VERSION

    document_frequency: NDArray[np.uint32]
    captions: int
    dim: int = DEFAULT_DIM
    seed: int = 0

    @classmethod
    def fit(cls, captions: Iterable[str], *, dim: int = DEFAULT_DIM, seed: int = 0) -> "LexicalEncoder":
        """Count document frequencies over ``captions``, streaming.

        Args:
            captions: captions of the pool, each once.
            dim: length of the vectors, a multiple of 8 from 64 to 8,192; memory and search time grow with it.
            seed: seed of the projection.

        Raises:
            UsageError: if ``dim`` is invalid.
            InputError: if there are no captions.
        """
        return cls.of_counts(count_document_frequency(captions), dim=dim, seed=seed)

    @classmethod
    def of_counts(cls, counts: "DocumentFrequency", *, dim: int = DEFAULT_DIM, seed: int = 0) -> "LexicalEncoder":
        """Return the encoder of counted captions; arguments and errors as of `fit`."""
        if dim % _SIGNS_PER_FEATURE or not 64 <= dim <= 8192:
            raise UsageError(f"dim {dim}: must be a multiple of {_SIGNS_PER_FEATURE} from 64 to 8192.")
        frequency, total = counts
        if not total:
            raise InputError("no captions", where="encoder", fix="Pass at least one pair with a caption.")
        return cls(frequency, total, dim, seed)

    @property
    def truncated(self) -> int:
        """Always 0: texts are never truncated."""
        return 0

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the version and the fitted state, 32 hexadecimal digits."""
        head = json.dumps([NAME, VERSION, self.dim, self.seed, self.captions])
        return hashlib.blake2b(head.encode() + self.document_frequency.tobytes(), digest_size=16).hexdigest()

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, float32 (len(texts), dim); a text without words is a single feature."""
        rows = [self._encode(hash_features(chunk), len(chunk)) for chunk in _chunks(texts)]
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def save(self, path: Path) -> None:
        """Write the fitted state to ``path`` (an .npz without pickle) atomically."""
        used = np.flatnonzero(self.document_frequency)
        head = {"name": NAME, "version": VERSION, "dim": self.dim, "seed": self.seed, "captions": self.captions}
        with replace_atomically(path) as temporary, temporary.open("wb") as handle:
            np.savez(
                handle,
                head=np.frombuffer(json.dumps({**head, "fingerprint": self.fingerprint}).encode(), np.uint8),
                buckets=used.astype(np.uint32),
                captions=self.document_frequency[used],
            )

    @classmethod
    def load(cls, path: Path) -> "LexicalEncoder":
        """Read a file that `save` wrote.

        Raises:
            StorageError: if the file is missing, damaged, or of another version.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                head = json.loads(stored["head"].tobytes())
                frequency = np.zeros(1 << _BUCKET_BITS, np.uint32)
                frequency[stored["buckets"]] = stored["captions"]
                encoder = cls(frequency, int(head["captions"]), int(head["dim"]), int(head["seed"]))
        except FileNotFoundError:
            raise StorageError(f"{path}: no such file. Build the index again.") from None
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path}: damaged encoder file ({error}). Build the index again.") from None
        if head.get("name") != NAME or head.get("version") != VERSION:
            raise StorageError(f"{path}: not of {NAME} version {VERSION}. Build the index again.")
        if head.get("fingerprint") != encoder.fingerprint:
            raise StorageError(f"{path}: the content does not match its fingerprint. Build the index again.")
        return encoder

    @cached_property
    def _idf(self) -> NDArray[np.float64]:
        # Smoothed as if one more caption had every feature; rounded, so that it does not depend on libm.
        return np.round(np.log((1 + self.captions) / (1.0 + self.document_frequency)) + 1, 9)

    @cached_property
    def _seed_bits(self) -> np.uint64:
        return np.uint64(make_rng(NAME, VERSION, self.seed).getrandbits(64))

    def _encode(self, features: HashedFeatures, rows: int) -> Vectors:
        weights = self._weights(features, rows)
        block = self.dim // _SIGNS_PER_FEATURE
        sums = np.zeros(rows * self.dim)
        first, second = self._random_bits(features.hashes)
        for part in range(_SIGNS_PER_FEATURE):
            bits = ((first, second)[part // 4] >> np.uint64(16 * (part % 4))) & np.uint64(0xFFFF)
            places = ((bits & np.uint64(0x7FFF)) * np.uint64(block) >> np.uint64(15)).astype(np.int64) + part * block
            signed = np.where(bits >> np.uint64(15), weights, -weights)
            sums += np.bincount(features.rows * self.dim + places, signed, rows * self.dim)
        vectors = sums.reshape(rows, self.dim)
        lengths = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
        # If all signs cancel, use the first axis, so that every row has length 1.
        vectors[lengths[:, 0] == 0, 0] = 1
        return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)

    def _weights(self, features: HashedFeatures, rows: int) -> NDArray[np.float64]:
        """Return TF-IDF weights, scaled so that each kind has its share of the squared length."""
        weights = np.round(1 + np.log(features.counts), 9) * self._idf[_buckets(features)]
        groups = features.rows * KINDS + features.kinds
        squares = np.bincount(groups, np.square(weights), rows * KINDS)
        scaled: NDArray[np.float64] = weights * np.sqrt(_KIND_SHARES[features.kinds] / squares[groups])
        return scaled

    def _random_bits(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        first = mix_bits(hashes ^ self._seed_bits)
        return first, mix_bits(first + np.uint64(0x9E3779B97F4A7C15))


def _buckets(features: HashedFeatures) -> NDArray[np.int64]:
    return (features.hashes & np.uint64((1 << _BUCKET_BITS) - 1)).astype(np.int64)


def _chunks(texts: Iterable[str]) -> Iterable[list[str]]:
    chunk: list[str] = []
    for text in texts:
        chunk.append(text)
        if len(chunk) == MAX_TEXTS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
