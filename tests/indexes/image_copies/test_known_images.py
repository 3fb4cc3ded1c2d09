"""Copies of evaluation images are found by perceptual hash; other images are not."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from pairwright.datasets.colorshape.rendering import render_scene
from pairwright.datasets.colorshape.scenes import make_scene
from pairwright.indexes.image_copies.known_images import KnownImages, hash_images, read_known_images
from pairwright.indexes.image_copies.perceptual_hash import hash_image
from tests.image_variants import CHANGES, as_jpeg, draw

KNOWN = 12


def write(folder: Path, name: str, image: Image.Image) -> str:
    path = folder / f"{name}.png"
    image.save(path)
    return str(path)


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    return [draw(seed) if seed % 2 else render_scene(make_scene(3, seed)) for seed in range(KNOWN)]


@pytest.fixture
def known(tmp_path: Path, images: list[Image.Image]) -> KnownImages:
    return read_known_images([write(tmp_path, f"known-{at}", image) for at, image in enumerate(images)])


@pytest.mark.parametrize("change", [name for name in CHANGES if "130%" not in name])
def test_a_changed_copy_names_its_original(
    known: KnownImages, images: list[Image.Image], tmp_path: Path, change: str
) -> None:
    copies = [write(tmp_path, f"copy-{at}", CHANGES[change](image)) for at, image in enumerate(images)]
    judged = known.judge(hash_images(copies))
    assert [each.of for each in judged] == list(known.names)
    assert "bits differ" in judged[0].describe()


def test_other_images_are_new(known: KnownImages, tmp_path: Path) -> None:
    others = [write(tmp_path, f"other-{seed}", draw(1000 + seed)) for seed in range(20)]
    others += [write(tmp_path, f"scene-{seed}", render_scene(make_scene(4, seed))) for seed in range(20)]
    assert {each.outcome for each in known.judge(hash_images(others))} == {"new"}


def test_an_orientation_tag_is_applied_before_hashing(
    known: KnownImages, images: list[Image.Image], tmp_path: Path
) -> None:
    turned = images[1].rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 270 degrees to show
    turned.save(tmp_path / "turned.jpg", exif=exif, quality=90)
    assert ImageOps.exif_transpose(Image.open(tmp_path / "turned.jpg")).size == images[1].size
    assert known.judge(hash_images([str(tmp_path / "turned.jpg")]))[0].of == known.names[1]


def gradient(first: int, last: int) -> Image.Image:
    row = np.linspace(first, last, 64).astype(np.uint8)
    return Image.fromarray(np.stack([row] * 64))


@pytest.mark.parametrize("image", [Image.new("RGB", (64, 64), "red"), gradient(0, 255), gradient(200, 100)])
def test_featureless_images_are_compared_by_content_only(tmp_path: Path, image: Image.Image) -> None:
    """Their hashes would be equal: any white page would be a copy of any black one."""
    assert hash_image(image) is None
    assert hash_image(as_jpeg(image.convert("RGB"))) is None
    known = read_known_images([write(tmp_path, "known", image)])
    copies = [write(tmp_path, "same", image), write(tmp_path, "other", ImageOps.invert(image.convert("RGB")))]
    assert [each.outcome for each in known.judge(hash_images(copies))] == ["copy", "featureless"]


def test_what_cannot_be_read_is_not_compared(known: KnownImages, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    locators = ["", "https://a.org/x.jpg", str(tmp_path / "broken.png"), str(tmp_path / "none.png")]
    assert {each.outcome for each in known.judge(hash_images(locators))} == {"unreadable"}
    assert read_known_images(locators).unread == 4


def test_a_union_finds_the_copies_of_both(tmp_path: Path) -> None:
    flat = Image.new("RGB", (8, 8), "blue")
    files = [write(tmp_path, name, image) for name, image in (("a", draw(1)), ("b", draw(2)), ("flat", flat))]
    union = read_known_images(files[:1]) | read_known_images(files[1:])
    assert [each.of for each in union.judge(hash_images(files))] == files
