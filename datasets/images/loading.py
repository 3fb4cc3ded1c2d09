"""Image files by locator: reading, checking, decoding.

A *locator* is the value of `Pair.image`: a path, ``shard.tar::member``, ``table.parquet::column/row-N``
(`parquet_cells.py`), or a URL. `open_image` returns the bytes of all but URLs, which are fetched elsewhere. `check_image`
returns width, height and format, `decode_image` the pixels.

Depths of a check:
- ``header``: the header parses, the size is plausible, and the file ends as its format requires; only a file that seems
  truncated is decoded. About 0.1 ms per image; damage inside the pixel data is not detected.
- ``full``: every pixel is decoded; several milliseconds per image.

Limits: at most `MAX_PIXELS` pixels and `MAX_IMAGE_BYTES` bytes, checked before decoding, so that a small file cannot
expand to gigabytes. Formats: JPEG, PNG, WebP, GIF, BMP, TIFF. Other photo formats are recognised by name and signature,
for the message only: their decoders are separate packages, and trainers read JPEG, PNG and WebP.
"""

import io
import logging
import os
import re
import struct
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO, Literal
from urllib.parse import unquote, urlsplit

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.lookup import find_below
from pairwright.datasets.images.parquet_cells import PARQUET_SUFFIX, estimate_cell_size, read_cell_image
from pairwright.datasets.redaction import is_file_url, redact_url
from pairwright.datasets.rejects import REASONS, RejectError
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.reading import read_file
from pairwright.datasets.remote.store_path import StoreListings, StorePath, to_path
from pairwright.datasets.tar_index import find_member, read_member

UNSUPPORTED_SUFFIXES = frozenset({".heic", ".heif", ".avif", ".jxl"})  # photo formats; other files are no samples
SIGNATURE_BYTES = 64  # enough to recognise a format
_BRANDS = {
    "AVIF": (b"avif", b"avis"),
    "HEIC": (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"),
}
_SIGNATURES = {
    "JPEG XL": (b"\xff\x0a", b"\0\0\0\x0cJXL "),
    "SVG": (b"<svg",),
    "PSD": (b"8BPS",),
}

if TYPE_CHECKING:
    from PIL import Image

ImageCheckDepth = Literal["header", "full"]

MAX_PIXELS = 89_478_485  # Pillow's own limit: 256 MiB at three bytes per pixel
MAX_IMAGE_BYTES = 256 * 2**20
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
_SHORT_NAMES = {"jpeg": "jpg", "tiff": "tif"}
END_MARKER_WINDOW = 65_536  # cameras append previews after the end marker
PILLOW_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")

MEMBER_SEPARATOR = rf"(\.tar|{re.escape(PARQUET_SUFFIX)})::"  # pattern between a container file and its image

_MEMBER_SEPARATOR = re.compile(MEMBER_SEPARATOR)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_FURTHER_IMAGE = re.compile(rf"([1-9][0-9]{{0,8}})(?:{'|'.join(map(re.escape, sorted(IMAGE_SUFFIXES)))})")


def image_format_by_name(image: str) -> str:
    """Return the format of an image (``jpg``, ``png``, ``tif``, ...) by its name; empty where the name does not state it."""
    suffix = Path(image).suffix.lower()
    stated = suffix in IMAGE_SUFFIXES and not (is_url(image) or is_table_cell(image))
    return short_format_name(suffix[1:]) if stated else ""


def short_format_name(name: str) -> str:
    """Return the name of a format as a file ending: ``jpg`` for Pillow's ``jpeg``."""
    return _SHORT_NAMES.get(name, name)


def select_image_extensions(extensions: Iterable[str]) -> list[str]:
    """Return the file extensions (without dot) of a sample that name an image."""
    return [each for each in extensions if f".{each.lower()}" in IMAGE_SUFFIXES]


def select_further_images(extensions: Iterable[str]) -> list[str]:
    """Return the extensions of a sample's second and later images, in order: ``1.jpg``, ``2.jpg``."""
    found = [(int(number[1]), each) for each in extensions if (number := _FURTHER_IMAGE.fullmatch(each.lower()))]
    return [each for _, each in sorted(found)]


class UnusableImageError(InputError):
    """An image is missing, invalid, too large, or of an unsupported format; ``reason`` is a key of `rejects.REASONS`."""

    def __init__(self, reason: str, what: str, where: str) -> None:
        super().__init__(what, where=where, fix=REASONS[reason])
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return UnusableImageError, (self.reason, self.what, self.where)


def is_url(locator: str) -> bool:
    """Return whether a locator is a URL (``https://``, ...) of an image that has to be fetched, not one in an object store."""
    return _URL.match(locator) is not None and not is_stored(locator)


def is_stored(locator: str) -> bool:
    """Return whether a locator names an image in an object store, a file or inside a tar or table, which is read there."""
    return is_remote(locator) and (not is_file_url(locator) or bool(split_locator(locator)[1]))


def split_locator(locator: str) -> tuple[str, str]:
    """Return file (a tar or a table) and member of a locator; the member is empty for a plain path."""
    found = _MEMBER_SEPARATOR.search(locator)
    return (locator[: found.end(1)], locator[found.end() :]) if found else (locator, "")


def is_table_cell(locator: str) -> bool:
    """Return whether a locator names an image inside a table."""
    name, member = split_locator(locator)
    return bool(member) and name.endswith(PARQUET_SUFFIX)


def is_stored_file(locator: str) -> bool:
    """Return whether a locator names an image that is a file of an object store, which is read by one request."""
    return is_stored(locator) and not split_locator(locator)[1]


@dataclass(frozen=True)
class ImageRoot:
    """The folder, or folders, of an input's relative image paths.

    Attributes:
        folder: absolute.
        confined: whether images must be below it: true if the user named the folder, false for the input's own folder.
        others: folders of the images that are not in ``folder``, such as Visual Genome's second one.
    """

    folder: Path
    confined: bool = False
    others: tuple[Path, ...] = ()

    @classmethod
    def named(cls, written: str) -> "ImageRoot":
        """Return the root that a user named: a folder, or a brace pattern of folders (``{VG_100K,VG_100K_2}``).

        Raises:
            InputError: for an invalid pattern.
        """
        is_pattern = "{" in written and not is_remote(written) and not Path(written).exists()
        folders = [to_path(folder).absolute() for folder in (expand_braces(written) if is_pattern else [written])]
        return cls(folders[0], confined=True, others=tuple(folders[1:]))

    def locate(self, written: str) -> str:
        """Return the locator of an image as written in an input: an absolute path, an unchanged URL, or empty.

        A path of Windows and a ``file:`` URL become a path of this system. Below a folder that the user named, an absolute
        path of another machine is found by the end of its path.

        Raises:
            RejectError: image_outside_root, by ``..`` or an absolute path.
        """
        of_windows = "\\" in written and not _URL.match(written)
        if (of_windows or is_file_url(written)) and not is_remote(self.folder):
            written = self._as_local_path(written)
        if not written or is_url(written):
            return written
        if is_stored(written):
            located = written
        elif is_remote(self.folder):
            located = str(StorePath(os.path.normpath(self.folder / written)))
        else:
            located = os.path.normpath(os.path.join(self.folder, written))  # noqa: PTH118 - a hot path
        file = split_locator(located)[0]
        if self.others and not _file_exists(file):
            located = next(filter(_file_exists, (os.path.normpath(each / written) for each in self.others)), located)
            file = split_locator(located)[0]
        if self.confined and "\0" not in file and not self._holds(file):
            if found := self._find_by_name(written):
                return found
            raise RejectError("image_outside_root", f"{file} lies outside the image root {self.folder}")
        return located

    def _as_local_path(self, written: str) -> str:
        """Return the path that a ``file:`` URL or a path of Windows means here; other texts, and names of files, unchanged."""
        if is_file_url(written) and not split_locator(written)[1]:
            return unquote(urlsplit(written).path)
        if _file_exists(os.path.join(self.folder, written)):  # noqa: PTH118 - any text
            return written
        path = PureWindowsPath(written)
        return path.as_posix().removeprefix(path.drive)

    def _find_by_name(self, written: str) -> str:
        """Return the image below the folders that an absolute path of another machine names, or an empty string."""
        if not Path(written).is_absolute() or split_locator(written)[1] or is_remote(self.folder):
            return ""
        return next(filter(None, (find_below(folder, written) for folder in (self.folder, *self.others))), "")

    def _holds(self, file: str) -> bool:
        """Return whether a normalised path is below the folder. Links below it are followed."""
        if is_remote(file):
            return StorePath(os.path.normpath(file)).is_relative_to(self.folder)
        folders = (self.folder, *self.others)
        if any(Path(file).is_relative_to(folder) for folder in folders):
            return True
        # An absolute path past a link to the folder.
        return any(Path(file).is_relative_to(os.path.realpath(folder)) for folder in folders)


def _file_exists(locator: str) -> bool:
    return os.path.exists(split_locator(locator)[0])  # noqa: PTH110 - `Path.exists` raises for names that are too long


def locate_row_image(written: str, source: Path, root: Path | None = None) -> str:
    """Return the locator of the image of a row: an existing file near its source, else as written.

    Args:
        written: path, URL or empty, as in the row.
        source: file or folder of the row; relative paths start from its folder, else from the working one.
        root: folder of the images; relative paths start from it, and images outside of it are rejected. An absolute path of
            another machine is found by file name.

    Raises:
        RejectError: image_outside_root.
    """
    if not written or _URL.match(written):
        return written
    if root is not None:
        of_another_machine = Path(written).is_absolute() and find_below(root.absolute(), written)
        return of_another_machine or ImageRoot(root.absolute(), confined=True).locate(written)
    folder = source if source.is_dir() else source.parent
    return str(folder / written) if (folder / split_locator(written)[0]).exists() else written


def open_image(locator: str) -> bytes:
    """Return the stored bytes of an image.

    Raises:
        UnusableImageError: missing_image, image_too_large, or not_fetched (a URL).
        InputError: for an invalid tar.
    """
    with _open_stream(locator) as stream:
        return stream.read()


def check_image(data: bytes, how: ImageCheckDepth = "header", where: str = "image") -> tuple[int, int, str]:
    """Return (width, height, format) of image bytes; formats are ``jpeg``, ``png``, ``webp`` ...

    Raises:
        UnusableImageError: bad_image or image_too_large; ``where`` names the place in its message.
    """
    return _check_stream(io.BytesIO(data), len(data), how, where)


def check_image_at(locator: str, how: ImageCheckDepth = "header") -> tuple[int, int, str]:
    """Return `check_image` of a path or tar member, reading no more of it than needed."""
    if split_locator(locator)[1]:
        return check_image(open_image(locator), how, locator)
    with _open_stream(locator) as stream:
        size = stream.seek(0, io.SEEK_END)
        return _check_stream(stream, size, how, locator)


def read_stored_size(locator: str, listings: StoreListings | None = None) -> int:
    """Return the stored bytes of an image, approximate for table cells; 0 if unknown.

    Args:
        locator: of the image.
        listings: for many images of a store.
    """
    name, member = split_locator(locator)
    path = listings.path(name) if listings and not member else to_path(name)
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
        raise UnusableImageError("not_fetched", "a URL, not a file", locator)
    name, member = split_locator(locator)
    if "\0" in locator:  # the operating system would raise a ValueError
        raise UnusableImageError("missing_image", "not a file name", repr(locator))
    path = to_path(name)
    try:
        if is_stored_file(locator):
            return io.BytesIO(_read_stored(name))
        if member:
            return io.BytesIO((_read_row if is_table_cell(locator) else _read_member)(path, member, locator))
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
        return path.open("rb")
    except OSError as error:
        raise UnusableImageError("missing_image", f"cannot be read ({error.strerror or error})", locator) from None


def _read_stored(name: str) -> bytes:
    data = read_file(name, MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", name)
    return data


def _read_member(path: Path, name: str, locator: str) -> bytes:
    try:
        member = find_member(path, name)
    except InputError as error:
        raise UnusableImageError("bad_image", error.what, locator) from None
    if member is None:
        raise UnusableImageError("missing_image", "the tar has no such member", locator)
    if member.size > MAX_IMAGE_BYTES:
        raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
    return read_member(path, member)


def _read_row(path: Path, member: str, locator: str) -> bytes:
    try:
        data = read_cell_image(path, member)
    except RejectError as flaw:
        raise UnusableImageError(flaw.reason, flaw.detail, locator) from None
    if len(data) > MAX_IMAGE_BYTES:
        raise UnusableImageError("image_too_large", f"more than {MAX_IMAGE_BYTES} bytes", locator)
    return data


logging.getLogger("PIL").addHandler(logging.NullHandler())  # else Pillow's parsers write to stderr what they also raise

# Exceptions of Pillow's parsers for damaged bytes; Pillow documents no narrower set.
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
    """Return the decoded pixels of image bytes.

    Raises:
        UnusableImageError: bad_image or image_too_large.
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
    """Return a 16-bit greyscale image (depth, X-rays) in 8 bits, any other unchanged.

    Pillow clips such values at 255, which makes nearly all of them white.
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
                begun = stream.tell()  # decoders continue after the header
                if how == "full" or not _is_complete(stream, begun, size, name):
                    stream.seek(begun)
                    image.load()
    except UnidentifiedImageError:  # its message has a memory address, which differs between runs
        stream.seek(0)
        kind = detect_unsupported_format(stream.read(SIGNATURE_BYTES))
        what = f"{kind}, an unsupported format: convert it to JPEG, PNG or WebP" if kind else "not an image"
        raise UnusableImageError("bad_image", f"{what} ({', '.join(PILLOW_FORMATS)} are read)", where) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UnusableImageError("image_too_large", f"more than {MAX_PIXELS} pixels", where) from None
    except DECODER_ERRORS as error:
        raise UnusableImageError("bad_image", f"does not decode ({type(error).__name__}: {error})", where) from None
    return width, height, name


def _is_complete(stream: BinaryIO, header_end: int, size: int, name: str) -> bool:
    """Return whether the file ends as its format requires; false also for formats without an end marker.

    The header is not searched for the marker: the preview that cameras store there (EXIF) has one of its own.
    """
    if name == "webp":
        stream.seek(4)
        return int.from_bytes(stream.read(4), "little") + 8 <= size
    mark = {"jpeg": b"\xff\xd9", "png": b"IEND"}.get(name)
    if mark is None:
        return False
    stream.seek(max(header_end, size - END_MARKER_WINDOW))
    return mark in stream.read(END_MARKER_WINDOW)


def detect_unsupported_format(head: bytes) -> str:
    """Return the format of an unsupported image by its first bytes; empty if unknown."""
    found = [kind for kind, brands in _BRANDS.items() if head[4:8] == b"ftyp" and head[8:12] in brands]
    found += [kind for kind, starts in _SIGNATURES.items() if head.startswith(starts)]
    return found[0] if found else ""


def publishable_image_name(locator: str) -> str:
    """Return a locator for publication: file name (and ``::member``), or a URL by `redact_url`."""
    if is_stored(locator):
        locator = locator.rpartition("://")[2]
    if is_file_url(locator):
        locator = re.split(r"[?#]", locator, maxsplit=1)[0]
    elif "://" in locator:
        return redact_url(locator)
    path, separator, inside = locator.partition("::")
    return path.replace("\\", "/").rpartition("/")[2] + separator + inside
