"""What an encoder is: texts in, float32 unit rows out.

An index and its queries must come from the same encoder in the same state, so an encoder states a
*fingerprint* over everything that its vectors depend on; the index keeps it and refuses any other. The dot
product of two rows is their cosine similarity.

`lexical.py` holds the encoder that needs no download. Its home is REACT's text-to-text retrieval, where a
contrastive text tower stands in the paper (section "Retrieving customised knowledge"): words and spelling
instead of meaning, which finds "a dog" for "dogs" but not for "puppy".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class TextEncoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Short name of the method, as on the command line."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same text and state would give another vector."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hex digits over name, version and everything fitted: equal means equal vectors."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row a text, float32 of shape (len(texts), dim), in order.

        A text gives the same row in any batch, and any text gives a unit row, the empty one too.
        """
        ...

    def save(self, path: Path) -> None:
        """Write to the file ``path`` what it takes to make this encoder again, whole or not at all."""
        ...
