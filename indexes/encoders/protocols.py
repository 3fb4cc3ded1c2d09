"""Encoder protocols: texts or images to float32 unit rows, whose dot products are cosine similarities.

An index and its queries must use the same encoder in the same state, so an encoder has a *fingerprint* of everything that
its vectors depend on, which the index stores and checks.

Built-in encoders (`registry`):

- ``lexical``: words and spelling with a random projection; no download; finds "a dog" for "dogs", not for "puppy".
- ``minilm``: a small sentence model; text against text by meaning.
- ``clip``: contrastive text and image towers, as in REACT (section "Retrieving customised knowledge"); the only one that
  encodes images, for text-to-image retrieval.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Common attributes of encoders."""

    @property
    def name(self) -> str:
        """Name of the encoder, as on the command line."""
        ...

    @property
    def version(self) -> int:
        """Version, increased whenever the same input and state give another vector."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of name, version and everything fitted or loaded: equal fingerprints mean equal vectors."""
        ...

    def save(self, path: Path) -> None:
        """Write the state to load this encoder again to the file ``path``, atomically."""
        ...


class TextEncoder(Encoder, Protocol):
    """Encodes texts as unit vectors."""

    @property
    def truncated(self) -> int:
        """Number of texts so far that were truncated to the limit of the encoder."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, float32 (len(texts), dim), in order.

        A text gives the same row in any batch (models: up to float rounding), and any text gives a unit row, including
        the empty one. The same call in the same process gives the same bytes.
        """
        ...


class ImageEncoder(Encoder, Protocol):
    """Encodes images as unit vectors in the same space as the texts of the encoder."""

    def encode_images(self, images: "Sequence[Image.Image]") -> Vectors:
        """Return one unit row per image of any size and mode, float32 (len(images), dim), in order."""
        ...
