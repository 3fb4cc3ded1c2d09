"""Images for a model: scaled down, encoded once, and identified by the hash of their original bytes.

    images = MessageImages(edge=768)
    Message("user", "What is on the table?", (images.read("photos/1.jpg"),))

An image that is small enough and in a format that every server accepts is sent as it is. Others are turned upright, scaled
to ``edge`` pixels on the longer edge, and encoded as JPEG, with transparency on white. Of an animation the first frame is
used.

The cache identifies an image by its original bytes and `MessageImages.form`, so that a repeated run decodes and encodes
nothing. The most recent encoded images are kept in up to ``memory`` bytes, so that several requests share one encoding.

Not covered: URLs (use `pairwright fetch` first), audio, video.
"""

import base64
import io
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import UnusableImageError, check_image, open_image
from pairwright.generators.llm.client.messages import Image
from pairwright.generators.llm.client.request_errors import RequestError

NO_IMAGE = "no_image"  # reason of rows that a model should see and whose image is missing or invalid
PASSTHROUGH_FORMATS = frozenset({"jpeg", "png", "webp"})
_ORIENTATION = 0x0112  # the EXIF tag; 1 is upright


class MessageImages:
    """Encodes images for messages.

    Args:
        edge: maximum pixels of the longer edge.
        quality: JPEG quality, 1-95.
        memory: bytes of encoded images to keep.

    Raises:
        UsageError: when a number is out of its range.
    """

    def __init__(self, *, edge: int = 1024, quality: int = 90, memory: int = 64 * 2**20) -> None:
        if edge < 1 or not 1 <= quality <= 95 or memory < 0:
            raise UsageError("images: edge is at least 1 pixel, quality 1-95, memory at least 0 bytes.")
        self.form = f"edge={edge} jpeg={quality}"
        self._edge, self._quality = edge, quality
        self._encoded = _RecentlyUsed(memory)

    def read(self, locator: str) -> Image:
        """Return the image that a locator names (`datasets.images`); URLs are none.

        Raises:
            UnusableImage: when it is missing, no image, or too large.
            InputError: for a URL, or when the tar is no tar.
        """
        return self.of(open_image(locator), where=locator)

    def find(self, locator: str) -> tuple[Image, ...]:
        """Return the image that a locator names, as the images of a message: empty if there is none or it is invalid."""
        try:
            return (self.read(locator),) if locator else ()
        except (UnusableImageError, InputError):
            return ()

    def of(self, data: bytes, *, where: str = "image") -> Image:
        """Return the image with these bytes; ``where`` names it in errors.

        Raises:
            UnusableImage: when the header is not that of an image, or the image is too large.
        """
        check_image(data, "header", where)
        digest = sha256(data).hexdigest()
        return Image(digest, self.form, _DataUrlMaker(self, digest, data, where))

    def _data_url(self, digest: str, data: bytes, where: str) -> str:
        url = self._encoded.get(digest)
        if url is None:
            try:
                url = self._encode(data, where)
            except UnusableImageError as error:  # the header is valid, the pixels are not
                raise RequestError("bad_request", str(error)) from None
            self._encoded.put(digest, url)
        return url

    def _encode(self, data: bytes, where: str) -> str:
        width, height, name = check_image(data, "header", where)
        if name not in PASSTHROUGH_FORMATS or max(width, height) > self._edge or not _is_plain(data):
            data, name = self._smaller(data, where), "jpeg"
        return f"data:image/{name};base64,{base64.b64encode(data).decode()}"

    def _smaller(self, data: bytes, where: str) -> bytes:
        from PIL.Image import Resampling

        from pairwright.datasets.images.recoding import convert_to_rgb, decode_oriented_image

        picture = convert_to_rgb(decode_oriented_image(data, where))
        picture.thumbnail((self._edge, self._edge), Resampling.LANCZOS)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=self._quality)
        return out.getvalue()


def _is_plain(data: bytes) -> bool:
    """Return whether an image is upright and not animated; servers differ in how they treat others."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as image:
        return image.getexif().get(_ORIENTATION, 1) == 1 and getattr(image, "n_frames", 1) == 1


@dataclass(frozen=True, slots=True)
class _DataUrlMaker:
    """Returns the URL of an image when called; an object rather than a closure, so that requests can be pickled."""

    images: MessageImages
    digest: str
    data: bytes
    where: str

    def __call__(self) -> str:
        return self.images._data_url(self.digest, self.data, self.where)  # noqa: SLF001 - it is a part of Images


class _RecentlyUsed:
    """A least-recently-used store of texts, limited in bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._texts: OrderedDict[str, str] = OrderedDict()

    def __reduce__(self) -> tuple[object, ...]:
        return _RecentlyUsed, (self._most,)  # the content is encoded again in another process

    def get(self, name: str) -> str | None:
        text = self._texts.get(name)
        if text is not None:
            self._texts.move_to_end(name)
        return text

    def put(self, name: str, text: str) -> None:
        if len(text) > self._most:
            return
        self._texts[name] = text
        self._bytes += len(text)
        while self._bytes > self._most:
            self._bytes -= len(self._texts.popitem(last=False)[1])
