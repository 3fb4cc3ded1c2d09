"""Vectors of pairs: the protocol, and vectors computed by an encoder.

An encoder gives every caption of a pair a vector (`stored_pairs`); precomputed vectors are one per pair.

The *modality* of a vector is text (a caption) or image. A pair may have a vector in one modality only; it is then in the
parts of that modality, and a rejected row with a reason for the other.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.images.loading import UnusableImageError, decode_image, is_url, open_image
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.encoders.registry import load_encoder, require_image_encoder
from pairwright.indexes.hnsw.metadata import Modality

if TYPE_CHECKING:
    from PIL import Image

_THREADS = 4  # for opening images: Pillow decodes without the GIL; more threads would hold more pixels
_OPEN_BATCH = 16  # images opened between checks of the held pixels
_MAX_IMAGES, _MAX_PIXELS = 128, 50_000_000  # decoded images are encoded from here on: 150 MB at three bytes per pixel


@dataclass(frozen=True)
class VectorBatch:
    """Vectors of a batch of pairs.

    Attributes:
        has: mask of the pairs that have a vector, bool (n,).
        vectors: unit vectors of those, in order, float32 (has.sum(), dim).
        rejects: one for each of the other pairs, in order.
    """

    has: NDArray[np.bool_]
    vectors: Vectors
    rejects: list[Reject]


class PairVectors(Protocol):
    """Source of the vectors of pairs. Must be picklable: each worker process gets a copy."""

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Available modalities."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector; the same for all modalities."""
        ...

    @property
    def every_caption(self) -> bool:
        """Whether every caption of a pair gets a vector, instead of one per pair."""
        ...

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Return the vectors of ``pairs``; for text, of each ``caption``.

        The row of a pair does not depend on the other pairs, except for the rounding of a model.

        Raises:
            UsageError: if the modality is not available.
        """
        ...


class EncodedVectors:
    """Vectors of captions and images computed by an encoder.

    Worker processes load the encoder from the index folder, so it must be saved there first.
    """

    def __init__(
        self, encoder: TextEncoder, directory: Path | None = None, *, device: str = "", model: str = ""
    ) -> None:
        """Wrap an encoder.

        Args:
            encoder: an encoder of texts, and of images if image vectors are requested.
            directory: index folder that it is saved in; required for worker processes only.
            device: device in a worker process, see `EncoderOptions`.
            model: location of the checkpoint, see `load_encoder`.
        """
        self.encoder = encoder
        self._reopened = (directory, device, model)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Text, and image if the encoder encodes images."""
        return ("text", "image") if hasattr(self.encoder, "encode_images") else ("text",)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.encoder.dim

    @property
    def every_caption(self) -> bool:
        """Always true."""
        return True

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Encode the captions, or the images that can be opened and decoded."""
        if modality == "text":
            return VectorBatch(
                np.ones(len(pairs), np.bool_), self.encoder.encode_texts([pair.caption for pair in pairs]), []
            )
        encoder = require_image_encoder(self.encoder)
        has: list[bool] = []
        vectors: list[Vectors] = []
        rejects: list[Reject] = []
        images: list[Image.Image] = []
        with ThreadPoolExecutor(_THREADS) as threads:
            for start in range(0, len(pairs), _OPEN_BATCH):
                for opened in threads.map(_open_image, pairs[start : start + _OPEN_BATCH]):
                    has.append(not isinstance(opened, Reject))
                    if isinstance(opened, Reject):
                        rejects.append(opened)
                    else:
                        images.append(opened)
                if len(images) >= _MAX_IMAGES or sum(image.width * image.height for image in images) >= _MAX_PIXELS:
                    vectors.append(encoder.encode_images(images))
                    images = []
        vectors.append(encoder.encode_images(images))
        return VectorBatch(np.array(has, np.bool_), np.concatenate(vectors), rejects)

    def __getstate__(self) -> dict[str, Any]:
        """Return the location from which a worker process loads the encoder."""
        if self._reopened[0] is None:
            raise UsageError("an encoder that is not saved in an index folder cannot be sent to worker processes.")
        return {"_reopened": self._reopened}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load the encoder in a worker process."""
        directory, device, model = self._reopened = state["_reopened"]
        encoder = load_encoder(directory, device=device, model=model)
        if encoder is None:
            raise StorageError(f"{directory}: no encoder file. Build the index again.")
        self.encoder = encoder


def _open_image(pair: Pair) -> "Image.Image | Reject":
    """Return the decoded image of a pair, or a reject."""
    place = f"pair {pair.key}"
    if not pair.image:
        return make_reject(place, "missing_image", "the pair has no image", pair.caption)
    if is_url(pair.image):
        return make_reject(place, "not_fetched", "a URL, not a file", pair.image)
    try:
        return decode_image(open_image(pair.image), pair.image)
    except UnusableImageError as error:
        return make_reject(place, error.reason, error.what, pair.image)
