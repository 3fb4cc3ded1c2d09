"""What an encoder is: texts or images in, float32 unit rows out.

An index and its queries must come from the same encoder in the same state, so an encoder states a
*fingerprint* over everything that its vectors depend on; the index keeps it and refuses any other. The dot
product of two rows is their cosine similarity.

There are three (`encoder_table.py` makes and loads them by name):

- ``lexical``: words and spelling under a random projection; downloads nothing; finds "a dog" for "dogs", not for "puppy".
- ``minilm``: a small sentence model; text against text by meaning.
- ``clip``: a contrastive text tower and image tower, as in REACT (section "Retrieving customised knowledge"); the only
  one that encodes images, so the only one for text-to-image retrieval.
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
    """What every encoder says of itself."""

    @property
    def name(self) -> str:
        """Short name of the method, as on the command line."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same input and state would give another vector."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hex digits over name, version and everything fitted or loaded: equal means equal vectors."""
        ...

    def save(self, path: Path) -> None:
        """Write to the file ``path`` what it takes to make this encoder again, whole or not at all."""
        ...


class TextEncoder(Encoder, Protocol):
    """Turns texts into unit vectors."""

    @property
    def truncated(self) -> int:
        """Texts so far that were longer than the encoder reads, so that only their beginning was encoded."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row a text, float32 of shape (len(texts), dim), in order.

        A text gives the same row in any batch (models: up to float rounding, see their modules), and any text gives
        a unit row, the empty one too. The same call in the same process gives the same bytes.
        """
        ...


class ImageEncoder(Encoder, Protocol):
    """Turns images into unit vectors, in the same space as the texts of the same encoder."""

    def encode_images(self, images: "Sequence[Image.Image]") -> Vectors:
        """Return one unit row an image, float32 of shape (len(images), dim), in order; images of any size and mode."""
        ...
