"""Re-encoding of image bytes for shards; bytes pass unchanged unless a format or size is requested.

A dataset has one image extension, as loaders take the members of the first sample for those of all. Formats are
recognised by the first bytes (JPEG, PNG, WebP), not by file name. Sources with mixed or other formats (GIF, TIFF, ...)
need `Recoding.format`; smaller images need `Recoding.longest_side`. Equal bytes and Pillow versions give equal results.
Images of more than `loading.MAX_PIXELS` pixels are refused before decoding.
"""

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import (
    DECODER_ERRORS,
    MAX_PIXELS,
    PILLOW_FORMATS,
    UnusableImageError,
    check_image,
    convert_to_8_bit,
)
from pairwright.datasets.suggestions import require_known

IMAGE_EXTENSIONS = ("jpg", "png", "webp")


@dataclass(frozen=True, slots=True)
class Recoding:
    """How image bytes are re-encoded.

    Attributes:
        format: ``jpg``, ``png`` or ``webp``; empty to keep the source's format.
        longest_side: in pixels; larger images are scaled down to it; 0 to keep sizes.
        quality: 1-100, for JPEG and WebP.
    """

    format: str = ""
    longest_side: int = 0
    quality: int = 92

    def __post_init__(self) -> None:
        require_known("no such image_format:", [self.format] if self.format else [], IMAGE_EXTENSIONS)
        if self.longest_side < 0 or not 1 <= self.quality <= 100:
            raise UsageError("longest_side must not be negative, and quality must lie in 1-100.")


NO_RECODING = Recoding()


def detect_extension(data: bytes) -> str:
    """Return ``jpg``, ``png`` or ``webp`` by the first bytes, empty for anything else."""
    if data.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return ""


def recode_image(data: bytes, recoding: Recoding, where: str) -> tuple[bytes, str]:
    """Return re-encoded image bytes and their extension; bytes that need no change are returned as they are.

    Args:
        data: bytes of a complete image file.
        recoding: format and size.
        where: locator of the image, for messages.

    Raises:
        UnusableImageError: bad_image, image_too_large, or unsupported_image_format (valid, but not storable in shards).
    """
    found = detect_extension(data)
    if not found and not recoding.format:
        name = check_image(data, where=where)[2]
        raise UnusableImageError("unsupported_image_format", f"{name}, neither JPEG, PNG nor WebP", where)
    wanted = recoding.format or found
    if wanted == found and not recoding.longest_side:
        return data, found
    image = decode_oriented_image(data, where)
    if wanted == found and max(image.size) <= recoding.longest_side:
        return data, found
    return _encode(image, wanted, recoding), wanted


def decode_oriented_image(data: bytes, where: str) -> Image.Image:
    """Return the decoded image, rotated by its EXIF orientation, with 8 bits per channel.

    Raises:
        UnusableImageError: bad_image if the bytes do not decode or are not in `loading.PILLOW_FORMATS`;
            image_too_large above `MAX_PIXELS`.
    """
    try:
        with warnings.catch_warnings():  # Pillow's warnings do not name the image
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=PILLOW_FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise UnusableImageError("image_too_large", f"an image of {image.width} x {image.height} pixels", where)
            image.load()
            return convert_to_8_bit(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:  # its message has a memory address, which differs between runs
        raise UnusableImageError(
            "bad_image", f"the image does not decode ({', '.join(PILLOW_FORMATS)} are read)", where
        ) from None
    except Image.DecompressionBombError:
        raise UnusableImageError("image_too_large", f"more than {MAX_PIXELS} pixels", where) from None
    except DECODER_ERRORS as error:
        raise UnusableImageError("bad_image", f"the image does not decode ({error})", where) from None


def _encode(image: Image.Image, wanted: str, recoding: Recoding) -> bytes:
    image = convert_to_rgb(image) if wanted == "jpg" else image.convert("RGBA" if _has_alpha(image) else "RGB")
    if recoding.longest_side:
        image.thumbnail((recoding.longest_side, recoding.longest_side), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if wanted == "png":
        image.save(out, "PNG")
    else:
        image.save(out, {"jpg": "JPEG", "webp": "WEBP"}[wanted], quality=recoding.quality)
    return out.getvalue()


def convert_to_rgb(image: Image.Image) -> Image.Image:
    """Return the image as RGB; transparent pixels become white."""
    if not _has_alpha(image):
        return image.convert("RGB")
    layered = image.convert("RGBA")
    ground = Image.new("RGBA", layered.size, "white")
    ground.alpha_composite(layered)
    return ground.convert("RGB")


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
