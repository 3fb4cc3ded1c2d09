"""From pairs to vectors: what an index is built from, whether an encoder makes them or they are there already.

An encoder gives every caption of a pair a vector of its own (`entries.py`); vectors from elsewhere are one a pair.

A *modality* is what a vector is of: a pair's caption (text) or its image. A pair may have a vector of one and not of the
other; then it stands in the parts of the one, and is a rejected row with a reason for the other.
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

_THREADS = 4  # that open images: Pillow decodes without Python's lock; more would hold more pixels at a time
_OPEN_BATCH = 16  # images that are opened between looks at how many pixels are held
_MAX_IMAGES, _MAX_PIXELS = 128, 50_000_000  # from which on what was decoded is encoded: 150 MB at three bytes a pixel


@dataclass(frozen=True)
class VectorBatch:
    """The vectors of some pairs.

    Attributes:
        has: which of the pairs have a vector, bool (n,).
        vectors: of those, in their order, float32 (has.sum(), dim), of length 1.
        rejects: one for each of the others, in their order.
    """

    has: NDArray[np.bool_]
    vectors: Vectors
    rejects: list[Reject]


class PairVectors(Protocol):
    """Gives pairs their vectors. It can be pickled: each worker process gets one of its own."""

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """What there are vectors of."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector; the same for all modalities."""
        ...

    @property
    def every_caption(self) -> bool:
        """Whether each caption of a pair can be given a vector, or a pair has one for all."""
        ...

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Return the vectors of ``pairs``, of text those of each ``caption``. A pair's row does not depend on the others, but for a model's rounding.

        Raises:
            UsageError: when there are none of that modality.
        """
        ...


class EncodedVectors:
    """Captions and images through an encoder.

    A worker process loads the encoder anew from the index folder, so it has to be saved there before.
    """

    def __init__(
        self, encoder: TextEncoder, directory: Path | None = None, *, device: str = "", model: str = ""
    ) -> None:
        """Take an encoder.

        Args:
            encoder: of captions; of images, too, when those are asked for.
            directory: index folder that it is saved in; needed for worker processes only.
            device: where a worker process runs it, see `EncoderOptions`.
            model: where its checkpoint is, see `load_encoder`.
        """
        self.encoder = encoder
        self._reopened = (directory, device, model)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Text, and image when the encoder reads images."""
        return ("text", "image") if hasattr(self.encoder, "encode_images") else ("text",)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.encoder.dim

    @property
    def every_caption(self) -> bool:
        """Yes."""
        return True

    def rows(self, pairs: Sequence[Pair], modality: Modality) -> VectorBatch:
        """Encode captions, which all pairs have, or those images that can be opened and decoded."""
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
        """Return where a worker process finds the encoder."""
        if self._reopened[0] is None:
            raise UsageError("an encoder that is not saved in an index folder cannot go to worker processes.")
        return {"_reopened": self._reopened}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load the encoder in a worker process."""
        directory, device, model = self._reopened = state["_reopened"]
        encoder = load_encoder(directory, device=device, model=model)
        if encoder is None:
            raise StorageError(f"{directory}: no encoder here. Build the index again.")
        self.encoder = encoder


def _open_image(pair: Pair) -> "Image.Image | Reject":
    """Return the decoded image of a pair, or why there is none."""
    place = f"pair {pair.key}"
    if not pair.image:
        return make_reject(place, "missing_image", "the pair names no image", pair.caption)
    if is_url(pair.image):
        return make_reject(place, "not_fetched", "a URL, not a file", pair.image)
    try:
        return decode_image(open_image(pair.image), pair.image)
    except UnusableImageError as error:
        return make_reject(place, error.reason, error.what, pair.image)
