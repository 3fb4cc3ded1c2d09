"""Locating, checking and reading of images."""

import io
import struct
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import (
    MAX_PIXELS,
    UnusableImageError,
    check_image,
    check_image_at,
    is_url,
    open_image,
)
from pairwright.datasets.tar_index import TarMember, iter_tar_members
from tests.example_counts import examples


def picture(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    stream = io.BytesIO()
    noise = np.random.Generator(np.random.PCG64(0)).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).save(stream, kind)
    return stream.getvalue()


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("how", ["header", "full"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_size_and_format_are_returned(kind: str, how: Literal["header", "full"]) -> None:
    assert check_image(picture(kind), how) == (40, 30, kind.lower())


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_a_cut_off_image_is_found_by_a_header_check(kind: str) -> None:
    data = picture(kind)
    with pytest.raises(UnusableImageError) as caught:
        check_image(data[: len(data) * 2 // 3])
    assert caught.value.reason == "bad_image"


def test_the_end_marker_of_an_embedded_preview_is_not_the_end_of_the_image() -> None:
    """Cameras store a JPEG in the EXIF header, so that a cut photo below 64 KiB seemed to be whole."""
    data, preview = picture("JPEG", (200, 150)), b"Exif\0\0" + picture("JPEG")
    photo = data[:2] + b"\xff\xe1" + struct.pack(">H", len(preview) + 2) + preview + data[2:]
    assert check_image(photo) == (200, 150, "jpeg")
    with pytest.raises(UnusableImageError) as caught:
        check_image(photo[: len(photo) * 2 // 3])
    assert caught.value.reason == "bad_image"


def test_data_after_the_end_marker_is_ignored() -> None:
    assert check_image(picture("JPEG") + b"preview" * 100)[2] == "jpeg"


def test_a_small_file_of_too_many_pixels_is_refused_before_it_is_unpacked() -> None:
    side = int(MAX_PIXELS**0.5) + 1

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    for width in (side, 40 * side):
        header = struct.pack(">IIBBBBB", width, side, 8, 2, 0, 0, 0)
        bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        with pytest.raises(UnusableImageError) as caught:
            check_image(bomb, "full")
        assert caught.value.reason == "image_too_large"


@given(
    st.integers(0, 2000), st.binary(min_size=1, max_size=20), st.sampled_from(["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
)
@settings(max_examples=examples(150))
def test_damaged_bytes_give_an_image_or_a_pairwright_error(place: int, damage: bytes, kind: str) -> None:
    data = bytearray(picture(kind))
    place = place % len(data)
    data[place : place + len(damage)] = damage
    with suppress(UnusableImageError):
        assert check_image(bytes(data), "full")[2] == kind.lower()


def test_a_path_and_a_tar_member_give_their_bytes_untouched(tmp_path: Path) -> None:
    data = picture("JPEG")
    (tmp_path / "a.jpg").write_bytes(data)
    tar = tar_of(tmp_path / "a.tar", {"x/0.txt": b"a", "x/0.jpg": data})
    for locator in (str(tmp_path / "a.jpg"), f"{tar}::x/0.jpg"):
        assert open_image(locator) == data
        assert check_image_at(locator) == (40, 30, "jpeg")


def test_a_tar_that_was_written_again_is_indexed_again(tmp_path: Path) -> None:
    tar_of(tmp_path / "a.tar", {"0.jpg": b"old"})
    assert open_image(f"{tmp_path}/a.tar::0.jpg") == b"old"
    tar_of(tmp_path / "a.tar", {"1.jpg": b"x" * 20_000, "0.jpg": b"new"})
    assert open_image(f"{tmp_path}/a.tar::0.jpg") == b"new"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=150).filter(
    lambda name: name not in {".", ".."}
)


@given(
    st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.binary(max_size=1500)), max_size=5),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
@settings(max_examples=examples(60))
def test_every_member_that_the_standard_library_wrote_is_found(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[list[str], bytes]], kind: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "names.tar"
    with tarfile.open(path, "w", format=kind) as archive:
        for names, data in members:
            info = tarfile.TarInfo("/".join(names))
            info.size, info.mtime = len(data), 1.5 if kind == tarfile.PAX_FORMAT else 1
            archive.addfile(info, io.BytesIO(data))
    data = path.read_bytes()
    found = [member for member in iter_tar_members(path) if isinstance(member, TarMember)]
    assert [(member.name, data[member.offset : member.offset + member.size]) for member in found] == [
        ("/".join(names), content) for names, content in members
    ]


@pytest.mark.parametrize("locator", ["none.jpg", "a\0b.jpg", "none.tar::a.jpg", "a.tar::../etc/passwd", "a.tar::none"])
def test_a_missing_file_is_a_missing_image(tmp_path: Path, locator: str) -> None:
    tar_of(tmp_path / "a.tar", {"0.jpg": b"x", "../etc/passwd": b"x"})
    with pytest.raises(UnusableImageError) as caught:
        open_image(f"{tmp_path}/{locator}")
    assert caught.value.reason == "missing_image"


def test_a_url_is_not_fetched() -> None:
    assert is_url("https://x.org/a.jpg")
    assert not is_url("C:/a.jpg")
    with pytest.raises(InputError, match="a URL, not a file"):
        open_image("https://x.org/a.jpg")


@given(st.integers(0, 4000), st.binary(min_size=1, max_size=200))
@settings(max_examples=examples(150))
def test_a_damaged_tar_is_scanned_to_an_end(
    tmp_path_factory: pytest.TempPathFactory, place: int, damage: bytes
) -> None:
    path = tar_of(tmp_path_factory.getbasetemp() / "damaged.tar", {f"{n}.txt": b"x" * 600 for n in range(2)})
    data = bytearray(path.read_bytes())
    data[place : place + len(damage)] = damage
    path.write_bytes(data)
    try:
        found = list(iter_tar_members(path))
    except InputError:
        return
    assert len(found) <= 4
