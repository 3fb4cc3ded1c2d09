"""Near-duplicate images within a pool, by perceptual hash; of several similar images the first one is kept.

Memory: 32 bytes per kept image, and its name. Time: each image is compared with all kept ones, 1.2 ms per million.
"""

from typing import Any

from pairwright.indexes.image_copies.known_images import describe_copy
from pairwright.indexes.image_copies.perceptual_hash import HASH_BITS, Hashes


class NearDuplicateImages:
    """Kept images so far.

    Args:
        distance: bits in which two near-duplicates differ at most.
    """

    def __init__(self, distance: int) -> None:
        import faiss  # slow to import

        self._distance = distance
        self._index: Any = faiss.IndexBinaryFlat(HASH_BITS)
        self._images: list[str] = []

    def find_or_add(self, hashes: Hashes, image: str) -> str:
        """Describe the other kept image that an image is similar to; add the image if there is none.

        Args:
            hashes: of the image, (1, bytes); (0, bytes) for one without a hash, which is similar to none.
            image: its locator, shared by the pairs of one image.
        """
        if not len(hashes):
            return ""
        if self._images:
            distances, places = self._index.search(hashes, 1)
            if distances[0, 0] <= self._distance:
                found = self._images[places[0, 0]]
                return "" if found == image else describe_copy(found, int(distances[0, 0]))
        self.add(hashes, [image])
        return ""

    def add(self, hashes: Hashes, images: list[str]) -> None:
        """Add images that are known to differ, with one hash each."""
        self._index.add(hashes)
        self._images += images
