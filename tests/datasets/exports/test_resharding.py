"""Export of shards with other sizes, image formats, and several inputs."""

import io
from itertools import chain
from pathlib import Path

import pytest
from PIL import Image

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.exports.formats import export
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import join_sources, open_sample_source
from pairwright.datasets.shards.writing import write_shards
from pairwright.datasets.verification.checks import check_shard_count, verify
from tests.datasets.sample_builders import samples


def keys(folder: Path) -> list[list[str]]:
    return [[each.pair.key for each in read_shard(tar)] for tar in find_shards(folder)]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return write_shards(samples(8), tmp_path / "shards", max_samples=4).folder


def test_other_sizes_hold_the_same_samples_in_the_same_order(shards: Path, tmp_path: Path) -> None:
    export(shards, "webdataset", tmp_path / "three", ExportOptions(max_samples=3))
    assert [len(each) for each in keys(tmp_path / "three")] == [3, 3, 2]
    assert list(chain(*keys(tmp_path / "three"))) == list(chain(*keys(shards)))
    assert verify(tmp_path / "three") == []
    export(tmp_path / "three", "webdataset", tmp_path / "four", ExportOptions(max_samples=4))
    assert [tar.read_bytes() for tar in find_shards(tmp_path / "four")] == [
        tar.read_bytes() for tar in find_shards(shards)
    ]


def test_a_limit_in_bytes_makes_smaller_shards(shards: Path, tmp_path: Path) -> None:
    most = 3 * (shards / "00000.tar").stat().st_size // 4
    export(shards, "webdataset", tmp_path / "small", ExportOptions(max_bytes=most))
    tars = find_shards(tmp_path / "small")
    assert len(tars) > 2
    assert all(tar.stat().st_size <= most + 1024 for tar in tars)  # plus the end marker


def test_images_are_scaled_and_their_new_size_is_stored(shards: Path, tmp_path: Path) -> None:
    export(shards, "webdataset", tmp_path / "webp", ExportOptions(recoding=Recoding("webp", longest_side=16)))
    first = next(read_shard(tmp_path / "webp" / "00000.tar"))
    assert first.image_ext == "webp"
    assert Image.open(io.BytesIO(first.image or b"")).size == (first.pair.width, first.pair.height) == (16, 12)


def test_datasets_are_joined_in_order_and_renumbered(shards: Path, tmp_path: Path) -> None:
    other = write_shards(samples(11)[8:], tmp_path / "other").folder
    export(join_sources([open_sample_source(shards), open_sample_source(other)]), "webdataset", tmp_path / "both")
    assert keys(tmp_path / "both") == keys(shards) + keys(other)
    assert verify(tmp_path / "both") == []


@pytest.mark.parametrize("options", [ExportOptions(), ExportOptions(max_samples=5)])
def test_a_pair_that_is_in_two_of_them_is_refused(options: ExportOptions, shards: Path, tmp_path: Path) -> None:
    other = write_shards(samples(8)[7:], tmp_path / "other").folder
    with pytest.raises(InputError, match="a repeated key"):
        export(
            join_sources([open_sample_source(shards), open_sample_source(other)]),
            "webdataset",
            tmp_path / "both",
            options,
        )


def test_shards_are_not_written_over_those_that_are_read(shards: Path) -> None:
    before = keys(shards)
    with pytest.raises(UsageError, match="has the shards to export"):
        export(shards, "webdataset", shards, ExportOptions(max_samples=2))
    assert keys(shards) == before


def test_a_damaged_shard_is_named_by_its_source_path(shards: Path, tmp_path: Path) -> None:
    torn = shards / "00001.tar"
    torn.write_bytes(torn.read_bytes()[:-1500])
    with pytest.raises(StorageError, match=str(torn)):
        export(shards, "webdataset", tmp_path / "copy")


@pytest.mark.parametrize(
    ("readers", "expected"), [(0, []), (2, []), (3, ["2 shards for 3 readers", "at most 2 samples"])]
)
def test_too_few_shards_for_the_readers_are_reported_with_a_shard_size(
    readers: int, expected: list[str], shards: Path
) -> None:
    problem = check_shard_count(shards, readers)
    assert bool(problem) == bool(expected)
    assert all(part in problem for part in expected)


def test_shards_that_no_export_wrote_are_refused_before_anything_is_written(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "00000.tar").write_bytes(b"another's")
    for options in (ExportOptions(), ExportOptions(max_samples=2)):
        with pytest.raises(StorageError, match=r"00000\.tar, which no export wrote"):
            export(shards, "webdataset", out, options)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"00000.tar": b"another's"}


def test_a_smaller_export_replaces_a_larger_one_whole(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    larger = export(shards, "webdataset", out, ExportOptions(max_samples=1))
    smaller = export(shards, "webdataset", out, ExportOptions(max_samples=1000))
    assert len(smaller.files) < len(larger.files)
    assert sorted(out.iterdir()) == sorted(smaller.files)
    assert verify(out) == []
