"""Images cropped to a box, as ARO crops them: the locator ends in a media fragment, ``7.jpg#xywh=10,20,30,40``."""

import io
import re
from collections.abc import Mapping
from typing import Any, Final

from pairwright.datasets.images.loading import UnusableImageError, check_image_at, decode_image, open_image

_FRAGMENT: Final = re.compile(r"#xywh=(\d+),(\d+),(\d+),(\d+)\Z")
_BOX: Final = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def crop_locator(image: str, fields: Mapping[str, Any]) -> str:
    """Return the locator of an image cropped to the box in the fields of a row; without one, ``image``."""
    box = [fields.get(name) for name in _BOX]
    if not all(isinstance(side, int | float) and side >= 0 for side in box) or not (box[2] and box[3]):
        return image
    return f"{image}#xywh={','.join(str(int(side)) for side in box if side is not None)}"


def is_cropped(locator: str) -> bool:
    """Return whether a locator names a part of an image."""
    return _FRAGMENT.search(locator) is not None


def cropped_size(locator: str) -> tuple[int, int]:
    """Return width and height of an image after its crop.

    Raises:
        UnusableImageError: as of `check_image_at`; or the box is outside the image.
    """
    found = _FRAGMENT.search(locator)
    width, height, _ = check_image_at(locator[: found.start()] if found else locator)
    if found is None:
        return width, height
    left, top, right, bottom = _box(found, width, height)
    return right - left, bottom - top


def _box(found: re.Match[str], width: int, height: int) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of a box within an image.

    Raises:
        UnusableImageError: the box is outside the image.
    """
    left, top, wide, high = map(int, found.groups())
    if left >= width or top >= height:
        what = f"the box is outside the image of {width} x {height} pixels"
        raise UnusableImageError("bad_image", what, found.string)
    return left, top, min(left + wide, width), min(top + high, height)


def open_cropped(locator: str) -> bytes:
    """Return the bytes of an image, those of a cropped one as PNG.

    Raises:
        UnusableImageError: as of `open_image`; or the box is outside the image.
    """
    found = _FRAGMENT.search(locator)
    if found is None:
        return open_image(locator)
    path = locator[: found.start()]
    whole = decode_image(open_image(path), path)
    out = io.BytesIO()
    whole.crop(_box(found, *whole.size)).convert("RGB").save(out, "PNG")
    return out.getvalue()
