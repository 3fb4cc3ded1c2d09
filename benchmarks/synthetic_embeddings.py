"""Synthetic embeddings that behave like those of images and their captions, in any number, block by block.

Drawn from a mixture of clusters of very unequal sizes (Zipf), all on one side of the sphere, with a spectrum that falls
(about 80 directions matter). An image is its cluster's centre and noise of its own. Its *text-like* partner shares the
centre and a part of the noise, but lies around another mean: a query of that kind is out of distribution for an index
over images, as a caption's vector is for one over CLIP's image vectors. Mean cosines: 0.35 between two images, 0.75
within a cluster, 0.3 between partners, 0 between an image and a text of another cluster.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.rng import make_numpy_rng

Rows = NDArray[np.float32]

_ZIPF, _SPECTRUM = 0.8, 0.4  # exponents: size of the n-th cluster, deviation along the n-th direction
_MEAN, _CENTRE, _NOISE = 0.6, 0.65, 0.5  # lengths of an image's parts
_TEXT_MEAN, _TEXT_CENTRE, _SHARED, _TEXT_NOISE = 0.75, 0.4, 0.12, 0.5


@dataclass(frozen=True)
class Mixture:
    """A seeded source of vectors.

    Attributes:
        dim: length of a vector, at least 2.
        clusters: how many.
        seed: another seed gives other clusters.
    """

    dim: int = 512
    clusters: int = 2000
    seed: int = 0

    def block(self, name: str, rows: int) -> tuple[Rows, Rows]:
        """Return images and their text-like partners, unit rows (rows, dim); equal for an equal name and number."""
        stream = make_numpy_rng("mixture", self.seed, name)
        cluster = stream.choice(self.clusters, rows, p=self._sizes)
        centres, noise = self._centres[cluster], self._noise(stream, rows)
        images = _MEAN * self._axis(0) + _CENTRE * centres + _NOISE * noise
        texts = _TEXT_MEAN * self._axis(1) + _TEXT_CENTRE * centres + _SHARED * noise
        return _unit(images), _unit(texts + _TEXT_NOISE * self._noise(stream, rows))

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        sizes = np.arange(1, self.clusters + 1) ** -_ZIPF
        shares: NDArray[np.float64] = sizes / sizes.sum()
        return shares

    @cached_property
    def _deviations(self) -> Rows:
        deviations = np.arange(1, self.dim + 1) ** -_SPECTRUM
        scaled: Rows = (deviations / np.linalg.norm(deviations)).astype(np.float32)
        return scaled

    @cached_property
    def _centres(self) -> Rows:
        return _unit(self._noise(make_numpy_rng("mixture", self.seed, "centres"), self.clusters))

    def _noise(self, stream: np.random.Generator, rows: int) -> Rows:
        return stream.standard_normal((rows, self.dim), np.float32) * self._deviations  # of length about 1

    def _axis(self, number: int) -> Rows:
        # The last directions hardly vary, so that the means stand apart from what differs between vectors.
        axis = np.zeros(self.dim, np.float32)
        axis[-1 - number] = 1
        return axis


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
