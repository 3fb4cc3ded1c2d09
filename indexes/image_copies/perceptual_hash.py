"""Perceptual hashes of images: pHash with 256 bits (ImageHash).

The image is scaled to 64 x 64 grey values; the bits say which of the 16 x 16 lowest coefficients of its cosine
transform are above their median. Copies that were resized, re-encoded or made darker differ in a few bits; unrelated
images differ in about half of them.

A nearly uniform image, or one whose values change along one axis only (a gradient, two halves), has coefficients of
zero, and all such images get similar hashes. They count as *featureless* and get no hash: compare them by file content.

Limits: mirrored and rotated copies have other hashes, and so do images that differ in hue only: their grey values may
be equal. A crop of a few per cent changes about 40 bits: see `hash_crops`.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.images.recoding import convert_to_rgb

if TYPE_CHECKING:
    from PIL import Image

Hashes = NDArray[np.uint8]

HASH_BITS: Final = 256
HASH_BYTES: Final = HASH_BITS // 8
COPY_DISTANCE: Final = 31  # bits in which copies differ at most; recommended for PDQ, whose bits are made alike

_SIDE = 16  # coefficients per axis
_SCALED = 4 * _SIDE  # pixels per axis
_MIN_DEVIATION = 2.0  # of the grey values in 0-255
_MIN_BITS_SET = 96  # half of the bits are set unless many coefficients are zero
_CROP = 0.04  # share of width and height that a crop removes: the best one for copies cropped by 3% to 5%
_OFFSETS = (0.0, 0.5, 1.0)  # where along an axis the removed share lies


def hash_image(image: "Image.Image") -> Hashes | None:
    """Return the hash of an image as `HASH_BYTES` bytes; None if it is featureless."""
    return _hash_box(_to_grey(image), None)


def hash_crops(image: "Image.Image") -> Hashes:
    """Return the hashes of an image and of nine crops of it, (n, `HASH_BYTES`), to detect copies that were cropped.

    Featureless crops are left out; n is 0 if the whole image is featureless.
    """
    grey = _to_grey(image)
    whole = _hash_box(grey, None)
    if whole is None:
        return np.empty((0, HASH_BYTES), np.uint8)
    width, height = grey.size
    cut_x, cut_y = width * _CROP, height * _CROP
    boxes = [
        (cut_x * x, cut_y * y, width - cut_x * (1 - x), height - cut_y * (1 - y)) for x in _OFFSETS for y in _OFFSETS
    ]
    return np.stack([whole, *(found for box in boxes if (found := _hash_box(grey, box)) is not None)])


def _to_grey(image: "Image.Image") -> "Image.Image":
    from PIL import ImageOps

    return convert_to_rgb(ImageOps.exif_transpose(image)).convert("L")


def _hash_box(grey: "Image.Image", box: tuple[float, float, float, float] | None) -> Hashes | None:
    from imagehash import phash
    from PIL import Image

    scaled = grey.resize((_SCALED, _SCALED), Image.Resampling.LANCZOS, box)
    if np.asarray(scaled).std() < _MIN_DEVIATION:
        return None
    bits = phash(scaled, hash_size=_SIDE).hash
    return np.packbits(bits) if bits.sum() >= _MIN_BITS_SET else None
