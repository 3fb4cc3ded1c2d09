"""Verification of shards and builds: no problems for valid data, one line per problem otherwise."""

import io
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.samples import Sample, SampleImage, encode_members
from pairwright.datasets.shards.ustar import END_MARKER, encode_member
from pairwright.datasets.shards.writing import finish_shards, write_shard, write_shards
from pairwright.datasets.verification.checks import verify
from tests.datasets.sample_builders import conversation, picture, sample, samples


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return a finished build directory: a part of pairs, shards, a receipt, and the manifest of them."""
    root = tmp_path / "build"
    PAIRS.write([one.pair for one in samples(4)], root / "pairs" / "00000.parquet")
    write_shards(samples(4), root / "shards")
    paths = [path for path in sorted(root.glob("*/*")) if path.is_file()]
    files = {
        path.relative_to(root).as_posix(): {"bytes": path.stat().st_size, "sha256": hash_file(path)} for path in paths
    }
    write_bytes(root / "manifest.json", orjson.dumps({"files": files}))
    write_bytes(root / "receipts" / "pairs" / "00000.json", b"{}")
    return root


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


def test_a_changed_byte_is_reported_by_the_checksum(folder: Path) -> None:
    path = folder / "00001.tar"
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"squares")] ^= 0x20
    path.write_bytes(raw)
    assert any("checksum in SHA256SUMS" in problem for problem in verify(folder))
    assert any("another caption" in problem for problem in verify(folder))


def test_a_damaged_tar_is_reported_and_the_others_are_still_read(folder: Path) -> None:
    path = folder / "00000.tar"
    path.write_bytes(path.read_bytes()[:-700])
    problems = verify(folder)
    assert any("00000.tar: the tar" in problem for problem in problems)
    assert not any(problem.startswith("00001.tar") for problem in problems)


def test_an_index_of_another_shard_is_reported_and_a_missing_one_is_not(folder: Path) -> None:
    first, second = folder / "00000.tar.index", folder / "00001.tar.index"
    first.write_bytes(second.read_bytes())
    second.unlink()
    assert verify(folder) == ["00000.tar.index does not describe 00000.tar: delete it, or write the shard again"]


def test_a_missing_shard_and_missing_metadata_files_are_reported(folder: Path) -> None:
    (folder / "00000.tar").unlink()
    (folder / "sizes.json").unlink()
    problems = " ".join(verify(folder))
    assert "without gaps" in problems
    assert "sizes.json is missing" in problems
    assert "SHA256SUMS does not list" in problems


def test_a_key_in_two_shards_is_reported(folder: Path) -> None:
    write_shard(samples(1), folder / "00002.tar")
    finish_shards(folder)
    assert any("is also in 00000.tar" in problem for problem in verify(folder))


def test_differing_members_and_types_are_reported(tmp_path: Path) -> None:
    image, text = sample(0, image=picture()), sample(1)
    key = text.pair.key
    parts = [c for ext, data in encode_members(image) for c in encode_member(f"{image.pair.key}.{ext}", data)]
    body = orjson.loads(dict(encode_members(text))["json"]) | {"caption": None}
    parts += [*encode_member(f"{key}.txt", b"t"), *encode_member(f"{key}.json", orjson.dumps(body)), END_MARKER]
    (tmp_path / "00000.tar").write_bytes(b"".join(parts))
    problems = " ".join(verify(tmp_path))
    assert "samples differ in their members: jpg+json+txt" in problems
    assert "caption is not a str" in problems


def test_a_foreign_member_is_reported_and_not_read_as_the_image(tmp_path: Path) -> None:
    good = sample(0, image=picture())
    members = [("cls", b"7"), *encode_members(good)]
    parts = [c for ext, data in members for c in encode_member(f"{good.pair.key}.{ext}", data)]
    (tmp_path / "00000.tar").write_bytes(b"".join([*parts, END_MARKER]))
    finish_shards(tmp_path)
    (problem,) = verify(tmp_path)
    assert problem.endswith("holds cls, jpg, txt, json instead of txt, json and at most one image")


def test_an_invalid_image_is_reported(tmp_path: Path) -> None:
    write_shards([sample(0, image=picture()[:200]), sample(2, image=b"GIF89a"), sample(4, image=picture())], tmp_path)
    problems = verify(tmp_path)
    assert len(problems) == 2
    assert "does not decode" in problems[0]
    assert "no known image format" in problems[1]


def test_an_image_token_in_a_text_is_reported(tmp_path: Path) -> None:
    odd = sample(0)
    write_shards([replace(odd, pair=replace(odd.pair, captions=("<image> a disc",)))], tmp_path)
    assert any("a text has <image>" in problem for problem in verify(tmp_path))


def test_a_tar_with_pax_headers_is_reported(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("k.txt")
        info.mtime, info.size = 1.5, 1
        tar.addfile(info, io.BytesIO(b"x"))
    assert any("PAX" in problem for problem in verify(tmp_path))


def test_a_key_that_is_a_path_is_reported_and_not_read_as_a_sample(tmp_path: Path) -> None:
    good = sample(0, image=picture())
    parts = [chunk for ext, data in encode_members(good) for chunk in encode_member(f"/etc/evil.{ext}", data)]
    (tmp_path / "00000.tar").write_bytes(b"".join([*parts, END_MARKER]))
    assert any("'/etc/evil' is not 32 hex digits" in problem for problem in verify(tmp_path))
    with pytest.raises(StorageError, match="32 hex digits"):
        list(read_shard(tmp_path / "00000.tar"))


def test_a_finished_build_has_no_problems(build: Path) -> None:
    assert verify(build) == []


@pytest.mark.parametrize("name", ["pairs/00000.parquet", "shards/00000.tar", "shards/sizes.json"])
def test_a_changed_output_of_equal_size_is_reported(build: Path, name: str) -> None:
    raw = bytearray((build / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (build / name).write_bytes(raw)
    assert f"{name} does not match the checksum in manifest.json" in verify(build)


def test_a_missing_and_a_truncated_output_are_reported(build: Path) -> None:
    part = build / "pairs" / "00000.parquet"
    size = part.stat().st_size
    part.write_bytes(part.read_bytes()[:-1])
    assert verify(build) == [f"pairs/00000.parquet has {size - 1} bytes, manifest.json says {size}"]
    part.unlink()
    assert verify(build) == ["pairs/00000.parquet is missing, manifest.json names it"]


def test_missing_shards_of_a_build_are_reported_file_by_file(build: Path) -> None:
    shutil.rmtree(build / "shards")
    problems = verify(build)
    assert "shards/00000.tar is missing, manifest.json names it" in problems
    assert any("no .tar" in problem for problem in problems)


def test_an_unfinished_build_is_one_problem_with_or_without_shards(build: Path) -> None:
    (build / "manifest.json").unlink()
    message = verify(build)
    assert len(message) == 1
    assert message[0].startswith(f"{build}: unfinished build (")
    shutil.rmtree(build / "shards")
    assert verify(build) == message


def test_a_build_that_stopped_before_any_job_was_done_is_unfinished_too(tmp_path: Path) -> None:
    """It has only its marker: it is not an empty folder of shards."""
    (tmp_path / ".pairwright").touch()
    message = "nothing is done yet). To resume it, run `pairwright build` with its config."
    assert verify(tmp_path) == [f"{tmp_path}: unfinished build ({message}"]
    with pytest.raises(StorageError, match="unfinished build"):
        read_manifest(tmp_path)


def test_folders_that_no_build_made_need_no_manifest(build: Path, folder: Path) -> None:
    """Neither a folder with the layout of a build, nor shards with the manifest of another program."""
    (build / "manifest.json").unlink()
    shutil.rmtree(build / "receipts")
    assert verify(build) == []
    (folder / "manifest.json").write_text("[1]")
    assert verify(folder) == []


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"{", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"{}", "does not list the files"),
        (b'{"files": []}', "does not list the files"),
        (b'{"files": {"../../etc/passwd": {"bytes": 1, "sha256": ""}}}', "lies outside the build directory"),
        (b'{"files": {"/etc/passwd": {"bytes": 1, "sha256": ""}}}', "lies outside the build directory"),
        (b'{"files": {"shards/sizes.json": 3}}', "has no bytes and sha256"),
        (b'{"files": {"a\\u0000b": {"bytes": 1, "sha256": ""}}}', "is missing"),
    ],
)
def test_an_invalid_manifest_is_reported(build: Path, manifest: bytes, message: str) -> None:
    (build / "manifest.json").write_bytes(manifest)
    problems = verify(build)
    assert len(problems) == 1
    assert message in problems[0]


def test_a_folder_without_shards_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.tar"):
        verify(tmp_path)


def of_several(number: int, *texts: str, further: int = 1) -> Sample:
    one = sample(number, image=picture())
    more = tuple(SampleImage("", picture("green"), "jpg") for _ in range(further))
    return replace(one, annotations=(conversation(one.pair, *texts),), further_images=more)


def test_samples_of_several_images_in_shards_of_their_own_have_no_problems(tmp_path: Path) -> None:
    shown = [
        of_several(0, "<image> or <image>?", "A."),
        of_several(1, "<image>", "B.", "<image><image>", "C.", further=2),
    ]
    write_shards([sample(2, image=picture()), *shown], tmp_path / "s")
    assert verify(tmp_path / "s") == []


@pytest.mark.parametrize(
    ("texts", "marks"), [(("<image>?", "A."), "[1, 0]"), (("<image>?", "A.<image>"), "[1, 1]"), (("?", "A."), "[0, 0]")]
)
def test_marks_that_do_not_fit_several_images_are_reported(tmp_path: Path, texts: tuple[str, ...], marks: str) -> None:
    write_shards([of_several(0, *texts)], tmp_path / "s")
    (problem,) = verify(tmp_path / "s")
    assert problem.endswith(f"<image> occurs {marks} times in the turns of its conversation 0, for 2 images")


def test_a_gap_in_the_numbers_of_the_images_is_reported(tmp_path: Path) -> None:
    one = of_several(0, "<image><image>?", "A.")
    members = {ext.replace("1.jpg", "2.jpg"): data for ext, data in encode_members(one)}
    tar = b"".join(chunk for ext, data in members.items() for chunk in encode_member(f"{one.pair.key}.{ext}", data))
    write_bytes(tmp_path / "00000.tar", tar + END_MARKER)
    assert any("its images are jpg, 2.jpg instead of" in problem for problem in verify(tmp_path))


def test_a_broken_second_image_is_reported(tmp_path: Path) -> None:
    one = of_several(0, "<image><image>?", "A.")
    write_shards([replace(one, further_images=(SampleImage("", b"no image", "jpg"),))], tmp_path / "s")
    (problem,) = verify(tmp_path / "s")
    assert problem.endswith(".1.jpg holds no known image format")
