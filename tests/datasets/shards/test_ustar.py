"""USTAR writer and strict reader."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.datasets.shards.ustar import BLOCK_SIZE, END_MARKER, encode_member, iter_members

names = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789-_."), min_size=1, max_size=100)
contents = st.lists(st.tuples(names, st.binary(max_size=2_000)), max_size=6)


def archive(files: list[tuple[str, bytes]]) -> bytes:
    return b"".join(chunk for name, data in files for chunk in encode_member(name, data)) + END_MARKER


@given(contents)
def test_reads_back_what_was_written(files: list[tuple[str, bytes]]) -> None:
    assert list(iter_members(io.BytesIO(archive(files)), "x.tar")) == files


@given(contents)
def test_python_reads_the_same_names_and_bytes(files: list[tuple[str, bytes]]) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(files))) as tar:
        assert [(info.name, (tar.extractfile(info) or io.BytesIO()).read()) for info in tar] == files


def test_equals_what_python_writes_as_ustar_up_to_the_final_padding() -> None:
    files = [("a.txt", b"hello"), ("b" * 96 + ".jpg", bytes(range(256)) * 5), ("c.json", b"")]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    ours = archive(files)
    assert out.getvalue()[: len(ours)] == ours


def test_the_tar_command_lists_and_extracts_it(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(archive([("k.txt", b"caption"), ("k.json", b"{}")]))
    done = subprocess.run(["tar", "-xvf", "x.tar"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("k.txt\nk.json\n", "")
    assert (tmp_path / "k.txt").read_bytes() == b"caption"


@pytest.mark.parametrize("name", ["", "x" * 101, "naïve.txt", "a\nb", "a\0b"])
def test_a_name_that_ustar_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(StorageError, match="printable ASCII"):
        encode_member(name, b"")


@given(st.integers(0, 4 * BLOCK_SIZE + len(END_MARKER) - 1))
def test_a_tar_cut_anywhere_is_found(length: int) -> None:
    whole = archive([("a.txt", b"x" * 600), ("b.txt", b"y")])
    with pytest.raises(StorageError, match=r"x\.tar"):
        list(iter_members(io.BytesIO(whole[: min(length, len(whole) - 1)]), "x.tar"))


def test_a_pax_header_and_a_flipped_header_bit_are_found() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a.txt")
        info.mtime = 1.5
        tar.addfile(info)
    with pytest.raises(StorageError, match="PAX"):
        list(iter_members(io.BytesIO(out.getvalue()), "x.tar"))
    flipped = bytearray(archive([("a.txt", b"")]))
    flipped[0] ^= 1
    with pytest.raises(StorageError, match="checksum"):
        list(iter_members(io.BytesIO(flipped), "x.tar"))


@pytest.mark.parametrize("size", [b"77777777777", b"-0000000001", b"0000000001 ", b"xyz"])
def test_a_header_with_a_damaged_size_is_found_before_anything_is_read(size: bytes) -> None:
    raw = bytearray(archive([("a.txt", b"hello")]))
    raw[124:135] = size.ljust(11, b"\0")
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:BLOCK_SIZE])
    with pytest.raises(StorageError, match=r"ends inside|unreadable header"):
        list(iter_members(io.BytesIO(raw), "x.tar"))


def test_padding_to_whole_records_is_accepted_and_anything_else_after_the_end_is_not() -> None:
    raw = archive([("a.txt", b"hello")])
    assert list(iter_members(io.BytesIO(raw + bytes(7_000)), "x.tar")) == [("a.txt", b"hello")]
    with pytest.raises(StorageError, match="continues after its end"):
        list(iter_members(io.BytesIO(raw + b"x"), "x.tar"))
