"""Recoding of image bytes."""

import io
import pickle
import struct
import subprocess
import sys
import warnings
import zlib

import pytest
from PIL import Image

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import UnusableImageError, decode_image
from pairwright.datasets.images.recoding import Recoding, decode_oriented_image, detect_extension, recode_image
from tests.datasets.sample_builders import picture


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


@pytest.mark.parametrize(("image_format", "ext"), [("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp")])
def test_known_formats_pass_through(image_format: str, ext: str) -> None:
    data = picture(image_format=image_format)
    assert recode_image(data, Recoding(), "x") == (data, ext)
    assert recode_image(data, Recoding(format=ext, longest_side=64), "x") == (data, ext)


@pytest.mark.parametrize("source", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
@pytest.mark.parametrize("wanted", ["jpg", "png", "webp"])
def test_any_format_becomes_the_one_asked_for_with_equal_bytes_each_time(source: str, wanted: str) -> None:
    data = picture(image_format=source)
    recoded, ext = recode_image(data, Recoding(format=wanted), "x")
    assert (ext, detect_extension(recoded)) == (wanted, wanted)
    assert recode_image(data, Recoding(format=wanted), "x")[0] == recoded


def test_the_longest_side_is_bounded_and_small_pictures_stay() -> None:
    assert size_of(recode_image(picture(size=(400, 100)), Recoding(longest_side=200), "x")[0]) == (200, 50)
    assert size_of(recode_image(picture(size=(40, 10)), Recoding(format="png", longest_side=200), "x")[0]) == (40, 10)


def test_transparency_becomes_white_in_a_jpeg() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(out, "PNG")
    recoded, _ = recode_image(out.getvalue(), Recoding(format="jpg"), "x")
    assert Image.open(io.BytesIO(recoded)).convert("RGB").getpixel((4, 4)) == (255, 255, 255)


@pytest.mark.parametrize("image_format", ["PNG", "TIFF"])
def test_sixteen_bits_of_grey_are_scaled_and_not_cut_off(image_format: str) -> None:
    out = io.BytesIO()
    Image.new("I;16", (16, 16), 40_000).save(out, image_format)
    recoded, _ = recode_image(out.getvalue(), Recoding(format="jpg"), "x")
    assert Image.open(io.BytesIO(recoded)).getpixel((8, 8)) == (156, 156, 156)
    assert decode_image(out.getvalue()).getpixel((8, 8)) == 156


@pytest.mark.parametrize("image_format", ["GIF", "BMP", "TIFF"])
def test_a_good_image_that_shards_do_not_carry_names_image_format(image_format: str) -> None:
    with pytest.raises(UnusableImageError, match=rf"{image_format.lower()}, neither.*--image-format") as caught:
        recode_image(picture(image_format=image_format), Recoding(), "pool/1.gif")
    assert caught.value.reason == "unsupported_image_format"
    assert pickle.loads(pickle.dumps(caught.value)).reason == "unsupported_image_format"  # noqa: S301 - our own bytes


@pytest.mark.parametrize("data", [b"", b"nothing", picture(image_format="GIF")[:20]])
def test_bytes_that_are_no_image_are_a_bad_image_whatever_the_format_asked_for(data: bytes) -> None:
    for recoding in (Recoding(), Recoding(format="png")):
        with pytest.raises(UnusableImageError, match="Replace the image file") as caught:
            recode_image(data, recoding, "pool/1.gif")
        assert caught.value.reason == "bad_image"
        assert " at 0x" not in str(caught.value)


def test_a_format_that_pillow_would_hand_to_another_program_is_never_opened() -> None:
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "EPS")
    with pytest.raises(UnusableImageError, match="does not decode") as caught:
        decode_oriented_image(out.getvalue(), "pool/1.eps")
    assert caught.value.reason == "bad_image"


def test_undecodable_bytes_are_an_error() -> None:
    with pytest.raises(UnusableImageError, match=r"pool/1\.jpg: the image does not decode"):
        recode_image(picture()[:300], Recoding(format="png"), "pool/1.jpg")


def test_a_picture_of_too_many_pixels_is_not_unpacked() -> None:
    bomb = bytearray(picture(image_format="BMP"))
    bomb[18:26] = (30_000).to_bytes(4, "little") * 2
    with pytest.raises(UnusableImageError) as caught:
        recode_image(bytes(bomb), Recoding(format="png"), "pool/1.bmp")
    assert caught.value.reason == "image_too_large"


def test_invalid_options_are_refused() -> None:
    with pytest.raises(UsageError, match="bmp"):
        Recoding(format="bmp")
    with pytest.raises(UsageError, match="quality"):
        Recoding(quality=0)


def test_warnings_of_pillow_are_not_shown() -> None:
    """They name no image."""
    data = picture(image_format="PNG")
    no_frames = b"acTL" + struct.pack(">II", 0, 0)
    animated = data[:33] + struct.pack(">I", 8) + no_frames + struct.pack(">I", zlib.crc32(no_frames)) + data[33:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert detect_extension(recode_image(animated, Recoding(format="jpg"), "x")[0]) == "jpg"


def test_a_broken_image_prints_nothing() -> None:
    """Pillow logs some errors besides raising them, which without a handler go to stderr."""
    code = """
import struct
from pairwright.datasets.images.loading import UnusableImageError, check_image
tags = [(256, 8), (257, 8), (258, 8), (259, 1), (262, 1), (273, 0), (277, 65535), (278, 8), (279, 64)]
entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
tiff = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(68)
try:
    check_image(tiff)
except UnusableImageError as error:
    print(error.reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("bad_image\n", "")
