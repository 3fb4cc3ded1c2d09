"""Writing, reading and finding of shards."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.shards.layout import ShardSet, find_shards, summarize_shards
from pairwright.datasets.shards.reading import read_members, read_shard, scan_shard
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, find_schema_mismatch
from pairwright.datasets.shards.samples import Sample, encode_sample_json
from pairwright.datasets.shards.writing import finish_shards, write_shard, write_shards
from pairwright.datasets.verification.checks import verify
from tests.datasets.sample_builders import (
    conversation,
    negative,
    pair,
    picture,
    positive,
    sample,
    samples,
    tar_names,
    texts_of,
)
from tests.example_counts import examples

utf8 = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@pytest.fixture
def shards(tmp_path: Path) -> ShardSet:
    return write_shards(samples(25), tmp_path / "shards", max_samples=10)


def test_the_same_samples_give_the_same_bytes_in_any_folder(shards: ShardSet, tmp_path: Path) -> None:
    moved = [
        replace(one, pair=replace(one.pair, image=one.pair.image.replace("/pool", "/elsewhere"))) for one in samples(25)
    ]
    again = write_shards(moved, tmp_path / "again", max_samples=10)
    assert again.shards == shards.shards
    for shard in shards.shards:
        assert (again.folder / shard.name).read_bytes() == (shards.folder / shard.name).read_bytes()


def test_webdataset_loads_every_sample_with_its_key(shards: ShardSet) -> None:
    import webdataset as wds

    loaded = list(wds.WebDataset(shards.pattern, shardshuffle=False, empty_check=False).decode("pil"))
    assert [row["__key__"] for row in loaded] == [one.pair.key for one in samples(25)]
    assert [row["json"]["key"] for row in loaded] == [row["__key__"] for row in loaded]
    assert [row["txt"] for row in loaded] == [one.pair.caption for one in samples(25)]
    assert {row["jpg"].size for row in loaded} == {(32, 24)}


def test_the_pipeline_of_openclip_style_trainers_reads_them(shards: ShardSet) -> None:
    """Sizes from sizes.json; samples filtered by an image and a txt; image and text renamed; json["key"] there."""
    import webdataset as wds

    sizes = json.loads((shards.folder / "sizes.json").read_text())
    urls = wds.SimpleShardList(shards.pattern).urls
    assert sum(int(sizes[Path(url["url"] if isinstance(url, dict) else url).name]) for url in urls) == 25
    pipeline = wds.DataPipeline(
        wds.SimpleShardList(shards.pattern),
        wds.tarfile_to_samples(),
        wds.select(lambda row: "txt" in row and any(ext in row for ext in ("png", "jpg", "jpeg", "webp"))),
        wds.decode("pilrgb"),
        wds.rename(image="jpg;png;jpeg;webp", text="txt", meta="json"),
        wds.to_tuple("image", "text", "meta"),
    )
    rows = list(pipeline)
    assert len(rows) == 25
    assert all(meta["key"] and meta["caption"] == text and image.mode == "RGB" for image, text, meta in rows)


def test_a_tar_has_plain_files_only_and_samples_are_adjacent(shards: ShardSet) -> None:
    for shard in shards.shards:
        raw, offset, names = (shards.folder / shard.name).read_bytes(), 0, []
        while raw[offset : offset + 1] != b"\0":
            header = raw[offset : offset + 512]
            assert header[156:157] == b"0"
            assert header[136:148] == b"00000000000\0"
            names.append(header[:100].rstrip(b"\0").decode())
            size = int(header[124:135], 8)
            offset += 512 + size + -size % 512
        assert names == tar_names(shards.folder / shard.name)
        keys = [name.partition(".")[0] for name in names]
        assert keys == [key for key in dict.fromkeys(keys) for _ in range(3)]


def test_image_bytes_pass_through_untouched(shards: ShardSet) -> None:
    read = [one.image for shard in shards.shards for one in read_shard(shards.folder / shard.name)]
    assert read == [one.image for one in samples(25)]


def test_every_sample_has_the_same_members_and_types(shards: ShardSet) -> None:
    for shard in shards.shards:
        for _, members in read_members(shards.folder / shard.name):
            assert list(members) == ["jpg", "txt", "json"]
            assert find_schema_mismatch(orjson.loads(members["json"]), SAMPLE_SCHEMA) == ""


def test_each_negative_has_its_edit_and_positive() -> None:
    of = pair(0)
    other = positive(of)
    rows = encode_sample_json(Sample(of, (negative(of), other, negative(of, "x y", positive_id=other.id))))[
        "hard_negatives"
    ]
    assert rows[0]["edit"] == [{"from": "red", "to": "blue", "from_span": [2, 5], "to_span": [2, 6]}]
    assert [row["positive"] for row in rows] == [of.caption, other.text]
    assert rows[0]["scores"] == [{"name": "grammar", "value": 1.0}, {"name": "plausibility", "value": 0.25}]
    assert b'"value":1.0' in orjson.dumps(rows)


@settings(max_examples=examples(40))
@given(caption=utf8, question=utf8, answer=utf8, wrong=utf8)
def test_any_text_comes_back_as_it_was(
    caption: str, question: str, answer: str, wrong: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "00000.tar"
    of = pair(0, caption)
    written = Sample(of, (negative(of, wrong), conversation(of, question, answer, kind="detail")))
    assert write_shard([written], path).count == 1
    (read,) = read_shard(path)
    assert read.pair == of
    assert texts_of(read.annotations) == texts_of(written.annotations)


def test_a_shard_read_and_written_again_is_the_same_with_the_source_s_name_of_each_image(
    shards: ShardSet, tmp_path: Path
) -> None:
    path = shards.folder / "00000.tar"
    write_shard(read_shard(path), tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == path.read_bytes()


def test_text_only_samples_have_a_text_and_a_json(tmp_path: Path) -> None:
    info = write_shard([sample(0), sample(1)], tmp_path / "00000.tar")
    assert (info.count, info.image_ext) == (2, "")
    assert [name.partition(".")[2] for name in tar_names(tmp_path / "00000.tar")] == ["txt", "json"] * 2


def test_samples_with_and_without_an_image_are_refused_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"jpg and no image in one dataset.*images: false"):
        write_shard([sample(0, image=picture()), sample(1)], tmp_path / "00000.tar")


def test_mixed_image_formats_are_refused_with_a_fix(tmp_path: Path) -> None:
    mixed = [sample(0, image=picture()), sample(1, image=picture(image_format="PNG"), ext="png")]
    with pytest.raises(InputError, match=r"jpg and png in one dataset.*image_format"):
        write_shard(mixed, tmp_path / "00000.tar")
    assert list(tmp_path.iterdir()) == []
    for number, one in enumerate(mixed):
        write_shard([one], tmp_path / f"{number:05d}.tar")
    with pytest.raises(InputError, match=r"jpg and png in one dataset.*image_format"):
        finish_shards(tmp_path)


def test_a_repeated_key_and_a_lone_surrogate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="repeated key"):
        write_shard([sample(0), sample(0)], tmp_path / "00000.tar")
    with pytest.raises(InputError, match="UTF-8"):
        write_shard([Sample(replace(pair(0), caption="a \ud800 b"))], tmp_path / "00000.tar")
    with pytest.raises(InputError, match="score"):
        write_shard(
            [Sample(pair(0), (replace(negative(pair(0)), scores={"g": float("nan")}),))], tmp_path / "00000.tar"
        )
    with pytest.raises(UsageError, match="go together"):
        write_shard([Sample(pair(0), image=b"x")], tmp_path / "00000.tar")


def test_finishing_writes_sizes_sums_and_the_pattern(shards: ShardSet) -> None:
    sizes = json.loads((shards.folder / "sizes.json").read_text())
    assert sizes == {"00000.tar": 10, "00001.tar": 10, "00002.tar": 5}
    subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=shards.folder, check=True, capture_output=True
    )
    assert shards.pattern == str(shards.folder / "{00000..00002}.tar")
    assert summarize_shards(shards)["samples"] == 25
    assert finish_shards(shards.folder) == shards
    assert scan_shard(shards.folder / "00002.tar")[0] == shards.shards[2]


def test_a_shard_ends_at_its_size_limit(tmp_path: Path) -> None:
    one = write_shards(samples(6), tmp_path / "one").shards[0]
    several = write_shards(samples(6), tmp_path / "several", max_bytes=one.bytes // 3)
    assert len(several.shards) > 2
    assert several.count == 6
    assert all(shard.bytes <= one.bytes // 3 + 1024 for shard in several.shards)


def test_a_gap_or_a_leftover_shard_is_found(shards: ShardSet) -> None:
    with pytest.raises(StorageError, match=r"00002\.tar left over"):
        finish_shards(shards.folder, shards.shards[:2])
    (shards.folder / "00001.tar").unlink()
    with pytest.raises(StorageError, match="without gaps"):
        finish_shards(shards.folder)


def test_a_shard_whose_images_were_all_unusable_does_not_count_as_another_format(tmp_path: Path) -> None:
    for number, held in enumerate(([], samples(2), [])):
        write_shard(held, tmp_path / f"{number:05d}.tar")
    finished = finish_shards(tmp_path)
    assert json.loads((tmp_path / "sizes.json").read_text()) == {"00000.tar": 0, "00001.tar": 2, "00002.tar": 0}
    assert (finished.count, summarize_shards(finished)["image_ext"]) == (2, "jpg")
    assert verify(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("empty", r"no \.tar in it"),
        ("gone.tar", "no such file"),
        ("notes.txt", r"not a \.tar"),
        ("{00000..00003}.tar", r"4 of 4 shards missing, first .*00000\.tar"),
    ],
)
def test_a_path_without_shards_is_an_error(name: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("a tar is not here")
    with pytest.raises(InputError, match=expected):
        find_shards(tmp_path / name)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("https://u:pw@h.org/a/x.jpg?X-Amz-Signature=abc#f", "https://h.org/a/x.jpg"),
        ("file:///home/alice/x.jpg", "x.jpg"),
        ("FILE:/home/alice/s.tar::a/x.jpg?y", "s.tar::a/x.jpg"),
        ("/home/alice/s.tar::a/x.jpg", "s.tar::a/x.jpg"),
        ("C:\\alice\\x.jpg", "x.jpg"),
    ],
)
def test_a_sample_does_not_reveal_image_folders_or_credentials(image: str, expected: str) -> None:
    assert encode_sample_json(Sample(pair(0, image=image)))["provenance"]["image"] == expected


def test_a_build_given_as_shards_is_an_error_that_names_its_shards(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    with pytest.raises(InputError, match=f"Give its shards: {tmp_path / 'shards'}"):
        find_shards(tmp_path)


def test_no_samples_give_no_shards(tmp_path: Path) -> None:
    nothing = write_shards([], tmp_path / "none")
    assert (nothing.pattern, nothing.count) == ("", 0)
