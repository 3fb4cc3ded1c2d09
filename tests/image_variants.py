"""Drawn images and their copies: resized, re-encoded, cropped, brighter and darker."""

import io
import random
from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance


def draw(seed: int) -> Image.Image:
    """Return an image of overlapping shapes on a gradient, like a poster."""
    rng = random.Random(seed)
    width, height = rng.choice([(320, 240), (240, 320), (256, 256), (400, 225)])

    def colour() -> tuple[int, int, int]:
        return rng.randrange(256), rng.randrange(256), rng.randrange(256)

    right, down = np.linspace(0, 1, width)[None, :, None], np.linspace(0, 1, height)[:, None, None]
    corners = [np.array(colour()) for _ in range(3)]
    ground = corners[0] * (1 - right) * (1 - down) + corners[1] * right * (1 - down) + corners[2] * down
    image = Image.fromarray(np.broadcast_to(ground, (height, width, 3)).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.randint(4, 16)):
        left, top = rng.randrange(-20, width), rng.randrange(-20, height)
        box = (left, top, left + rng.randint(10, width // 2), top + rng.randint(10, height // 2))
        shape = rng.choice(["ellipse", "rectangle", "line", "triangle"])
        if shape == "ellipse":
            pen.ellipse(box, fill=colour())
        elif shape == "rectangle":
            pen.rectangle(box, fill=colour())
        elif shape == "line":
            pen.line(box, fill=colour(), width=rng.randint(2, 10))
        else:
            pen.polygon([(rng.randrange(width), rng.randrange(height)) for _ in range(3)], fill=colour())
    return image


def as_jpeg(image: Image.Image, quality: int = 50) -> Image.Image:
    """Return the image after a JPEG encoding."""
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(io.BytesIO(stream.getvalue())).convert("RGB")


def resize(image: Image.Image, factor: float) -> Image.Image:
    """Return the image scaled."""
    return image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.BICUBIC)


def crop(image: Image.Image, share: float, left: float = 0.5, top: float = 0.5) -> Image.Image:
    """Return the image without ``share`` of its width and height, of which ``left`` and ``top`` is cut there."""
    cut_x, cut_y = round(image.width * share), round(image.height * share)
    x, y = round(cut_x * left), round(cut_y * top)
    return image.crop((x, y, x + image.width - cut_x, y + image.height - cut_y))


def crop_anywhere(image: Image.Image, share: float = 0.05) -> Image.Image:
    """Return `crop` at a random place that depends on the pixels."""
    rng = random.Random(image.tobytes()[:4096])
    return crop(image, share, rng.random(), rng.random())


CHANGES: Mapping[str, Callable[[Image.Image], Image.Image]] = {
    "resized to half": lambda image: resize(image, 0.5),
    "resized to double": lambda image: resize(image, 2),
    "squashed to 224 x 224": lambda image: image.resize((224, 224)),
    "JPEG quality 50": as_jpeg,
    "half and JPEG 50": lambda image: as_jpeg(resize(image, 0.5)),
    "5% cropped, centre": lambda image: crop(image, 0.05),
    "5% cropped, anywhere": crop_anywhere,
    "brightness 130%": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "brightness 70%": lambda image: ImageEnhance.Brightness(image).enhance(0.7),
}
