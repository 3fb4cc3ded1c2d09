"""Text encoder that compares captions by their words, hashed to 251 dimensions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pairwright.indexes.encoders.protocols import Vectors
from pairwright.indexes.encoders.registry import EncoderEntry


class WordSets:
    """Encodes the set of words of a text; nothing is fitted."""

    name, version, dim, fingerprint, truncated = "word-sets", 1, 251, "word-sets/1", 0

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, float32 (len(texts), dim)."""
        rows = np.full((len(texts), self.dim), 1e-3, np.float32)  # a text without words has a direction too
        for row, text in zip(rows, texts, strict=True):
            row[[int.from_bytes(word.encode()) % self.dim for word in text.lower().split()]] = 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def save(self, path: Path) -> None:
        """Write the state that `EncoderEntry.load` reads."""
        path.write_text(self.fingerprint)


ENCODER = EncoderEntry("captions: hashed words", fit=lambda *_: WordSets(), load=lambda *_, **__: WordSets())
