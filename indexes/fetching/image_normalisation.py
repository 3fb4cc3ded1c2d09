"""Normalisation of downloaded image bytes for OpenCV, which img2dataset decodes with; measured on OpenCV 4.14.

- Truncated images are rejected: OpenCV would fill the rest with grey. Images with too many pixels are rejected before
  decoding.
- Images with an EXIF orientation are rotated: OpenCV ignores and drops the tag.
- 16-bit channels are converted to 8 bits: OpenCV would clip every value at 255, which gives white images.

All other bytes are returned unchanged, including formats other than `PILLOW_FORMATS`.
"""

import io
from typing import TYPE_CHECKING

from pairwright.datasets.images.loading import DECODER_ERRORS, PILLOW_FORMATS, UnusableImageError, check_image
from pairwright.indexes.fetching.failure_reasons import DownloadError

if TYPE_CHECKING:
    from PIL.Image import Image

EXIF_ORIENTATION = 0x0112
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_BIT_DEPTH_OFFSET = 24  # offset of the bits per channel in a PNG


def normalise_image_bytes(data: bytes) -> bytes:
    """Return bytes that OpenCV decodes correctly: the given ones, or a rotated 8-bit PNG.

    Raises:
        DownloadError: bad_image or image_too_large.
    """
    from PIL import Image, UnidentifiedImageError

    if not data.strip() or data.lstrip()[:1] == b"<":
        raise DownloadError("bad_image", "a web page or empty file instead of an image")
    try:
        with Image.open(io.BytesIO(data), formats=PILLOW_FORMATS) as image:
            check_image(data)
            return _reencode_if_needed(image, data)
    except UnidentifiedImageError:
        return data
    except UnusableImageError as flaw:
        raise DownloadError(flaw.reason, flaw.what) from None
    except (*DECODER_ERRORS, Image.DecompressionBombError) as error:
        raise DownloadError("bad_image", f"cannot be decoded ({type(error).__name__}: {error})") from None


def _reencode_if_needed(image: "Image", data: bytes) -> bytes:
    from PIL import ImageOps

    turned = image.getexif().get(EXIF_ORIENTATION, 1) in range(2, 9)
    deep = image.mode.startswith(("I", "F")) or (data.startswith(_PNG_SIGNATURE) and data[_PNG_BIT_DEPTH_OFFSET] == 16)
    if not turned and not deep:
        return data
    plain = _convert_to_8_bits(image)
    out = io.BytesIO()
    ImageOps.exif_transpose(plain).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _convert_to_8_bits(image: "Image") -> "Image":
    """Return the image in an 8-bit mode with its EXIF data."""
    import numpy as np
    from PIL import Image

    if not image.mode.startswith(("I", "F")):
        return image.convert("RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB")
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF or image.mode == "F":
        raise DownloadError("bad_image", f"pixels of mode {image.mode}, whose range is unknown")
    plain = Image.fromarray((values.astype(np.uint32) >> 8).astype(np.uint8))
    plain.info["exif"] = image.getexif().tobytes()
    return plain
