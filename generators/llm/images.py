"""Images for a model: scaled down to what the model sees, encoded once, and identified by the hash of their bytes.

    images = MessageImages.for_model(prices.image_rule("gpt-4o-mini"))
    Message("user", "What is on the table?", (images.read("photos/1.jpg"),))

An image that is small enough and in a form that every server reads alike is sent as it is. Others are turned upright, scaled
to ``edge`` pixels on the longer edge (and ``short_edge`` on the shorter one, if the model scales to that), and encoded as
JPEG, with transparency on white. Of an animation the first frame is used. `image_tokens` says which edge a family of models
is sent.

With ``urls`` an image that has a web address is sent as this address, and the server downloads it at its own size.

The cache of answers identifies an image by its original bytes and `MessageImages.form`, so that a repeated run decodes and
encodes nothing. Encoded images are kept in up to ``memory`` bytes, the most recent ones; requests of several rows or
threads that show one image share its encoding.

Not covered: audio, video.
"""

import base64
import io
from collections import OrderedDict
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Literal, Self

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import DECODER_ERRORS, UnusableImageError, check_image, is_url, open_image
from pairwright.datasets.records import Pair
from pairwright.generators.llm.client.messages import Image
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.image_tokens import DEFAULT_EDGE, LOW_DETAIL_EDGE, ImageRule

ImageDetail = Literal["auto", "low", "high"]

PASSTHROUGH_FORMATS = frozenset({"jpeg", "png", "webp"})
PASSTHROUGH_MODES = frozenset({"RGB", "L"})  # Pillow's names of 8-bit color and gray without transparency
_ORIENTATION = 0x0112  # the EXIF tag; 1 is upright
_LOCKS = 64


class MessageImages:
    """Encodes images for messages.

    Args:
        edge: maximum pixels of the longer edge.
        short_edge: maximum pixels of the shorter edge; 0: unlimited.
        detail: sent with each image unless it is ``auto``.
        urls: send the addresses of images that have one.
        quality: JPEG quality, 1-95.
        memory: bytes of encoded images to keep.

    Raises:
        UsageError: when a number is out of its range.
    """

    def __init__(  # noqa: PLR0913 - settings
        self,
        *,
        edge: int = DEFAULT_EDGE,
        short_edge: int = 0,
        detail: ImageDetail = "auto",
        urls: bool = False,
        quality: int = 90,
        memory: int = 64 * 2**20,
    ) -> None:
        if edge < 1 or short_edge < 0 or not 1 <= quality <= 95 or memory < 0:
            raise UsageError("images: edge is at least 1 pixel, quality 1-95, memory at least 0 bytes.")
        self._short_edge = short_edge if 0 < short_edge < edge else 0
        self._detail = "" if detail == "auto" else detail
        short = f" short={self._short_edge}" if self._short_edge else ""
        self._suffix = f" detail={self._detail}" if self._detail else ""
        self.form = f"edge={edge}{short} jpeg={quality}{self._suffix}"
        self._edge, self._quality, self._urls = edge, quality, urls
        self._encoded = _RecentlyUsed(memory)

    @classmethod
    def for_model(cls, rule: ImageRule, *, edge: int = 0, detail: ImageDetail = "auto", urls: bool = False) -> Self:
        """Return images at the size that a model sees.

        Args:
            rule: of the model (`prices.Prices.image_rule`).
            edge: maximum pixels of the longer edge in place of the model's own; 0: the model's.
            detail: ``low`` sends images of 512 pixels.
            urls: send the addresses of images that have one.
        """
        most = edge or (min(rule.edge, LOW_DETAIL_EDGE) if detail == "low" else rule.edge)
        return cls(edge=most, short_edge=rule.short_edge, detail=detail, urls=urls)

    def of_pair(self, pair: Pair) -> Image | None:
        """Return the image of a pair; None if it has none, or none that can be sent."""
        return next(iter(self.find(pair.image, (pair.width, pair.height))), None)

    def read(self, locator: str, size: tuple[int, int] = (0, 0)) -> Image:
        """Return the image that a locator names (`datasets.images`).

        Args:
            locator: path, ``shard.tar::member``, table cell, or URL.
            size: width and height of a URL's image in pixels, for estimates; 0: unknown.

        Raises:
            UnusableImageError: when it is missing, no image, or too large.
            InputError: for a URL unless these are sent, or when the tar is no tar.
        """
        if not is_url(locator):
            return self.of(open_image(locator), where=locator)
        if not (self._urls and locator.startswith(("http://", "https://"))):
            fix = "Fetch the images first (pairwright fetch), or send web addresses with --image-urls."
            raise InputError("a URL, not a file", where=locator, fix=fix)
        digest = sha256(locator.encode()).hexdigest()
        return Image(digest, f"url{self._suffix}", partial(str, locator), *size, self._detail)

    def find(self, locator: str, size: tuple[int, int] = (0, 0)) -> tuple[Image, ...]:
        """Return the image for a message; empty without one that can be sent. Arguments as of `read`."""
        try:
            return (self.read(locator, size),) if locator else ()
        except InputError:
            return ()

    def of(self, data: bytes, *, where: str = "image") -> Image:
        """Return the image with these bytes; ``where`` names it in errors.

        Raises:
            UnusableImageError: when the header is not that of an image, or the image is too large.
        """
        *size, name = check_image(data, "header", where)
        sent, digest = self._sent((size[0], size[1])), sha256(data).hexdigest()
        # Before, images of other modes were sent as they are: what the cache has for them was said of another image.
        form = (
            f"{self.form} rgb"
            if name in PASSTHROUGH_FORMATS and [*sent] == size and not _is_opaque(data)
            else self.form
        )
        # Partial functions rather than closures, so that requests can be pickled.
        return Image(digest, form, partial(self._data_url, digest, data, where), *sent, self._detail)

    def _sent(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the size at which an image is sent."""
        shrink = min(1.0, self._edge / max(size))
        if self._short_edge:
            shrink = min(shrink, self._short_edge / min(size))
        return max(1, round(size[0] * shrink)), max(1, round(size[1] * shrink))

    def _data_url(self, digest: str, data: bytes, where: str) -> str:
        with self._encoded.lock(digest):  # another thread may be encoding it
            url = self._encoded.get(digest)
            if url is None:
                try:
                    url = self._encode(data, where)
                except UnusableImageError as error:  # the header is valid, the pixels are not
                    raise RequestError("bad_image", str(error)) from None
                self._encoded.put(digest, url)
        return url

    def _encode(self, data: bytes, where: str) -> str:
        *size, name = check_image(data, "header", where)
        sent = self._sent((size[0], size[1]))
        if name not in PASSTHROUGH_FORMATS or [*sent] != size or not _is_plain(data):
            data, name = self._smaller(data, where), "jpeg"
        return f"data:image/{name};base64,{base64.b64encode(data).decode()}"

    def _smaller(self, data: bytes, where: str) -> bytes:
        from PIL.Image import Resampling

        from pairwright.datasets.images.recoding import convert_to_rgb, decode_oriented_image

        picture = convert_to_rgb(decode_oriented_image(data, where))
        if (sent := self._sent(picture.size)) != picture.size:
            picture = picture.resize(sent, Resampling.LANCZOS, reducing_gap=2.0)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=self._quality)
        return out.getvalue()


def missing_image_reason(locator: str) -> str:
    """Return why `MessageImages.find` has no image: ``image_url`` (addresses are not sent), else ``no_image``."""
    return "image_url" if is_url(locator) else "no_image"


def _is_plain(data: bytes) -> bool:
    """Return whether an image is upright, opaque and not animated, in RGB or gray; servers differ in how they treat others."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as image:
        try:
            upright = image.getexif().get(_ORIENTATION, 1) == 1
        except DECODER_ERRORS:
            return False  # decoding, which a server would have to do as well, says why
        return upright and _is_opaque(data) and getattr(image, "n_frames", 1) == 1


def _is_opaque(data: bytes) -> bool:
    """Return whether an image is in RGB or gray, without transparency."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as image:
        return image.mode in PASSTHROUGH_MODES and "transparency" not in image.info


class _RecentlyUsed:
    """A least-recently-used store of texts, limited in bytes, with locks for those who make them."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._locks = [Lock() for _ in range(_LOCKS)]
        self._own = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return _RecentlyUsed, (self._most,)  # the content is encoded again in another process

    def lock(self, name: str) -> Lock:
        return self._locks[hash(name) % _LOCKS]

    def get(self, name: str) -> str | None:
        with self._own:
            text = self._texts.get(name)
            if text is not None:
                self._texts.move_to_end(name)
            return text

    def put(self, name: str, text: str) -> None:
        if len(text) > self._most:
            return
        with self._own:
            self._texts[name] = text
            self._bytes += len(text)
            while self._bytes > self._most:
                self._bytes -= len(self._texts.popitem(last=False)[1])
