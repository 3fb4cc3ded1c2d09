"""`verify`: nothing to say of good shards, one line for each fault."""

import io
import tarfile
from pathlib import Path

import orjson
import pytest

from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.samples import members_of
from pairwright.datasets.shards import finish_shards, read_shard, write_shard, write_shards
from pairwright.datasets.ustar import END, member
from pairwright.datasets.verify import verify
from tests.datasets.way_out import picture, sample, samples


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_shards(samples(8), tmp_path / "shards", max_samples=4).folder


def test_good_shards_have_no_problems(folder: Path) -> None:
    assert verify(folder) == []
    assert verify(folder.parent) == []
    assert verify(folder / "{00000..00001}.tar") == []


def test_text_only_shards_have_no_problems(tmp_path: Path) -> None:
    write_shards([sample(0), sample(1)], tmp_path / "t")
    assert verify(tmp_path / "t") == []


def test_a_changed_byte_is_told_by_the_check_sum(folder: Path) -> None:
    path = folder / "00001.tar"
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"squares")] ^= 0x20
    path.write_bytes(raw)
    assert any("check sum in SHA256SUMS" in problem for problem in verify(folder))
    assert any("another caption" in problem for problem in verify(folder))


def test_a_torn_tar_is_told_and_the_others_are_still_read(folder: Path) -> None:
    path = folder / "00000.tar"
    path.write_bytes(path.read_bytes()[:-700])
    problems = verify(folder)
    assert any("00000.tar: the tar" in problem for problem in problems)
    assert not any(problem.startswith("00001.tar") for problem in problems)


def test_a_missing_shard_and_missing_side_files_are_told(folder: Path) -> None:
    (folder / "00000.tar").unlink()
    (folder / "sizes.json").unlink()
    problems = " ".join(verify(folder))
    assert "without gaps" in problems
    assert "sizes.json is missing" in problems
    assert "SHA256SUMS does not name" in problems


def test_a_key_in_two_shards_is_told(folder: Path) -> None:
    write_shard(samples(1), folder / "00002.tar")
    finish_shards(folder)
    assert any("stands in 00000.tar too" in problem for problem in verify(folder))


def test_differing_members_and_types_are_told(tmp_path: Path) -> None:
    image, text = sample(0, image=picture()), sample(1)
    key = text.pair.key
    parts = [c for ext, data in members_of(image) for c in member(f"{image.pair.key}.{ext}", data)]
    body = orjson.loads(dict(members_of(text))["json"]) | {"caption": None}
    parts += [*member(f"{key}.txt", b"t"), *member(f"{key}.json", orjson.dumps(body)), END]
    (tmp_path / "00000.tar").write_bytes(b"".join(parts))
    problems = " ".join(verify(tmp_path))
    assert "samples differ in their members: jpg+json+txt" in problems
    assert "caption is not a str" in problems


def test_a_picture_that_is_none_is_told(tmp_path: Path) -> None:
    write_shards([sample(0, image=picture()[:200]), sample(2, image=b"GIF89a"), sample(4, image=picture())], tmp_path)
    problems = verify(tmp_path)
    assert len(problems) == 2
    assert "does not decode" in problems[0]
    assert "no known image format" in problems[1]


def test_a_tar_with_pax_headers_is_told(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("k.txt")
        info.mtime, info.size = 1.5, 1
        tar.addfile(info, io.BytesIO(b"x"))
    assert any("PAX" in problem for problem in verify(tmp_path))


def test_a_key_that_is_a_path_is_told_and_never_read_as_a_sample(tmp_path: Path) -> None:
    good = sample(0, image=picture())
    parts = [chunk for ext, data in members_of(good) for chunk in member(f"/etc/evil.{ext}", data)]
    (tmp_path / "00000.tar").write_bytes(b"".join([*parts, END]))
    assert any("'/etc/evil' is not 32 hex digits" in problem for problem in verify(tmp_path))
    with pytest.raises(StorageError, match="32 hex digits"):
        list(read_shard(tmp_path / "00000.tar"))


def test_a_folder_without_shards_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.tar"):
        verify(tmp_path)
