"""What images look like on their way to a model."""

import base64
import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import UnusableImageError
from pairwright.datasets.records import Pair
from pairwright.datasets.remote.object_store import open_store
from pairwright.generators.llm.client.chat_completions import build_payload
from pairwright.generators.llm.client.messages import Image, Message, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.prices import Prices
from pairwright.generators.llm.token_estimate import estimate_image_tokens
from tests.example_counts import examples


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


@pytest.mark.parametrize(
    ("mode", "form", "color", "seen"),
    [
        ("RGBA", "PNG", (255, 0, 0, 0), (255, 255, 255)),
        ("CMYK", "JPEG", (0, 255, 255, 0), (254, 0, 0)),
        ("P", "PNG", 0, (0, 0, 0)),
    ],
)
def test_a_small_image_that_servers_read_differently_becomes_rgb(
    mode: str, form: str, color: Any, seen: tuple[int, int, int]
) -> None:
    out = io.BytesIO()
    Picture.new(mode, (40, 20), color).save(out, form)
    image = opened(MessageImages().of(out.getvalue()))
    assert (image.mode, image.size) == ("RGB", (40, 20))
    pixel = image.getpixel((5, 5))
    assert isinstance(pixel, tuple)
    assert all(abs(found - expected) <= 3 for found, expected in zip(pixel, seen, strict=True))


def test_the_cache_tells_images_that_become_rgb_from_those_that_were_sent_as_they_are() -> None:
    """What a server said of a transparent image before is not what it would say of it now."""
    images = MessageImages(edge=100)
    forms = {}
    for mode, size in (("RGB", 40), ("L", 40), ("RGBA", 40), ("RGBA", 400)):
        out = io.BytesIO()
        Picture.new(mode, (size, size)).save(out, "PNG")
        forms[mode, size] = images.of(out.getvalue()).form
    assert forms["RGB", 40] == forms["L", 40] == forms["RGBA", 400] != forms["RGBA", 40]


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
    assert (caught.value.code, caught.value.transient, caught.value.fatal) == ("bad_image", False, False)
    assert "row 7" in str(caught.value)


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_damaged_exif_data_is_a_failure_of_the_row(form: str) -> None:
    """It was an internal error, and a build waited for the image for ever."""
    file = io.BytesIO()
    Picture.new("RGB", (8, 8)).save(file, form, exif=b"Exif\0\0no TIFF file")
    with pytest.raises(RequestError, match="row 7: the image does not decode") as caught:
        MessageImages().of(file.getvalue(), where="row 7").data_url()
    assert caught.value.code == "bad_image"


def test_an_image_survives_a_process_boundary_and_takes_no_others_along() -> None:
    images = MessageImages()
    image, size = images.of(drawn()), len(pickle.dumps(images.of(drawn())))
    images.of(drawn((200, 200), "BMP")).data_url()
    assert len(pickle.dumps(image)) == size
    assert pickle.loads(pickle.dumps(image)).data_url() == image.data_url()  # noqa: S301 - our own bytes


def test_threads_that_send_one_image_encode_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    images, data, encoded = MessageImages(edge=10), drawn((2000, 2000)), list[str]()
    encode, ready = MessageImages._encode, threading.Barrier(8)

    def counted(self: MessageImages, data: bytes, where: str) -> str:
        encoded.append(where)
        return encode(self, data, where)

    def send(_: int) -> str:
        image = images.of(data)
        ready.wait(60)  # all threads encode at once
        return image.data_url()

    monkeypatch.setattr(MessageImages, "_encode", counted)
    with ThreadPoolExecutor(8) as threads:
        urls = set(threads.map(send, range(8)))
    assert (len(urls), len(encoded)) == (1, 1)


@given(width=st.integers(1, 300), height=st.integers(1, 300), edge=st.integers(1, 200), short=st.integers(0, 200))
@settings(max_examples=examples(40), deadline=None)
def test_the_size_that_is_counted_is_the_size_that_is_sent(width: int, height: int, edge: int, short: int) -> None:
    image = MessageImages(edge=edge, short_edge=short).of(drawn((width, height), "BMP"))
    assert opened(image).size == (image.width, image.height)
    assert max(opened(image).size) <= edge
    assert not 0 < short < edge or min(opened(image).size) <= short


@pytest.mark.parametrize(
    ("model", "size", "sent_size", "tokens"),
    [
        ("gpt-4o", (3000, 2000), (1024, 683), 85 + 4 * 170),
        ("gpt-4o", (2000, 2000), (768, 768), 85 + 4 * 170),
        ("gpt-4.1-mini", (1000, 640), (1000, 640), 1037),  # 1.62 x 32 x 20
        ("Qwen/Qwen2.5-VL-7B-Instruct", (2016, 1512), (1008, 756), 36 * 27 + 2),
        ("local:qwen2_5_vl@0123456789ab", (2016, 1512), (1008, 756), 36 * 27 + 2),
        ("qwen3-vl-8b", (2048, 1024), (1024, 512), 32 * 16 + 2),
        ("gemini-2.5-flash", (300, 200), (300, 200), 258),
        ("google/gemma-3-4b-it", (3000, 2000), (896, 597), 256),
        ("llava-hf/llava-1.5-7b-hf", (640, 480), (640, 480), 576),
        ("unknown-model", (560, 280), (560, 280), 202),
    ],
)
def test_an_image_has_the_size_and_the_tokens_of_its_model(
    model: str, size: tuple[int, int], sent_size: tuple[int, int], tokens: int
) -> None:
    rule = Prices.of().image_rule(model)
    image = MessageImages.for_model(rule).of(drawn(size))
    assert (image.width, image.height) == sent_size
    assert rule.tokens(image.width, image.height) == tokens


def test_low_detail_is_sent_small_and_counts_the_base_alone() -> None:
    rule = Prices.of().image_rule("gpt-4o")
    image = MessageImages.for_model(rule, detail="low").of(drawn((2000, 1000)))
    [part] = build_payload(Request((Message("user", "", (image,)),), "gpt-4o"))["messages"][0]["content"]
    assert part["image_url"]["detail"] == "low"
    assert opened(image).size == (512, 256)
    assert estimate_image_tokens(Request((Message("user", "", (image,)),), "gpt-4o"), rule) == 85


def test_a_web_address_is_sent_only_when_the_user_allows() -> None:
    address = "https://example.org/a.jpg"
    with pytest.raises(InputError, match="--image-urls"):
        MessageImages().read(address)
    image = MessageImages(urls=True).read(address)
    assert image.data_url() == address
    assert image.form == "url"
    assert image.sha256 != MessageImages(urls=True).read(f"{address}?2").sha256


def test_an_image_in_a_store_is_read_there_and_sent_as_data() -> None:
    store, path = open_store("memory://bucket/one.png")
    store.files.pipe_file(path, drawn())
    for images in (MessageImages(), MessageImages(urls=True)):
        image = images.read("memory://bucket/one.png")
        assert image.data_url() == images.of(drawn()).data_url()
    with pytest.raises(InputError, match="cannot be read"):
        MessageImages(urls=True).read("memory://bucket/none.png")


def test_a_pair_without_a_usable_image_has_none(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    path.write_bytes(drawn())
    images = MessageImages()
    found = images.of_pair(Pair("k", "A cat.", image=str(path)))
    assert found is not None
    assert found.sha256 == images.of(drawn()).sha256
    for locator in ("", str(tmp_path / "none.png"), "https://example.org/a.jpg"):
        assert images.of_pair(Pair("k", "A cat.", image=locator)) is None


@pytest.mark.parametrize("wrong", [{"edge": 0}, {"quality": 0}, {"quality": 96}, {"memory": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="images"):
        MessageImages(**wrong)
