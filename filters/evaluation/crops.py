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


def cropped_size(locator: str) -> tuple[int, int]:
    """Return width and height of an image after its crop.

    Raises:
        UnusableImageError: as of `check_image_at`; or the box is outside the image.
    """
    found = _FRAGMENT.search(locator)
    width, height, _ = check_image_at(locator[: found.start()] if found else locator)
    if found is None:
        return width, height
    left, top, wide, high = map(int, found.groups())
    if left >= width or top >= height:
        raise UnusableImageError("bad_image", f"the box is outside the image of {width} x {height} pixels", locator)
    return min(wide, width - left), min(high, height - top)


def open_cropped(locator: str) -> bytes:
    """Return the bytes of an image, those of a cropped one as PNG; errors as of `open_image`."""
    found = _FRAGMENT.search(locator)
    if found is None:
        return open_image(locator)
    path = locator[: found.start()]
    left, top, width, height = map(int, found.groups())
    whole = decode_image(open_image(path), path)
    out = io.BytesIO()
    right, bottom = min(left + width, whole.width), min(top + height, whole.height)
    whole.crop((left, top, right, bottom)).convert("RGB").save(out, "PNG")
    return out.getvalue()
