"""Image preprocessing equals that of transformers for any size and mode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.indexes.encoders.image_preprocessing import (
    ImagePreprocessing,
    preprocessing_from_openclip,
    preprocessing_from_transformers,
)
from tests.example_counts import examples

SIDES = st.integers(1, 64)  # nothing so long that it is cut first
MODES = st.sampled_from(["RGB", "L", "RGBA", "P", "CMYK", "1", "LA"])
SETTINGS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    values = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(values).convert(mode)


@given(SIDES, SIDES, MODES, st.integers(32, 40))
@settings(max_examples=examples(60))
def test_preprocessing_equals_the_processor_of_transformers(width: int, height: int, mode: str, edge: int) -> None:
    transformers = pytest.importorskip("transformers", reason="the 'clip' extra is not installed")
    kind = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)  # before version 5: one kind
    config = {"size": {"shortest_edge": edge}, "crop_size": {"height": 32, "width": 32}, **SETTINGS}
    image = noise(width, height, mode)
    theirs = np.array(kind(**config)(image)["pixel_values"][0])
    ours = preprocessing_from_transformers(config, 32, "test").of(image)
    assert ours.shape == (3, 32, 32)
    assert np.allclose(ours, theirs, atol=1e-5)


def test_an_endlessly_long_image_does_not_fill_the_memory() -> None:
    image = Image.new("RGB", (2_000_000, 1), (255, 0, 0))
    values = ImagePreprocessing(32, 32, mean=(0, 0, 0), deviation=(1, 1, 1)).of(image)
    assert np.allclose(values.mean(axis=(1, 2)), [1, 0, 0])


@pytest.mark.parametrize(("middle", "left"), [("down", 1), ("even", 2)])
def test_half_of_an_odd_number_of_pixels_is_cut_as_the_format_says(middle: str, left: int) -> None:
    image = noise(35, 32)
    pixels = ImagePreprocessing(
        32, 32, middle="even" if middle == "even" else "down", mean=(0, 0, 0), deviation=(1, 1, 1)
    )
    expected = np.asarray(image, np.float32)[:, left : left + 32] / 255
    assert np.allclose(pixels.of(image), expected.transpose(2, 0, 1))


def test_squashing_shows_the_whole_image() -> None:
    image = Image.new("RGB", (64, 32))
    image.paste((255, 255, 255), (0, 0, 16, 32))
    values = preprocessing_from_openclip({"resize_mode": "squash", "mean": 0.0, "std": 1.0}, 32, "test").of(image)
    assert np.allclose(values[:, :, :6], 1)
    assert np.allclose(values[:, :, 10:], 0)


@pytest.mark.parametrize(
    "config",
    [
        {"do_resize": False},
        {"do_normalize": False},
        {"do_center_crop": False, "size": {"shortest_edge": 32}},
        {"crop_size": 24},
        {"size": {"height": 16, "width": 16}},
        {"size": 24},
        {"rescale_factor": 1.0},
    ],
)
def test_preprocessing_of_another_kind_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(InputError, match="preprocessing is not CLIP's"):
        preprocessing_from_transformers(config, 32, "preprocessor_config.json")


@pytest.mark.parametrize("config", [{"resize_mode": "longest"}, {"interpolation": "lanczos"}])
def test_resizing_of_another_kind_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(InputError, match="not supported"):
        preprocessing_from_openclip(config, 32, "open_clip_config.json")
