"""Pixels as CLIP prepares them."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.training.loading.image_transforms import ImageOptions, _crop_box, load_pixels


def gradient(width: int, height: int, image_format: str = "PNG") -> bytes:
    """A picture whose red grows to the right and whose green grows downwards."""
    red = np.linspace(0, 255, width).astype(np.uint8)[None, :].repeat(height, 0)
    green = np.linspace(0, 255, height).astype(np.uint8)[:, None].repeat(width, 1)
    out = io.BytesIO()
    Image.fromarray(np.stack([red, green, np.full_like(red, 7)], axis=2)).save(out, image_format)
    return out.getvalue()


@pytest.mark.parametrize(("width", "height"), [(64, 48), (33, 90), (32, 32), (20, 10), (101, 67)])
def test_without_random_crops_pixels_equal_those_of_transformers(width: int, height: int) -> None:
    transformers = pytest.importorskip("transformers", reason="its preprocessing is what ours is compared with")
    data = gradient(width, height)
    processor = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)  # the second before 5
    theirs = processor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, do_normalize=False, do_rescale=False
    )(Image.open(io.BytesIO(data)))["pixel_values"][0]
    ours = load_pixels(data, ImageOptions(32), random.Random(0), "here")
    assert np.array_equal(ours, np.asarray(theirs))


@given(st.integers(1, 80), st.integers(1, 80), st.integers(), st.sampled_from([0.08, 0.5, 0.9]))
def test_any_image_becomes_a_square_and_the_same_seed_the_same_square(
    width: int, height: int, seed: int, crop: float
) -> None:
    options = ImageOptions(8, crop=crop)
    one, other = (load_pixels(gradient(width, height), options, random.Random(seed), "here") for _ in range(2))
    assert one.shape == (3, 8, 8)
    assert one.dtype == np.uint8
    assert np.array_equal(one, other)


def test_crops_differ_keep_their_share_and_lie_anywhere() -> None:
    data, options = gradient(256, 256), ImageOptions(64, crop=0.5)
    made = [load_pixels(data, options, random.Random(seed), "here").astype(int) for seed in range(60)]
    wide = np.array([one[0, 0, -1] - one[0, 0, 0] for one in made]) / 255
    high = np.array([one[1, -1, 0] - one[1, 0, 0] for one in made]) / 255
    assert 0.45 < (wide * high).min() < 0.65
    assert (wide * high).max() > 0.85
    assert {one[0, 0, 0] > 20 for one in made} == {True, False}


def test_large_jpegs_are_decoded_smaller_without_a_visible_difference() -> None:
    options = ImageOptions(16, crop=0.999)
    small = load_pixels(gradient(640, 480, "JPEG"), options, random.Random(1), "here").astype(int)
    exact = load_pixels(gradient(640, 480, "PNG"), options, random.Random(1), "here").astype(int)
    assert abs(small - exact).max() < 24


def photo(seed: int, width: int, height: int, mode: str = "RGB", **how: Any) -> bytes:
    """Return a JPEG of smooth random colors, as photos are."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, len(mode)), dtype=np.uint8)
    image = Image.frombytes(mode, (8, 6), coarse.tobytes()).resize((width, height), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90, **how)
    return out.getvalue()


JPEGS = {
    "4:2:0": photo(1, 640, 480),
    "4:4:4": photo(2, 333, 251, subsampling=0),
    "progressive": photo(3, 500, 375, progressive=True),
    "grey": photo(4, 400, 300, "L"),
    "CMYK": photo(5, 320, 240, "CMYK"),
    "small": photo(6, 40, 30),
}


@pytest.mark.parametrize("name", JPEGS)
def test_pixels_do_not_depend_on_the_decoder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("simplejpeg", reason="without it, Pillow decodes")
    options = ImageOptions(64, crop=0.9)
    fast = load_pixels(JPEGS[name], options, random.Random(3), "here")
    monkeypatch.setattr("pairwright.training.loading.image_transforms.simplejpeg", None)
    assert np.array_equal(fast, load_pixels(JPEGS[name], options, random.Random(3), "here"))


@pytest.mark.parametrize("name", JPEGS)
def test_random_crops_are_those_of_pillow_above_50_decibels(name: str) -> None:
    options = ImageOptions(96, crop=0.999999)
    ours = load_pixels(JPEGS[name], options, random.Random(3), "here").astype(float)
    stored = Image.open(io.BytesIO(JPEGS[name]))
    stored.draft("RGB", (97, 97))
    whole = stored.convert("RGB")
    theirs = whole.resize((96, 96), Image.Resampling.BICUBIC, box=_crop_box(*whole.size, 0.999999, random.Random(3)))
    error = np.mean((ours - np.asarray(theirs).transpose(2, 0, 1)) ** 2)
    assert error <= 255**2 / 10**5


@pytest.mark.parametrize("broken", [JPEGS["4:2:0"][:5000], JPEGS["4:2:0"][:100], b"\xff\xd8\xff" + bytes(100)])
def test_a_broken_jpeg_is_a_bad_image(broken: bytes) -> None:
    with pytest.raises(UnusableImageError, match=r"decode|not an image") as caught:
        load_pixels(broken, ImageOptions(32, crop=0.9), random.Random(0), "here")
    assert caught.value.reason == "bad_image"


def test_a_jpeg_with_bytes_after_its_end_is_read() -> None:
    options = ImageOptions(32, crop=0.9)
    padded, plain = (
        load_pixels(data, options, random.Random(0), "here") for data in (JPEGS["4:2:0"] + b"more", JPEGS["4:2:0"])
    )
    assert np.array_equal(padded, plain)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1", "I;16"])
def test_pictures_of_any_mode_come_as_three_channels(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("one.tif" if mode == "CMYK" else "one.png")
    Image.new(mode, (20, 20)).save(path)
    assert load_pixels(path.read_bytes(), ImageOptions(8), random.Random(0), "here").shape == (3, 8, 8)


@pytest.mark.parametrize("wrong", [{"size": 0}, {"crop": 0.0}, {"crop": 1.1}, {"std": (1, 0, 1)}])
def test_image_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        ImageOptions(**wrong)  # type: ignore[arg-type]
