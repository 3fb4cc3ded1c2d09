"""Image bytes: untouched unless asked, one format when asked, faults told."""

import io

import pytest
from PIL import Image

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.recode import Recoding, extension, recode
from tests.datasets.way_out import picture


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


@pytest.mark.parametrize(("image_format", "ext"), [("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp")])
def test_known_formats_pass_through(image_format: str, ext: str) -> None:
    data = picture(image_format=image_format)
    assert recode(data, Recoding(), "x") == (data, ext)
    assert recode(data, Recoding(format=ext, longest_side=64), "x") == (data, ext)


@pytest.mark.parametrize("source", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
@pytest.mark.parametrize("wanted", ["jpg", "png", "webp"])
def test_any_format_becomes_the_one_asked_for_with_equal_bytes_each_time(source: str, wanted: str) -> None:
    data = picture(image_format=source)
    recoded, ext = recode(data, Recoding(format=wanted), "x")
    assert (ext, extension(recoded)) == (wanted, wanted)
    assert recode(data, Recoding(format=wanted), "x")[0] == recoded


def test_the_longest_side_is_bounded_and_small_pictures_stay() -> None:
    assert size_of(recode(picture(size=(400, 100)), Recoding(longest_side=200), "x")[0]) == (200, 50)
    assert size_of(recode(picture(size=(40, 10)), Recoding(format="png", longest_side=200), "x")[0]) == (40, 10)


def test_transparency_becomes_white_in_a_jpeg() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(out, "PNG")
    recoded, _ = recode(out.getvalue(), Recoding(format="jpg"), "x")
    assert Image.open(io.BytesIO(recoded)).convert("RGB").getpixel((4, 4)) == (255, 255, 255)


@pytest.mark.parametrize("data", [b"", b"nothing", picture(image_format="GIF")])
def test_what_shards_do_not_carry_names_image_format(data: bytes) -> None:
    with pytest.raises(InputError, match="image_format"):
        recode(data, Recoding(), "pool/1.gif")


def test_what_does_not_decode_says_so() -> None:
    with pytest.raises(InputError, match=r"pool/1\.jpg: the image does not decode"):
        recode(picture()[:300], Recoding(format="png"), "pool/1.jpg")


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(UsageError, match="bmp"):
        Recoding(format="bmp")
    with pytest.raises(UsageError, match="quality"):
        Recoding(quality=0)
