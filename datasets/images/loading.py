"""Image bytes by locator, and whether they are an image.

A *locator* is what `Pair.image` holds: a path, ``shard.tar::member``, ``table.parquet::column/row-N`` (`table_pictures.py`),
or a URL. `open_image` gives the bytes of all but the last; URLs are fetched elsewhere, before. `check_image` says width,
height and format, `decode_image` gives the pixels.

How much is checked:
- ``header``: the header parses, the size is sane, and the file ends as its format ends; only a file that
  seems cut off is decoded in full. About a tenth of a millisecond an image; damage inside the pixels is not seen.
- ``full``: every pixel is decoded; some milliseconds an image.

Limits: at most `MAX_PIXELS` pixels and `MAX_BYTES` bytes, checked before anything is decoded, so that a
small file cannot unpack to gigabytes. Formats: JPEG, PNG, WebP, GIF, BMP, TIFF.
"""

import io
import os
import re
import struct
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.parquet_cells import PARQUET_SUFFIX, estimate_cell_size, read_cell_image
from pairwright.datasets.images.unsupported_formats import SIGNATURE_BYTES, detect_unsupported_format
from pairwright.datasets.rejects import REASONS, RejectError
from pairwright.datasets.tar_index import find_member

if TYPE_CHECKING:
    from PIL import Image

ImageCheckDepth = Literal["header", "full"]

MAX_PIXELS = 89_478_485  # Pillow's own bound: a quarter of a gigabyte at three bytes a pixel
MAX_IMAGE_BYTES = 256 * 2**20
END_MARKER_WINDOW = 65_536  # cameras append previews after the end mark
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
PILLOW_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")

MEMBER_SEPARATOR = (
    rf"(\.tar|{re.escape(PARQUET_SUFFIX)})::"  # what stands between a file of pictures and the picture, as a pattern
)

_MEMBER_SEPARATOR = re.compile(MEMBER_SEPARATOR)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def select_image_extensions(extensions: Iterable[str]) -> list[str]:
    """Return those of a sample's file extensions, without their dot, that name an image; labels and texts are none."""
    return [each for each in extensions if f".{each.lower()}" in IMAGE_SUFFIXES]


class UnusableImageError(InputError):
    """An image is missing, no image, too large, or of a format that cannot be carried; ``reason`` is a word of `rejects.REASONS`."""

    def __init__(self, reason: str, what: str, where: str) -> None:
        super().__init__(what, where=where, fix=REASONS[reason])
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return UnusableImageError, (self.reason, self.what, self.where)


def is_url(locator: str) -> bool:
    """Say whether a locator names something to fetch (``https://``, ``s3://``, ...)."""
    return _URL.match(locator) is not None


def split_locator(locator: str) -> tuple[str, str]:
    """Return file (a tar or a table) and member of a locator; the member is empty for a plain path."""
    found = _MEMBER_SEPARATOR.search(locator)
    return (locator[: found.end(1)], locator[found.end() :]) if found else (locator, "")


def is_table_cell(locator: str) -> bool:
    """Say whether a locator names a picture inside a table."""
    name, member = split_locator(locator)
    return bool(member) and name.endswith(PARQUET_SUFFIX)


@dataclass(frozen=True)
class ImageRoot:
    """The folder that relative image paths of an input start from.

    Attributes:
        folder: absolute.
        confined: whether images have to lie below it. It is set where a user names the folder, not where it is only the
            folder of the input.
    """

    folder: Path
    confined: bool = False

    def locate(self, written: str) -> str:
        """Return the locator of an image that an input names: an absolute path, a URL as it is, or nothing.

        Raises:
            Refused: image_outside_root, by ``..`` or an absolute path.
        """
        if not written or is_url(written):
            return written
        located = os.path.normpath(os.path.join(self.folder, written))  # noqa: PTH118 - a hot path
        file = split_locator(located)[0]
        if self.confined and "\0" not in file and not self._holds(file):
            raise RejectError("image_outside_root", f"{file} lies outside the image root {self.folder}")
        return located

    def _holds(self, file: str) -> bool:
        """Say whether a normalised path lies below the folder. Links below it are the user's own layout, and are followed."""
        if Path(file).is_relative_to(self.folder):
            return True
        return Path(file).is_relative_to(os.path.realpath(self.folder))  # an absolute path past a link to the folder


def open_image(locator: str) -> bytes:
    """Return the bytes that a locator names, as they are stored.

    Raises:
        UnusableImage: missing_image or image_too_large.
        InputError: for a URL, or when the tar is no tar.
    """
    with _open_stream(locator) as stream:
        return stream.read()


def check_image(data: bytes, how: ImageCheckDepth = "header", where: str = "image") -> tuple[int, int, str]:
    """Return (width, height, format) of image bytes; format as in ``jpeg``, ``png``, ``webp``.

    Raises:
        UnusableImage: bad_image or image_too_large; ``where`` tells the place in its message.
    """
    return _check_stream(io.BytesIO(data), len(data), how, where)


def check_image_at(locator: str, how: ImageCheckDepth = "header") -> tuple[int, int, str]:
    """Return what `check_image` does for a path or tar member, reading no more of it than needed."""
    if split_locator(locator)[1]:
        return check_image(open_image(locator), how, locator)
    with _open_stream(locator) as stream:
        size = stream.seek(0, io.SEEK_END)
        return _check_stream(stream, size, how, locator)


def read_stored_size(locator: str) -> int:
    """Return how many bytes an image has as it is stored, of one in a table about; 0 where that cannot be told."""
    name, member = split_locator(locator)
    path = Path(name)
    try:
        if not member:
            return path.stat().st_size
        if name.endswith(PARQUET_SUFFIX):
            return estimate_cell_size(path, member)
        found = find_member(path, member)
    except (OSError, InputError, RejectError):
        return 0
    return found.size if found else 0


def _open_stream(locator: str) -> BinaryIO:
    if is_url(locator):
        raise InputError("a URL, not a file", where=locator, fix="Fetch the images first and read the local copy.")
    if "\0" in locator:  # the operating system would raise a ValueError
        raise UnusableImageError("missing_image", "not a file name", repr(locator))
    name, member = split_locator(locator)
    path = Path(name)
    try:
        if member:
            return io.BytesIO((_read_row if is_table_cell(locator) else _read_member)(path, member, locator))
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
        return path.open("rb")
    except OSError as error:
        raise UnusableImageError("missing_image", f"cannot be read ({error.strerror or error})", locator) from None


def _read_member(path: Path, name: str, locator: str) -> bytes:
    try:
        member = find_member(path, name)
    except InputError as error:
        raise UnusableImageError("bad_image", error.what, locator) from None
    if member is None:
        raise UnusableImageError("missing_image", "the tar has no such member", locator)
    if member.size > MAX_IMAGE_BYTES:
        raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
    with path.open("rb") as handle:
        handle.seek(member.offset)
        return handle.read(member.size)


def _read_row(path: Path, member: str, locator: str) -> bytes:
    try:
        data = read_cell_image(path, member)
    except RejectError as flaw:
        raise UnusableImageError(flaw.reason, flaw.detail, locator) from None
    if len(data) > MAX_IMAGE_BYTES:
        raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
    return data


# What Pillow's parsers raise on damaged bytes; they promise no narrower set.
DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    EOFError,
    RuntimeError,
    struct.error,
    zlib.error,
)


def decode_image(data: bytes, where: str = "image") -> "Image.Image":
    """Return image bytes as decoded pixels.

    Raises:
        UnusableImage: bad_image or image_too_large.
    """
    from PIL import Image

    check_image(data, "header", where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=PILLOW_FORMATS)
            image.load()
    except DECODER_ERRORS as error:
        raise UnusableImageError("bad_image", f"does not decode ({type(error).__name__}: {error})", where) from None
    return convert_to_8_bit(image)


def convert_to_8_bit(image: "Image.Image") -> "Image.Image":
    """Return a picture in 16 bits of grey (depth, X-rays) in 8, any other as it is.

    Pillow itself cuts such values off at 255, which makes nearly all of them white.
    """
    if not (image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG")):
        return image
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _check_stream(stream: BinaryIO, size: int, how: ImageCheckDepth, where: str) -> tuple[int, int, str]:
    from PIL import Image, UnidentifiedImageError

    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.simplefilter("ignore", UserWarning)
            with Image.open(stream, formats=PILLOW_FORMATS) as image:
                width, height = image.size
                name = "jpeg" if image.format == "MPO" else str(image.format).lower()
                if width * height > MAX_PIXELS:
                    raise UnusableImageError("image_too_large", f"{width} x {height} pixels", where)
                begun = stream.tell()  # decoders go on from where the header ended
                if how == "full" or not _is_complete(stream, size, name):
                    stream.seek(begun)
                    image.load()
    except UnidentifiedImageError:  # its own message tells where a stream lies in memory, which no two runs share
        stream.seek(0)
        kind = detect_unsupported_format(stream.read(SIGNATURE_BYTES))
        what = f"{kind}, which is not read: convert it to JPEG, PNG or WebP" if kind else "not an image"
        raise UnusableImageError("bad_image", f"{what} ({', '.join(PILLOW_FORMATS)} are read)", where) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnusableImageError("image_too_large", f"more than {MAX_PIXELS} pixels", where) from None
    except DECODER_ERRORS as error:
        raise UnusableImageError("bad_image", f"does not decode ({type(error).__name__}: {error})", where) from None
    return width, height, name


def _is_complete(stream: BinaryIO, size: int, name: str) -> bool:
    """Say whether the file ends as its format does; false also when that cannot be told."""
    if name == "webp":
        stream.seek(4)
        return int.from_bytes(stream.read(4), "little") + 8 <= size
    mark = {"jpeg": b"\xff\xd9", "png": b"IEND"}.get(name)
    if mark is None:
        return False
    stream.seek(max(0, size - END_MARKER_WINDOW))
    return mark in stream.read(END_MARKER_WINDOW)
