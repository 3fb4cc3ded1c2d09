"""Near-duplicate captions: MinHash proposes candidates, the Jaccard similarity of the words decides.

Two captions are near-duplicates when the Jaccard similarity of their shingles reaches the threshold; shingles are words
and pairs of adjacent words, in lower case without punctuation, so that word order counts slightly. Of several similar
captions the first one is kept. Captions of one image are not compared with each other: they are expected to be similar.

Locality-sensitive hashing (datasketch) gives the candidates; it may miss a pair near the threshold, never invent one.
Memory: about 2.5 kB per kept caption.
"""

import hashlib
from functools import cache
from itertools import pairwise
from typing import Final

from datasketch import MinHash, MinHashLSH

from pairwright.generators.language.vocabulary import normalize_text

PERMUTATIONS: Final = 128
_MAX_THRESHOLD: Final = 0.98  # the hashes of a sketch cannot be split into bands for more; the words decide beyond
_SEED: Final = 1


class NearDuplicates:
    """Kept captions so far.

    Args:
        threshold: Jaccard similarity in 0-1 from which two captions are near-duplicates.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._index = MinHashLSH(num_perm=PERMUTATIONS, params=_bands(min(threshold, _MAX_THRESHOLD)))
        self._shingles: list[frozenset[str]] = []
        self._images: list[str] = []

    def is_new(self, caption: str, image: str) -> bool:
        """Add a caption, and return whether no kept caption of another image is similar to it.

        Args:
            caption: the text.
            image: a name shared by the captions of one image.
        """
        shingles = _shingles(caption)
        if not shingles:
            return True
        sketch = MinHash(PERMUTATIONS, seed=_SEED, hashfunc=_hash)
        sketch.update_batch([shingle.encode() for shingle in sorted(shingles)])
        alike = (at for at in self._index.query(sketch) if self._images[at] != image)
        if any(_jaccard(self._shingles[at], shingles) >= self._threshold for at in alike):
            return False
        self._index.insert(len(self._shingles), sketch)
        self._shingles.append(shingles)
        self._images.append(image)
        return True


@cache
def _bands(threshold: float) -> tuple[int, int]:
    """Return how many bands of how many hashes find those that are so alike; it takes hundreds of integrals."""
    found = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    return found.b, found.r


def _shingles(caption: str) -> frozenset[str]:
    words = [word for word in normalize_text(caption).split() if any(sign.isalnum() for sign in word)]
    return frozenset([*words, *(f"{one} {other}" for one, other in pairwise(words))])


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=4).digest(), "little")
