"""A small caption corpus with an obvious structure, and unit vectors in clusters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pairwright.datasets.records import Pair, pair_key
from pairwright.datasets.rejects import make_reject
from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.pair_vectors import VectorBatch
from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.hnsw.metadata import Modality

ANIMALS = ["dog", "cat", "horse", "sheep", "zebra", "giraffe", "parrot", "elephant"]
PLACES = ["on the beach", "in a kitchen", "beside a river", "under a table", "near a bus stop", "behind a fence"]
DOINGS = ["sleeping", "running", "eating an apple", "looking at the camera"]


def captions() -> list[str]:
    return [f"a {animal} {doing} {place}" for animal in ANIMALS for doing in DOINGS for place in PLACES]


def pairs(texts: Sequence[str] | None = None) -> list[Pair]:
    texts = captions() if texts is None else texts
    return [Pair(pair_key("made", str(n), text), text, str(n)) for n, text in enumerate(texts)]


def batches(of: Sequence[Pair], size: int = 50) -> Iterator[list[Pair]]:
    for start in range(0, len(of), size):
        yield list(of[start : start + size])


def unit(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / lengths).astype(np.float32)
    return scaled


def mixture(count: int, dim: int = 32, clusters: int = 40, *names: str) -> Vectors:
    """Unit vectors around the same cluster centres for every ``names``, which draw the vectors."""
    centres = make_numpy_rng("centres").normal(size=(clusters, dim))
    rng = make_numpy_rng("mixture", *names)
    return unit(centres[rng.integers(0, clusters, count)] + 0.5 * rng.normal(size=(count, dim)))


def keys(count: int) -> list[str]:
    return [f"{number:032x}" for number in range(count)]


def numbered(count: int, first: int = 0) -> list[Pair]:
    """Pairs that `Given` finds the rows of: their keys are numbers."""
    return [Pair(f"{number:032x}", f"caption {number}") for number in range(first, first + count)]


@dataclass(frozen=True)
class Given:
    """Vectors of `numbered` pairs: one row per pair and modality; a row of NaN means no vector."""

    text: Vectors
    image: Vectors | None = None

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Of the rows that are given."""
        return ("text",) if self.image is None else ("text", "image")

    @property
    def dim(self) -> int:
        """Of a row."""
        return int(self.text.shape[1])

    @property
    def every_caption(self) -> bool:
        """A row a pair."""
        return False

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Find the rows by the numbers that the keys are."""
        of = self.image if modality == "image" and self.image is not None else self.text
        rows = of[[int(pair.key, 16) for pair in pairs]]
        has = np.asarray(np.isfinite(rows).all(axis=1))
        rejects = [
            make_reject(pair.key, "not_finite", "no vector") for pair, one in zip(pairs, has, strict=True) if not one
        ]
        return VectorBatch(has, rows[has], rejects)
