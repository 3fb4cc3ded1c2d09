"""Near-duplicate images by the cosine of their embeddings, where a model of images is at hand.

A perceptual hash finds copies of the pixels; an embedding also finds mirrored, recoloured and strongly cropped ones, and
takes different pictures of one thing for copies if the threshold is low. Thresholds differ between models.

Memory: 4 bytes x dimension per kept or evaluation image (2 GB per million at 512), and its name. Time: each image is compared
with all of them by FAISS.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import UnusableImageError, decode_image, is_url, open_image
from pairwright.datasets.rejects import COPY_OF_EVALUATION_IMAGE, NEAR_DUPLICATE_IMAGE

if TYPE_CHECKING:
    from PIL import Image

    from pairwright.indexes.encoders.protocols import ImageEncoder, Vectors

_BATCH: Final = 64  # images in memory


class SimilarImages:
    """Evaluation images, and the kept images so far.

    Args:
        threshold: cosine from which two images are near-duplicates, in (0, 1].
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._index: Any = None
        self._images: list[str] = []
        self._known = 0  # evaluation images, which come first

    def add_known(self, locators: Iterable[str], encoder: "ImageEncoder") -> None:
        """Add evaluation images; those that cannot be read are left out."""
        listed = list(locators)
        for start in range(0, len(listed), _BATCH):
            opened = {each: read_image_or_reason(each) for each in listed[start : start + _BATCH]}
            images = {each: image for each, image in opened.items() if not isinstance(image, str)}
            if images:
                self._add(encoder.encode_images(list(images.values())), list(images))
        self._known = len(self._images)

    def find_or_add(self, vector: "Vectors", image: str) -> tuple[str, str]:
        """Return the reason to reject an image and the other image that it is similar to; add it if there is none.

        Args:
            vector: of the image, float32 (1, d), unit length.
            image: its locator, shared by the pairs of one image.
        """
        if self._images:
            cosines, places = self._index.search(vector, 1)
            if cosines[0, 0] >= self._threshold:
                found = self._images[places[0, 0]]
                if found == image:
                    return "", ""
                reason = COPY_OF_EVALUATION_IMAGE if places[0, 0] < self._known else NEAR_DUPLICATE_IMAGE
                return reason, f"the image is similar to {found}: cosine {cosines[0, 0]:.3f}"
        self._add(vector, [image])
        return "", ""

    def _add(self, vectors: "Vectors", images: list[str]) -> None:
        import faiss  # slow to import

        if self._index is None:
            self._index = faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)
        self._images += images


def read_image_or_reason(locator: str) -> "Image.Image | str":
    """Return the image, or the reason code why a model cannot see it."""
    if not locator:
        return "missing_image"
    if is_url(locator):
        return "not_fetched"
    try:
        return decode_image(open_image(locator), locator)
    except UnusableImageError as error:
        return error.reason
    except InputError:  # not a tar
        return "bad_image"
