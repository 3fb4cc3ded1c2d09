"""What images look like on their way to a model."""

import base64
import io
import pickle
from pathlib import Path

import pytest
from PIL import Image as Picture

from pairwright.datasets.errors import UsageError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.generators.llm.client.messages import Image
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.images import MessageImages


def drawn(size: tuple[int, int] = (40, 20), form: str = "PNG", mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    picture = Picture.new(mode, size, "red" if mode == "RGB" else (255, 0, 0, 0))
    picture.save(out, form, **options)
    return out.getvalue()


def sent(image: Image) -> tuple[str, bytes]:
    head, _, body = image.data_url().partition(";base64,")
    return head, base64.b64decode(body)


def opened(image: Image) -> Picture.Image:
    return Picture.open(io.BytesIO(sent(image)[1]))


@pytest.mark.parametrize(("form", "media"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp")])
def test_a_small_image_of_a_common_format_goes_as_it_is(form: str, media: str) -> None:
    data = drawn(form=form)
    assert sent(MessageImages().of(data)) == (f"data:image/{media}", data)


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF"])
def test_an_image_of_another_format_becomes_a_jpeg(form: str) -> None:
    image = MessageImages().of(drawn(form=form))
    assert sent(image)[0] == "data:image/jpeg"
    assert opened(image).size == (40, 20)


def test_a_large_image_is_made_so_small_that_its_longer_edge_fits() -> None:
    assert opened(MessageImages(edge=100).of(drawn((400, 200)))).size == (100, 50)


def test_a_turned_photo_is_sent_upright() -> None:
    exif = Picture.Exif()
    exif[0x0112] = 6
    assert opened(MessageImages().of(drawn((40, 20), "JPEG", exif=exif))).size == (20, 40)


def test_of_a_moving_image_the_first_frame_is_sent() -> None:
    frames = [Picture.new("RGB", (8, 8), colour) for colour in ("blue", "red")]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    pixel = opened(MessageImages().of(out.getvalue())).getpixel((4, 4))
    assert isinstance(pixel, tuple)
    assert pixel[2] > 200
    assert pixel[0] < 50


def test_what_is_transparent_becomes_white_when_an_image_is_made_smaller() -> None:
    pixel = opened(MessageImages(edge=10).of(drawn((40, 40), mode="RGBA"))).getpixel((5, 5))
    assert pixel == (255, 255, 255)


def test_an_image_is_encoded_once_however_often_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    images, data = MessageImages(edge=10), drawn()
    first = images.of(data).data_url()
    monkeypatch.setattr(MessageImages, "_encode", None)
    assert images.of(data).data_url() == first


def test_encoded_images_are_forgotten_when_they_take_more_memory_than_given() -> None:
    images = MessageImages(memory=2000)
    for width in range(1, 60):
        images.of(drawn((width, 8))).data_url()
    assert images._encoded._bytes <= 2000


def test_the_hash_is_of_the_bytes_and_the_form_is_of_the_settings() -> None:
    small, large = MessageImages(edge=10), MessageImages(edge=20)
    assert small.of(drawn()).sha256 == large.of(drawn()).sha256 != small.of(drawn((41, 20))).sha256
    assert small.form != large.form
    assert small.form != MessageImages(edge=10, quality=80).form


def test_a_locator_may_name_a_file(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    path.write_bytes(drawn())
    assert sent(MessageImages().read(str(path)))[1] == drawn()
    with pytest.raises(UnusableImageError, match=r"none\.png"):
        MessageImages().read(str(tmp_path / "none.png"))


def test_what_is_no_image_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UnusableImageError, match="here"):
        MessageImages().of(b"not an image", where="here")


def test_damaged_pixels_are_a_failure_of_the_row() -> None:
    data = bytearray(drawn((300, 300), "PNG"))
    middle = data.index(b"IDAT") + 20
    data[middle : middle + 40] = bytes(40)
    with pytest.raises(RequestError) as caught:
        MessageImages(edge=100).of(bytes(data), where="row 7").data_url()
    assert (caught.value.transient, caught.value.fatal) == (False, False)
    assert "row 7" in str(caught.value)


def test_an_image_survives_a_process_boundary_and_takes_no_others_along() -> None:
    images = MessageImages()
    image, size = images.of(drawn()), len(pickle.dumps(images.of(drawn())))
    images.of(drawn((200, 200), "BMP")).data_url()
    assert len(pickle.dumps(image)) == size
    assert pickle.loads(pickle.dumps(image)).data_url() == image.data_url()  # noqa: S301 - our own bytes


@pytest.mark.parametrize("wrong", [{"edge": 0}, {"quality": 0}, {"quality": 96}, {"memory": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="images"):
        MessageImages(**wrong)
