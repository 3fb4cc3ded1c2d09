"""CLIP image preprocessing with Pillow and NumPy (no torchvision).

The steps: conversion to RGB, resize of the shorter edge (or squash to the square), centre crop, scaling to 0-1,
normalisation by mean and standard deviation. The tests compare the result with transformers' processor.

If an odd number of pixels is cropped, transformers rounds the margin down, and torchvision (so OpenCLIP) to even; each
checkpoint format gets its variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pairwright.datasets.errors import InputError

OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)

# Longer images are cropped to their middle first: resized, they would take gigabytes.
_MAX_ASPECT_RATIO = 64


@dataclass(frozen=True)
class ImagePreprocessing:
    """Preprocessing settings of a vision model.

    Attributes:
        size: side of the square input, in pixels.
        edge: size of the shorter edge after resizing; 0 squashes the image to the square.
        resample: number of Pillow's resampling filter (3: bicubic).
        middle: rounding of half of an odd margin: ``down`` or ``even``.
        mean: mean per channel, on a scale from 0 to 1.
        deviation: standard deviation per channel.
    """

    size: int
    edge: int
    resample: int = int(Image.Resampling.BICUBIC)
    middle: Literal["down", "even"] = "down"
    mean: tuple[float, ...] = OPENAI_MEAN
    deviation: tuple[float, ...] = OPENAI_STD

    def of(self, image: Image.Image) -> NDArray[np.float32]:
        """Return an image of any size and mode as float32 (3, size, size); transparency is dropped, not blended."""
        square = self._square(_crop_to_aspect_ratio(image).convert("RGB"))
        values = np.asarray(square, np.float32) / np.float32(255)
        mean, deviation = (np.array(channels, np.float32) for channels in (self.mean, self.deviation))
        normal: NDArray[np.float32] = (values - mean) / deviation
        return np.ascontiguousarray(normal.transpose(2, 0, 1))

    @staticmethod
    def stack(images: Sequence[NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
        """Return the inputs of the vision tower for several images."""
        return {"pixel_values": np.stack(images)}

    def _square(self, image: Image.Image) -> Image.Image:
        filter_ = Image.Resampling(self.resample)
        if not self.edge:
            return image.resize((self.size, self.size), filter_)
        short = min(image.size)
        width, height = (int(self.edge * side / short) if side != short else self.edge for side in image.size)
        left, top = self._margin(width), self._margin(height)
        return image.resize((width, height), filter_).crop((left, top, left + self.size, top + self.size))

    def _margin(self, side: int) -> int:
        spare = side - self.size
        return spare // 2 if self.middle == "down" else round(spare / 2)


def preprocessing_from_transformers(config: dict[str, Any], size: int, where: str) -> ImagePreprocessing:
    """Read ``preprocessor_config.json``.

    Args:
        config: content of the file.
        size: input size of the model.
        where: file name for messages.

    Raises:
        InputError: if it has settings that `ImagePreprocessing` does not support.
    """
    plain = {key: config.get(key, True) for key in ("do_resize", "do_center_crop", "do_rescale", "do_normalize")}
    wanted = config.get("size", size)
    edge = wanted.get("shortest_edge", 0) if isinstance(wanted, dict) else wanted
    sides = {wanted[key] for key in ("height", "width") if key in wanted} if isinstance(wanted, dict) else set()
    crop = config.get("crop_size", size)
    crops = set(crop.values()) if isinstance(crop, dict) else {crop}
    if sides and not edge:  # squashed: a crop has no effect
        plain.pop("do_center_crop")
        crops = sides
    if (
        not all(plain.values())
        or crops != {size}
        or (edge and edge < size)
        or not np.isclose(_rescale_factor(config) * 255, 1)
    ):
        raise InputError(
            f"preprocessing is not CLIP's for images of {size} x {size}",
            where=where,
            fix="Only resize, centre crop to the model's size, scale to 0-1 and normalise are supported.",
        )
    return ImagePreprocessing(
        size,
        int(edge),
        int(config.get("resample", Image.Resampling.BICUBIC)),
        "down",
        _channel_values(config.get("image_mean"), OPENAI_MEAN),
        _channel_values(config.get("image_std"), OPENAI_STD),
    )


def preprocessing_from_openclip(config: dict[str, Any], size: int, where: str) -> ImagePreprocessing:
    """Read ``preprocess_cfg`` of an OpenCLIP checkpoint; arguments and errors as in `preprocessing_from_transformers`."""
    mode = config.get("resize_mode") or "shortest"
    filters = {
        "bicubic": Image.Resampling.BICUBIC,
        "random": Image.Resampling.BICUBIC,
        "bilinear": Image.Resampling.BILINEAR,
    }
    interpolation = config.get("interpolation") or "bicubic"
    if mode not in ("shortest", "squash") or interpolation not in filters:
        raise InputError(
            f"resize_mode {mode!r} with interpolation {interpolation!r} is not supported",
            where=where,
            fix="Supported are shortest and squash with bicubic or bilinear.",
        )
    return ImagePreprocessing(
        size,
        size if mode == "shortest" else 0,
        int(filters[interpolation]),
        "even",
        _channel_values(config.get("mean"), OPENAI_MEAN),
        _channel_values(config.get("std"), OPENAI_STD),
    )


def _crop_to_aspect_ratio(image: Image.Image) -> Image.Image:
    width, height = image.size
    limit = _MAX_ASPECT_RATIO * min(width, height)
    if max(width, height) <= limit:
        return image
    left, top = max(0, (width - limit) // 2), max(0, (height - limit) // 2)
    return image.crop((left, top, left + min(width, limit), top + min(height, limit)))


def _rescale_factor(config: dict[str, Any]) -> float:
    return float(config.get("rescale_factor", 1 / 255))


def _channel_values(values: Any, default: tuple[float, ...]) -> tuple[float, ...]:
    if values is None:
        return default
    return tuple(map(float, values)) if isinstance(values, list | tuple) else (float(values),) * 3
