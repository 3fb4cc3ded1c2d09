"""Decoders of JPEGs for training: processor time per image, and how far the pixels are from Pillow's.

    python -m benchmarks.trainer.image_decoders [--side 480] [--rounds 9]

Each line takes an image from bytes to uint8 224 x 224: decoding (at 1/2 where the library can), a crop of 0.95 of each
side, bicubic resizing. PSNR is that of the result against Pillow's full decoding and resizing. The noisy image is the
worst case for its size, the other one has the spectrum of photos (1/f). Medians of the rounds; one thread.
"""

import argparse
import io
import statistics
import time
from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg
import torch
from PIL import Image
from torch.nn.functional import interpolate

from benchmarks.shards import noisy_jpeg

Pixels = npt.NDArray[np.uint8]
SIZE, REPEATS = 224, 30


def photo_like_jpeg(side: int, seed: int = 0) -> bytes:
    """Return a JPEG of random colors with the spectrum of photos."""
    waves = np.fft.rfft2(np.random.default_rng(seed).standard_normal((3, side, side)))
    distance = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    distance[0, 0] = 1
    values = np.fft.irfft2(waves / distance**1.4, s=(side, side))
    values = (values - values.mean()) / values.std() * 50 + 128
    out = io.BytesIO()
    image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8).transpose(1, 2, 0))
    image.save(out, "JPEG", quality=85)
    return out.getvalue()


def _box(height: int, width: int) -> tuple[int, int, int, int]:
    return width // 40, height // 40, width - width // 40, height - height // 40


def resize_pillow(image: Image.Image) -> Pixels:
    """Return a crop, resized by Pillow."""
    return np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BICUBIC, box=_box(image.height, image.width)))


def resize_torch(pixels: Pixels) -> Pixels:
    """Return a crop, resized by torch with antialiasing."""
    left, top, right, bottom = _box(*pixels.shape[:2])
    cropped = torch.from_numpy(pixels[top:bottom, left:right]).permute(2, 0, 1)[None]
    resized: Pixels = interpolate(cropped, (SIZE, SIZE), mode="bicubic", antialias=True)[0].permute(1, 2, 0).numpy()
    return resized


def resize_opencv(pixels: Pixels) -> Pixels:
    """Return a crop, resized by OpenCV without antialiasing, which it has only for the area mode."""
    left, top, right, bottom = _box(*pixels.shape[:2])
    return np.asarray(cv2.resize(pixels[top:bottom, left:right], (SIZE, SIZE), interpolation=cv2.INTER_CUBIC), np.uint8)


def decode_pillow(data: bytes, draft: int = 0) -> Image.Image:
    """Return a decoded image; with ``draft``, at 1/2 if no side falls below it."""
    image: Image.Image = Image.open(io.BytesIO(data))
    if draft:
        image.draft("RGB", (draft, draft))
    return image.convert("RGB")


def decode_opencv(data: bytes, flag: int) -> Pixels:
    """Return pixels decoded by OpenCV, red first."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    assert pixels is not None
    return np.asarray(pixels[:, :, ::-1], np.uint8).copy()


def pipelines(side: int) -> dict[str, Callable[[bytes], Pixels]]:
    """Return the compared pipelines."""
    half = side // 2
    return {
        "Pillow": lambda data: resize_pillow(decode_pillow(data)),
        "Pillow, draft (as before)": lambda data: resize_pillow(decode_pillow(data, half)),
        "Pillow, draft; torch": lambda data: resize_torch(np.array(decode_pillow(data, half))),
        "simplejpeg; torch": lambda data: resize_torch(simplejpeg.decode_jpeg(data)),
        "simplejpeg 1/2; torch (loader)": lambda data: resize_torch(
            simplejpeg.decode_jpeg(data, min_height=half, min_width=half)
        ),
        "simplejpeg 1/2, fast DCT; torch": lambda data: resize_torch(
            simplejpeg.decode_jpeg(data, min_height=half, min_width=half, fastdct=True, fastupsample=True)
        ),
        "OpenCV": lambda data: resize_opencv(decode_opencv(data, cv2.IMREAD_COLOR)),
        "OpenCV 1/2": lambda data: resize_opencv(decode_opencv(data, cv2.IMREAD_REDUCED_COLOR_2)),
    }


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    for _ in range(REPEATS):
        work()
    return 1000 * (time.process_time() - began) / REPEATS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=480)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    for name, data in (("noise", noisy_jpeg(asked.side)), ("photo-like", photo_like_jpeg(asked.side))):
        ways = pipelines(asked.side)
        exact = ways["Pillow"](data).astype(float)
        taken = {way: list[float]() for way in ways}
        for _ in range(asked.rounds):
            for way, make in ways.items():
                taken[way].append(milliseconds(partial(make, data)))
        print(f"\n{name}, {asked.side} x {asked.side}, {len(data) / 1024:.0f} KiB\n")
        print(
            "| pipeline | ms of a core | images/s | against Pillow, draft | PSNR, dB |\n| --- | ---: | ---: | ---: | ---: |"
        )
        before = statistics.median(taken["Pillow, draft (as before)"])
        for way, times in taken.items():
            cost = statistics.median(times)
            error = np.mean((ways[way](data).astype(float) - exact) ** 2)
            psnr = f"{10 * np.log10(255**2 / error):.1f}" if error else "equal"
            print(f"| {way} | {cost:.2f} | {1000 / cost:,.0f} | {before / cost:.2f} | {psnr} |")


if __name__ == "__main__":
    main()
