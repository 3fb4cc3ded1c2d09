"""Image transforms of CLIP: from image bytes to the square of pixels that a vision tower reads.

Evaluation (``crop`` 1): resize the shorter side to ``size`` (bicubic), then center crop. Training (``crop`` below 1): a
rectangle with a random share of the area and an aspect ratio from 3:4 to 4:3 is resized to the square (OpenCLIP: 0.9 to
1). Images are never mirrored: captions with "left" and "right" would become false.

In training, a JPEG at least twice as large as the smallest crop needs is decoded at 1/2, 1/4 or 1/8 of its size; the
pixels differ slightly from those of a full decode. Color and grey JPEGs are decoded by simplejpeg (libjpeg-turbo) where
it is installed: the same pixels as Pillow's, in half the time. Pillow decodes everything else: other formats, CMYK,
and all files that simplejpeg refuses, so that what is a broken image does not depend on it. Random crops are resized by
torch's antialiased bicubic kernel, which follows Pillow's with other roundings (at least 50 dB PSNR), in a third of the
time; one torch version gives the same pixels on every CPU. Evaluation uses Pillow alone, as transformers does.
"""

import io
import math
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, UnidentifiedImageError
from torch.nn.functional import interpolate

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import (
    DECODER_ERRORS,
    MAX_PIXELS,
    PILLOW_FORMATS,
    UnusableImageError,
    convert_to_8_bit,
)
from pairwright.training.models.anyres import Grid, choose_grid, split_image

try:
    import simplejpeg
except ImportError:
    simplejpeg = None

Channels = tuple[float, float, float]
CLIP_MEAN: Channels = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Channels = (0.26862954, 0.26130258, 0.27577711)

_RATIOS = (math.log(3 / 4), math.log(4 / 3))
_MAX_CROP_TRIES = 10
_DECOMPRESSION_BOMB = (Image.DecompressionBombError, Image.DecompressionBombWarning)

_JPEG_START = b"\xff\xd8\xff"

_Box = tuple[int, int, int, int]
_Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Options of the image transforms."""

    size: int = 224  # side in pixels of the tower's input
    crop: float = 1.0  # minimum share of the area that a random crop keeps, above 0; 1: center crop
    tiles: bool = False  # return the whole image and its tiles (AnyRes), uncropped, instead of one square
    mean: tuple[float, float, float] = CLIP_MEAN  # of the channels in 0-1, red first
    std: tuple[float, float, float] = CLIP_STD  # likewise

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.crop <= 1 or min(self.std) <= 0:
            raise UsageError("images: size and std must be above 0, crop in (0, 1].")
        if self.tiles and self.crop < 1:
            raise UsageError("method.tiles requires whole images: set batches.crop to 1.")


class PreparedImage(NamedTuple):
    """An image as a vision tower reads it."""

    # uint8 (n, 3, size, size): the image, or with tiles (AnyRes) the whole image and its tiles
    parts: npt.NDArray[np.uint8]
    grid: Grid | None = None  # of the tiles; None without


def load_parts(data: bytes, options: ImageOptions, rng: random.Random, where: str) -> PreparedImage:
    """Return the result of `load_tiles` with tiles, else that of `load_pixels`."""
    if options.tiles:
        return PreparedImage(*load_tiles(data, options, where))
    return PreparedImage(load_pixels(data, options, rng, where)[np.newaxis])


def load_pixels(data: bytes, options: ImageOptions, rng: random.Random, where: str) -> npt.NDArray[np.uint8]:
    """Return the image as uint8 (3, size, size), red first; ignores ``options.tiles``.

    ``data`` are the bytes of an image file; ``rng`` is for the crop, ``where`` for messages. Raises
    `UnusableImageError` if the bytes do not decode.
    """
    if options.crop < 1:
        least = math.ceil(options.size / math.sqrt(options.crop))
        pixels = _decode_jpeg(data, least) if data.startswith(_JPEG_START) else None
        if pixels is None:
            with _decoding(where):
                pixels = np.array(_open_rgb(data, least))
        return _random_crop(pixels, options, rng)
    with _decoding(where):
        return _channels_first(_center_crop(_open_rgb(data), options.size))


def load_tiles(data: bytes, options: ImageOptions, where: str) -> tuple[npt.NDArray[np.uint8], Grid]:
    """Return uint8 (1 + tiles, 3, size, size), the whole image first, and the grid of its tiles (`anyres.split_image`).

    Padding has the mean color. Arguments and errors are those of `load_pixels`.
    """
    with _decoding(where):
        shown = _channels_first(_open_rgb(data))
    middle = 255 * torch.tensor(options.mean).view(3, 1, 1)
    grid = choose_grid(shown.shape[2], shown.shape[1], options.size)
    cut = split_image(torch.from_numpy(shown).float() - middle, options.size, grid) + middle
    return cut.round_().clamp_(0, 255).byte().numpy(), grid


@contextmanager
def _decoding(where: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UnidentifiedImageError:  # its message has a memory address
        raise UnusableImageError("bad_image", f"not an image ({', '.join(PILLOW_FORMATS)} are read)", where) from None
    except (*DECODER_ERRORS, *_DECOMPRESSION_BOMB) as error:
        raise UnusableImageError("bad_image", f"does not decode ({type(error).__name__}: {error})", where) from None


def _open_rgb(data: bytes, least: int = 0) -> Image.Image:
    """Return an image of 8-bit RGB by Pillow; ``least``: minimum sides of a JPEG decoded at a smaller size, 0: its own."""
    image = Image.open(io.BytesIO(data), formats=PILLOW_FORMATS)
    if least:
        image.draft("RGB", (least, least))
    return image if image.mode == "RGB" else convert_to_8_bit(image).convert("RGB")


def _decode_jpeg(data: bytes, least: int) -> _Pixels | None:
    """Return uint8 (h, w, 3) at the smallest of 1/1 to 1/8 with sides from ``least``; None if Pillow must decode it."""
    if simplejpeg is None:
        return None
    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(data)
        if colors not in {"YCbCr", "Gray"} or height * width > MAX_PIXELS:
            return None
        scale = next((each for each in (8, 4, 2) if min(height, width) // least >= each), 1)
        # With these sides simplejpeg selects exactly that scale.
        pixels: _Pixels = simplejpeg.decode_jpeg(data, min_height=-(-height // scale), min_width=-(-width // scale))
    except ValueError:  # also for mere warnings, which Pillow accepts
        return None
    return pixels


def _channels_first(image: Image.Image) -> _Pixels:
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def _center_crop(image: Image.Image, size: int) -> Image.Image:
    width, height = image.size
    short = min(width, height)
    wide, high = size * width // short, size * height // short
    left, top = (wide - size) // 2, (high - size) // 2
    return image.resize((wide, high), Image.Resampling.BICUBIC).crop((left, top, left + size, top + size))


def _random_crop(pixels: _Pixels, options: ImageOptions, rng: random.Random) -> _Pixels:
    """Return a random crop of uint8 (h, w, 3), resized to (3, size, size)."""
    left, top, right, bottom = _crop_box(pixels.shape[1], pixels.shape[0], options.crop, rng)
    cropped = torch.from_numpy(pixels[top:bottom, left:right]).permute(2, 0, 1).unsqueeze(0)
    resized = interpolate(cropped, size=(options.size, options.size), mode="bicubic", antialias=True)
    return resized[0].contiguous().numpy()


def _crop_box(width: int, height: int, least: float, rng: random.Random) -> _Box:
    """Return a random crop box; the largest centered one with an allowed aspect ratio if all tries fail."""
    for _ in range(_MAX_CROP_TRIES):
        area = width * height * rng.uniform(least, 1)
        ratio = math.exp(rng.uniform(*_RATIOS))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = rng.randint(0, width - wide), rng.randint(0, height - high)
            return (left, top, left + wide, top + high)
    wide, high = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    left, top = (width - wide) // 2, (height - high) // 2
    return (left, top, left + wide, top + high)
