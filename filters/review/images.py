"""Images of the rows under review, served only if they are images.

A request names a row, never a path. The response is the file that the input names for that row, and only if its bytes
are an image (`datasets.images`): a row that names ``/etc/passwd`` shows nothing. A relative name is resolved in a given
folder and may not leave it. Nothing is downloaded.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import check_image, convert_to_8_bit, is_url, open_image, split_locator
from pairwright.datasets.images.lookup import find_below
from pairwright.datasets.rejects import Reject
from pairwright.datasets.tar_index import iter_tar_members

_BROWSER_FORMATS = frozenset({"jpeg", "png", "webp", "gif", "bmp"})  # supported by every browser
_FALLBACK_FORMAT = "png"  # other formats are converted to it


@dataclass(frozen=True, slots=True)
class BrowserImage:
    """Image bytes that a browser can show, and their media type."""

    data: bytes
    media_type: str


class ImageLocator(Protocol):
    """Locates the image of a row."""

    def locate(self, key: str, image: str) -> str:
        """Return the locator of an image, empty if there is none; ``key`` and ``image`` are the row's."""
        ...


class FolderImages:
    """Images as named by candidate rows.

    Args:
        roots: folders for relative names; the first that has the file is used.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [root.resolve() for root in roots]

    def locate(self, key: str, image: str) -> str:  # noqa: ARG002 - part of the protocol
        """See `ImageLocator`."""
        if not image or is_url(image) or "\0" in image:
            return ""
        name, member = split_locator(image)
        if Path(name).is_file() and Path(name).is_absolute():
            return image
        for root in self._roots:
            path = Path(find_below(root, name)).resolve()
            if path.is_relative_to(root) and path.is_file():
                return f"{path}::{member}" if member else str(path)
        return ""


class ShardImages:
    """Images in the shards of a build, by the key of the pair; without one there, the file that the pair names.

    Args:
        tars: shards. Each is scanned when a key is requested that no earlier one contains.
        images: false: pairs name no files here.
    """

    def __init__(self, tars: Sequence[Path], *, images: bool = True) -> None:
        self._ahead = iter(tars)
        self._images = images
        self._known: dict[str, str] = {}
        self._lock = Lock()  # images are opened in threads

    def locate(self, key: str, image: str) -> str:
        """See `ImageLocator`."""
        with self._lock:
            while key not in self._known and (tar := next(self._ahead, None)) is not None:
                self._known.update(_images_of(tar))
        elsewhere = image if self._images and image and not is_url(image) else ""
        return self._known.get(key, elsewhere)


def _images_of(tar: Path) -> Iterator[tuple[str, str]]:
    for member in iter_tar_members(tar):
        if not isinstance(member, Reject):
            key, _, ending = member.name.partition(".")
            if ending not in {"txt", "json"}:
                yield key, f"{tar}::{member.name}"


def load_browser_image(locator: str) -> BrowserImage:
    """Return the image at a locator.

    Raises:
        InputError: it is missing, or no image.
    """
    if not locator:
        raise InputError("no image found", where="this row", fix="Set its folder with --image-root.")
    data = open_image(locator)
    _, _, kind = check_image(data, "header", locator)
    if kind in _BROWSER_FORMATS:
        return BrowserImage(data, f"image/{kind}")
    check_image(data, "full", locator)
    return BrowserImage(_convert(data), f"image/{_FALLBACK_FORMAT}")


def _convert(data: bytes) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        convert_to_8_bit(image).convert("RGB").save(out, _FALLBACK_FORMAT)
    return out.getvalue()
