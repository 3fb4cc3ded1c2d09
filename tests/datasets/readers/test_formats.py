"""Pairs read from each input format."""

import gzip
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.formats import guess_format
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Box, Pair, pair_key
from pairwright.datasets.rejects import Reject
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import write_shards
from tests.datasets.compression import COMPRESSORS


def picture(width: int = 4, height: int = 3, kind: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(stream, kind)
    return stream.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_rows(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read(written: str | Path | tuple[str, ...], **options: Any) -> list[Pair]:
    batches = list(read_pairs(ReadOptions(written if isinstance(written, tuple) else str(written), **options)))
    assert not [reject for batch in batches for reject in batch.rejects]
    return [pair for batch in batches for pair in batch.pairs]


def read_all(written: str | Path, **options: Any) -> tuple[list[Pair], list[Reject]]:
    batches = list(read_pairs(ReadOptions(str(written), on_error="skip", **options)))
    return [pair for b in batches for pair in b.pairs], [reject for b in batches for reject in b.rejects]


def test_a_jsonl_row_becomes_a_pair_with_an_absolute_image_and_the_rest_in_meta(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(7, 5, "PNG"))
    file = write_rows(tmp_path / "pool.jsonl", {"id": 7, "image": "a.png", "text": "a cat", "score": 0.5})
    assert read(file) == [
        Pair(
            key=pair_key("pool", "7", "a cat"),
            caption="a cat",
            source_id="7",
            image=str(tmp_path / "a.png"),
            width=7,
            height=5,
            source="pool",
            meta='{"score":0.5}',
        )
    ]


def test_a_missing_image_rejects_each_of_its_exploded_captions(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "gone.jpg"}, {"id": 2, "file_name": "there.jpg"}],
                "annotations": [
                    {"image_id": 1 + place // 3, "caption": text, "id": place} for place, text in enumerate("abcd")
                ],
            }
        )
    )
    (tmp_path / "there.jpg").write_bytes(picture())
    for explode, rejected in ((False, 1), (True, 3)):
        options = ReadOptions(str(file), explode=explode, image_root=str(tmp_path), on_error="skip")
        rejects = [reject for batch in read_pairs(options) for reject in batch.rejects]
        assert [reject.reason for reject in rejects] == ["missing_image"] * rejected


def test_the_first_of_several_captions_is_the_caption_and_explode_makes_a_pair_of_each(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "pool.jsonl", {"image_id": 1, "captions": ["a", "b", "a"]})
    columns = {"key": "image_id", "captions": "captions"}
    (pair,) = read(file, columns=columns)
    assert (pair.source_id, pair.caption, pair.captions) == ("1", "a", ("b",))
    exploded = read(file, columns=columns, explode=True)
    assert [(pair.caption, pair.captions) for pair in exploded] == [("a", ("b",)), ("b", ("a",))]
    assert exploded[0].key == pair.key != exploded[1].key


def test_keys_do_not_change_when_the_folder_moves(tmp_path: Path) -> None:
    keys = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = write_rows(tmp_path / folder / "pool.jsonl", {"image": "a.jpg", "caption": "a cat"})
        keys.add(read(file, verify_images="off")[0].key)
    assert keys == {pair_key("pool", "a.jpg", "a cat")}


def test_urls_stay_as_they_are_and_relative_paths_follow_the_image_root(tmp_path: Path) -> None:
    file = write_rows(
        tmp_path / "pool.jsonl",
        {"image": "https://x.org/a b.jpg", "caption": "a"},
        {"image": "b/../a.jpg", "caption": "b"},
    )
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(picture())
    assert [pair.image for pair in read(file, image_root=str(tmp_path / "images"))] == [
        "https://x.org/a b.jpg",
        str(tmp_path / "images" / "a.jpg"),
    ]


def test_a_gzipped_file_with_blank_lines_mark_and_crlf_reads_like_a_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"caption": "a"}\r\n\r\n{"caption": "b"}'))
    assert [(pair.caption, pair.source) for pair in read(path)] == [("a", "pool"), ("b", "pool")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("packed", [False, True])
def test_gzip_is_recognised_by_content_whatever_the_name(tmp_path: Path, name: str, packed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    content = b'{"caption": "a"}\n{"caption": "b"}\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    assert [pair.caption for pair in read(tmp_path / name)] == ["a", "b"]


KINDS_OF_TEXT = {
    "jsonl": lambda rows: "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
    "json": lambda rows: json.dumps(rows, ensure_ascii=False),
    "csv": lambda rows: "\r\n".join(["image,caption", *(",".join(row.values()) for row in rows)]),
    "tsv": lambda rows: "\n".join(["image\tcaption", *("\t".join(row.values()) for row in rows)]),
}


@pytest.mark.parametrize("kind", KINDS_OF_TEXT)
def test_compressed_text_and_utf_16_read_like_plain_text(tmp_path: Path, kind: str) -> None:
    rows = [{"image": f"{at}.jpg", "caption": f"a caf\u00e9 {at} \N{WINE GLASS}"} for at in range(2000)]
    text = KINDS_OF_TEXT[kind](rows)  # longer than a block of the decoders
    for ending, compress in {"": bytes, **COMPRESSORS}.items():
        for encoding in ("utf-16",) if ending == "" else ("utf-8", "utf-16") if ending == ".zst" else ("utf-8",):
            path = tmp_path / f"a.{kind}{ending}"
            path.write_bytes(compress(text.encode(encoding)))
            pairs = read(path, verify_images="off")
            assert [pair.caption for pair in pairs] == [row["caption"] for row in rows]
            assert {pair.source for pair in pairs} == {"a"}


def test_several_compressed_streams_in_one_file_are_one_text(tmp_path: Path) -> None:
    for ending, compress in COMPRESSORS.items():
        path = tmp_path / f"a.jsonl{ending}"
        path.write_bytes(compress(b'{"caption": "a"}\n') + compress(b'{"caption": "b"}\n'))
        assert [pair.caption for pair in read(path)] == ["a", "b"]


def test_a_text_that_begins_like_bzip2_and_an_empty_file_of_it_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("BZh,caption\n1,a dog\n")
    assert [(pair.caption, pair.meta) for pair in read(path)] == [("a dog", '{"BZh":"1"}')]
    for ending, compress in COMPRESSORS.items():
        packed = tmp_path / f"a.jsonl{ending}"
        packed.write_bytes(compress(b"") + compress(b'{"caption": "a"}\n'))
        assert [pair.caption for pair in read(packed)] == ["a"]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_gzipped_coco_and_lists_are_read(tmp_path: Path, name: str) -> None:
    coco = {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"id": 1, "image_id": 1, "caption": "a"}]}
    for content in (coco, [{"caption": "a"}]):
        (tmp_path / name).write_bytes(gzip.compress(json.dumps(content).encode()))
        assert [pair.caption for pair in read(tmp_path / name, verify_images="off")] == ["a"]


def test_captions_may_be_one_plain_text_in_every_format(tmp_path: Path) -> None:
    row = {"id": 1, "captions": "a [b]"}
    write_rows(tmp_path / "a.jsonl", row)
    (tmp_path / "a.json").write_text(json.dumps([row]))
    for ending, mark in (("csv", ","), ("tsv", "\t")):
        (tmp_path / f"a.{ending}").write_text(f"id{mark}captions\n1{mark}a [b]\n")
    pl.DataFrame([row]).write_parquet(tmp_path / "a.parquet")
    for ending in ("jsonl", "json", "csv", "tsv", "parquet"):
        (pair,) = read(tmp_path / f"a.{ending}")
        assert (pair.caption, pair.captions) == ("a [b]", ()), ending


def test_csv_reads_quotes_line_breaks_numbers_and_json_lists(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_bytes(
        b"\xef\xbb\xbfid,captions,width,height,boxes\r\n"
        b'1,"[""a, \xc3\xa9"", ""b""]",640,480,"[{""label"": ""cat"", ""bbox"": [0, 0, 320, 480]}]"\r\n'
        b'2,"[""c\\nd""]",,,\r\n'
    )
    first, second = read(path)
    assert (first.caption, first.captions, first.width) == ("a, é", ("b",), 640)
    assert first.boxes == (Box("cat", 0.0, 0.0, 0.5, 1.0),)
    assert (second.caption, second.width, second.boxes) == ("c\nd", 0, ())


def test_tsv_takes_the_names_filepath_and_title(tmp_path: Path) -> None:
    (tmp_path / "pool.tsv").write_text('filepath\ttitle\nhttps://x.org/1.jpg\ta "red" cat, lying\n')
    (pair,) = read(tmp_path / "pool.tsv")
    assert (pair.image, pair.caption) == ("https://x.org/1.jpg", 'a "red" cat, lying')


def test_a_folder_of_parquet_files_is_read_in_order_of_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        pl.DataFrame({"caption": [f"{name}1", f"{name}2"], "n": [1.5, float("nan")]}).write_parquet(
            tmp_path / f"{name}.parquet", row_group_size=1
        )
    pairs = read(tmp_path)
    assert [pair.caption for pair in pairs] == ["a1", "a2", "b1", "b2"]
    assert [pair.meta for pair in pairs[:2]] == ['{"n":1.5}', '{"n":null}']


def test_parquet_times_decimals_and_bytes_become_text_in_meta(tmp_path: Path) -> None:
    frame = pl.DataFrame({"caption": ["a"], "at": ["2026-01-02 03:04:05"], "raw": [b"123"], "took": [5]}).with_columns(
        pl.col("at").str.to_datetime(time_unit="ns"), pl.col("took").cast(pl.Duration("ns"))
    )
    frame.write_parquet(tmp_path / "a.parquet")
    (pair,) = read(tmp_path / "a.parquet")
    meta = json.loads(pair.meta)
    assert meta["at"].startswith("2026-01-02 03:04:05")
    assert meta["raw"] == "<bytes>"


def test_pairs_that_pairwright_wrote_are_read_back_equal(tmp_path: Path) -> None:
    pairs = [
        Pair(
            key=pair_key("coco", "1", "a"),
            caption="a",
            source_id="1",
            image="https://x.org/1.jpg",
            captions=("b",),
            boxes=(Box("cat", 0.1, 0.2, 0.3, 0.4),),
            width=3,
            height=2,
            source="coco",
            license="CC",
            meta='{"a":[1]}',
        ),
        Pair(key=pair_key("coco", "", "text only"), caption="text only", source="coco"),
    ]
    PAIRS.write(pairs, tmp_path / "00000.parquet")
    assert read(tmp_path) == pairs


def coco(folder: Path) -> Path:
    images = [
        {"id": 1, "file_name": "1.jpg", "width": 100, "height": 50, "license": 4},
        {"id": 2, "file_name": "2.jpg", "width": 100, "height": 50},
    ]
    captions = [
        {"id": 9, "image_id": 2, "caption": "c"},
        {"id": 8, "image_id": 1, "caption": "a"},
        {"id": 7, "image_id": 1, "caption": "b"},
    ]
    instances = [
        {"id": 1, "image_id": 1, "category_id": 3, "bbox": [10, 5, 40, 20], "iscrowd": 0},
        {"id": 2, "image_id": 1, "category_id": 3, "bbox": [0, 0, 100, 50.4], "iscrowd": 1},
    ]
    (folder / "captions.json").write_text(
        json.dumps({"images": images, "annotations": captions, "licenses": [{"id": 4, "name": "CC BY"}]})
    )
    (folder / "instances.json").write_text(
        json.dumps({"images": images, "annotations": instances, "categories": [{"id": 3, "name": "dog"}]})
    )
    return folder / "captions.json"


def test_coco_captions_take_boxes_from_instances_and_keep_crowds_apart(tmp_path: Path) -> None:
    first, second = read(coco(tmp_path), instances=str(tmp_path / "instances.json"), verify_images="off")
    assert (first.caption, first.captions, first.source_id, first.license) == ("a", ("b",), "1", "CC BY")
    assert first.image == str(tmp_path / "1.jpg")
    assert first.boxes == (Box("dog", 0.1, 0.1, 0.5, 0.5),)
    assert json.loads(first.meta)["crowd"] == [{"label": "dog", "x1": 0.0, "y1": 0.0, "x2": 1.0, "y2": 1.0}]
    assert (second.caption, second.boxes, second.license) == ("c", (), "")


@pytest.mark.parametrize("kind", [str, int, float])
def test_coco_ids_match_as_texts_or_numbers(tmp_path: Path, kind: type) -> None:
    """Tools write ids as 123 or "123", and not always the same way in all lists of a file."""
    path = coco(tmp_path)
    for name in ("captions.json", "instances.json"):
        data = json.loads((tmp_path / name).read_text())
        for one in (*data["images"], *data.get("categories", ()), *data.get("licenses", ())):
            one["id"] = str(one["id"])
        for one in data["annotations"]:
            one["image_id"] = kind(one["image_id"])
        (tmp_path / name).write_text(json.dumps(data))
    first, second = read(path, instances=str(tmp_path / "instances.json"), verify_images="off")
    assert (first.caption, first.captions, first.source_id, first.license) == ("a", ("b",), "1", "CC BY")
    assert (first.boxes, second.caption) == ((Box("dog", 0.1, 0.1, 0.5, 0.5),), "c")


def test_an_instance_of_no_image_is_rejected_and_images_keep_their_boxes(tmp_path: Path) -> None:
    path = coco(tmp_path)
    data = json.loads((tmp_path / "instances.json").read_text())
    data["annotations"].append({"id": 3, "image_id": [1], "bbox": []})
    (tmp_path / "instances.json").write_text(json.dumps(data))
    pairs, rejects = read_all(path, instances=str(tmp_path / "instances.json"), verify_images="off")
    assert [len(pair.boxes) for pair in pairs] == [1, 0]
    assert [(reject.reason, reject.place) for reject in rejects] == [
        ("wrong_type", f"{tmp_path}/instances.json:annotation number 3")
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"category_id": 3, "bbox": [90, 5, 40, 20]},
        {"category_id": 3, "bbox": [10, 5, 140, 20], "iscrowd": 1},
        {"category_id": 9, "bbox": [10, 5, 40, 20]},
        {"category_id": 3, "bbox": [10, 5]},
        {"category_id": 3, "bbox": None},
        {"category_id": 3},
        {"bbox": [10, 5, 40, 20]},
    ],
)
def test_a_coco_image_with_a_bad_box_keeps_its_captions_and_has_no_boxes(tmp_path: Path, broken: Any) -> None:
    """Its other boxes and crowds are not used either: what is not among them would seem to be absent."""
    path = coco(tmp_path)
    data = json.loads((tmp_path / "instances.json").read_text())
    data["annotations"] += [
        {"id": 3, "image_id": 1, **broken},
        {"id": 4, "image_id": 2, "category_id": 3, "bbox": [0, 0, 50, 50]},
    ]
    (tmp_path / "instances.json").write_text(json.dumps(data))
    pairs, rejects = read_all(path, instances=str(tmp_path / "instances.json"), verify_images="off")
    assert [(pair.caption, pair.captions, len(pair.boxes)) for pair in pairs] == [("a", ("b",), 0), ("c", (), 1)]
    assert "crowd" not in json.loads(pairs[0].meta)
    assert [(reject.reason, reject.place) for reject in rejects] == [("bad_box", f"{path}:image 1, boxes")]


@pytest.mark.parametrize("size", [(100.0, 50.0), ("100.0", 50), (None, None)])
def test_a_coco_image_has_its_size_as_pandas_writes_it_or_from_the_instances(tmp_path: Path, size: Any) -> None:
    path = coco(tmp_path)
    data, instances = json.loads(path.read_text()), tmp_path / "instances.json"
    expected, _ = read_all(path, instances=str(instances), verify_images="off")
    for image in data["images"]:
        image |= dict(zip(("width", "height"), size, strict=True))
    path.write_text(json.dumps(data))
    pairs, rejects = read_all(path, instances=str(instances), verify_images="off")
    assert [pair.boxes for pair in pairs] == [pair.boxes for pair in expected]
    assert not rejects


def test_instances_of_other_images_are_refused(tmp_path: Path) -> None:
    path = coco(tmp_path)
    other = {"images": [{"id": 901}], "annotations": [{"image_id": 902, "category_id": 3, "bbox": [0, 0, 1, 1]}]}
    (tmp_path / "other.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match=r"other\.json: none of its images is in .*Give the instances of the same"):
        read(path, instances=str(tmp_path / "other.json"), verify_images="off")


def test_a_coco_image_without_instances_needs_no_size(tmp_path: Path) -> None:
    path = coco(tmp_path)
    data = json.loads(path.read_text())
    data["images"][1] = {"id": 2, "file_name": "2.jpg"}
    path.write_text(json.dumps(data))
    data = json.loads((tmp_path / "instances.json").read_text())
    (tmp_path / "instances.json").write_text(json.dumps({**data, "images": data["images"][:1]}))
    pairs, rejects = read_all(path, instances=str(tmp_path / "instances.json"), verify_images="off")
    assert ([len(pair.boxes) for pair in pairs], rejects) == ([1, 0], [])


def test_an_image_folder_pairs_names_and_reads_json_fields(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.png").write_bytes(picture(kind="PNG"))
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbftwo\nlines\r\n")
    (tmp_path / "sub" / "a.jpg").write_bytes(picture())
    (tmp_path / "sub" / "a.json").write_text('{"captions": ["x", "y"], "license": "CC0", "image": "old.jpg"}')
    (tmp_path / ".hidden.txt").write_text("no sample")
    first, second = read(tmp_path)
    assert (first.source_id, first.caption, first.image) == ("b", "two\nlines", str(tmp_path / "b.png"))
    assert (second.source_id, second.captions, second.license) == ("sub/a", ("y",), "CC0")
    assert second.meta == '{"image_in_json":"old.jpg"}'


def test_a_folder_of_captioned_images_and_a_tar_is_refused(tmp_path: Path) -> None:
    """Of such a folder only the tar was read, and the images were ignored without a word."""
    (tmp_path / "a.jpg").write_bytes(picture())
    (tmp_path / "a.txt").write_text("a cat")
    (tmp_path / "backup.tar").touch()
    with pytest.raises(InputError, match=r"both tars and images with captions.*--format images"):
        read(tmp_path)
    assert [pair.caption for pair in read(tmp_path, format="images")] == ["a cat"]


def test_the_plain_files_of_img2dataset_are_an_image_folder_with_a_table(tmp_path: Path) -> None:
    (tmp_path / "00000").mkdir()
    (tmp_path / "00000" / "000000000.jpg").write_bytes(picture())
    (tmp_path / "00000" / "000000000.txt").write_text("a cat")
    (tmp_path / "00000" / "000000000.json").write_text('{"key": "000000000", "caption": "a cat"}')
    (tmp_path / "00000_stats.json").write_text("{}")
    pl.DataFrame({"key": ["000000000", "1"], "status": ["success", "failed_to_resize"]}).write_parquet(
        tmp_path / "00000.parquet"
    )
    pairs, rejects = read_all(tmp_path)
    assert [(pair.source_id, pair.caption) for pair in pairs] == [("000000000", "a cat")]
    assert [(reject.reason, reject.detail) for reject in rejects] == [
        ("download_failed", "failed_to_resize: no message")
    ]


def shard(path: Path, numbers: range) -> Path:
    members: dict[str, bytes] = {}
    for number in numbers:
        key = f"{number:09d}"
        members[f"{key}.jpg"] = picture()
        members[f"{key}.txt"] = f"caption {number}".encode()
        fields = {"key": key, "caption": f"caption {number}", "url": f"https://x.org/{key}", "status": "success"}
        members[f"{key}.json"] = json.dumps(fields).encode()
    return write_tar(path, members)


def test_shards_of_img2dataset_give_samples_and_failed_downloads(tmp_path: Path) -> None:
    shard(tmp_path / "00000.tar", range(2))
    shard(tmp_path / "00001.tar", range(2, 3))
    pl.DataFrame(
        {
            "key": ["000000000", "000000001", "000000077", "000000078"],
            "status": ["success", "success", "failed_to_download", "success"],
            "error_message": [None, None, "HTTP Error 404: Not Found", None],
        }
    ).write_parquet(tmp_path / "00000.parquet")
    pairs, rejects = read_all(tmp_path)
    assert [pair.source_id for pair in pairs] == ["000000000", "000000001", "000000002"]
    assert pairs[0].image == f"{tmp_path}/00000.tar::000000000.jpg"
    assert (pairs[0].width, pairs[0].source) == (4, tmp_path.name)
    assert [(reject.reason, reject.detail) for reject in rejects] == [
        ("download_failed", "failed_to_download: HTTP Error 404: Not Found"),
        ("missing_sample", "the sample 000000078 is not in the shard"),
    ]


def test_pairs_keep_their_keys_through_shards_of_pairwright(tmp_path: Path) -> None:
    pair = Pair(
        key=pair_key("coco", "7", "a cat"),
        caption="a cat",
        source_id="7",
        captions=("b",),
        width=4,
        height=3,
        source="coco",
        license="CC",
    )
    write_shards([Sample(pair=pair, image=picture(), image_ext="jpg")], tmp_path)
    (found,) = read(tmp_path)
    assert replace(found, image="", meta="{}") == pair
    assert found.image == f"{tmp_path}/00000.tar::{pair.key}.jpg"


def test_a_brace_pattern_names_shards_in_order(tmp_path: Path) -> None:
    for number in (1, 0):
        shard(tmp_path / f"{number:05d}.tar", range(number, number + 1))
    assert [pair.caption for pair in read(f"{tmp_path}/{{00000..00001}}.tar")] == ["caption 0", "caption 1"]
    assert list(expand_braces("{08..10}-{a,b}")) == ["08-a", "08-b", "09-a", "09-b", "10-a", "10-b"]
    with pytest.raises(InputError, match=r"00002\.tar: 1 of 3 files"):
        read(f"{tmp_path}/{{00000..00002}}.tar")


@pytest.mark.parametrize("column", ["image", "images"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_list_of_one_image_is_the_image_and_one_of_several_is_rejected(
    tmp_path: Path, ending: str, column: str
) -> None:
    rows = [{"caption": f"caption {at}", column: [f"{name}.jpg" for name in range(at)]} for at in range(3)]
    path = tmp_path / f"a.{ending}"
    if ending == "jsonl":
        write_rows(path, *rows)
    else:
        pl.DataFrame(rows).write_parquet(path)
    pairs, (reject,) = read_all(path, verify_images="off")
    assert [(pair.caption, pair.image) for pair in pairs] == [
        ("caption 0", ""),
        ("caption 1", str(tmp_path / "0.jpg")),
    ]
    assert (reject.reason, reject.detail) == ("several_images", "2 images, where a pair has one")


def test_rows_of_an_image_in_a_list_know_each_others_captions(tmp_path: Path) -> None:
    rows = [{"caption": text, "images": ["0.jpg"]} for text in ("a", "b")]
    pairs = read(write_rows(tmp_path / "a.jsonl", *rows), verify_images="off")
    assert [(pair.caption, pair.captions) for pair in pairs] == [("a", ("b",)), ("b", ("a",))]


@pytest.mark.parametrize(("ending", "number"), [("csv", "17"), ("csv", "17.0"), ("jsonl", "17"), ("jsonl", "17.0")])
def test_a_number_in_a_column_named_image_is_the_id_of_an_image_and_not_its_file(
    tmp_path: Path, ending: str, number: str
) -> None:
    (tmp_path / "17").write_bytes(picture(7, 5, "PNG"))
    row = "{},{}\n" if ending == "csv" else '{{"image":{},"caption":"{}"}}\n'
    header = "image,caption\n" if ending == "csv" else ""
    file = tmp_path / f"a.{ending}"
    file.write_text(header + row.format(number, "a cat") + row.format(number, "a pet"))
    first, second = read(file)
    assert (first.image, first.source_id, first.width) == ("", number if ending == "csv" else "17", 0)
    assert (first.captions, second.captions) == (("a pet",), ("a cat",)), "texts of one image know each other"
    assert first.key == pair_key("a", first.source_id, "a cat")


def test_digits_in_a_column_that_the_user_maps_to_the_image_are_a_file(tmp_path: Path) -> None:
    (tmp_path / "17").write_bytes(picture(7, 5, "PNG"))
    (tmp_path / "a.csv").write_text("image,caption\n17,a cat\n")
    (pair,) = read(tmp_path / "a.csv", columns={"image": "image"})
    assert (pair.image, pair.source_id, pair.width) == (str(tmp_path / "17"), "", 7)


def test_a_caption_file_is_read_where_there_is_no_txt(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(picture(kind="PNG"))
        (tmp_path / f"{name}.caption").write_text(f"caption of {name}\n")
    (tmp_path / "b.txt").write_text("text of b")
    assert [pair.caption for pair in read(tmp_path)] == ["caption of a", "text of b"]
    members = {"0.png": picture(kind="PNG"), "0.caption": b"a cat"}
    assert [pair.caption for pair in read(write_tar(tmp_path / "a.tar", members))] == ["a cat"]


def test_a_sample_without_an_image_is_a_text_only_pair(tmp_path: Path) -> None:
    (pair,) = read(write_tar(tmp_path / "a.tar", {"x/0.txt": b"a cat", "x/0.cls": b"1"}))
    assert (pair.caption, pair.image, pair.source_id, pair.meta) == ("a cat", "", "x/0", '{"other_files":[".cls"]}')


def embeddings(folder: Path, vectors: int = 2) -> Path:
    for name in ("metadata", "img_emb"):
        (folder / name).mkdir()
    for part, captions in (("10", ["a", "b"]), ("2", ["c", "d"])):
        pl.DataFrame(
            {"image_path": ["1", "https://x.org/2.jpg"], "caption": captions, "url": ["https://x.org/u"] * 2}
        ).write_parquet(folder / "metadata" / f"metadata_{part}.parquet")
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", np.zeros((vectors, 4), np.float16))
    return folder


def test_an_embedding_folder_gives_its_metadata_with_the_row_of_each_vector(tmp_path: Path) -> None:
    pairs = read(embeddings(tmp_path))
    assert [pair.caption for pair in pairs] == ["a", "b", "c", "d"]  # _10 before _2, as text sorts
    assert [json.loads(pair.meta)["embedding_row"] for pair in pairs] == [0, 1, 2, 3]
    assert [pair.image for pair in pairs[:2]] == ["https://x.org/u", "https://x.org/2.jpg"]


def test_an_embedding_folder_whose_counts_differ_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"img_emb_10\.npy: 3 vectors where metadata_10\.parquet has 2 rows"):
        read(embeddings(tmp_path, vectors=3))


def test_a_list_of_rows_in_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('[{"image": "https://x.org/1.jpg", "caption": "a"}]')
    assert read(tmp_path / "rows.json")[0].caption == "a"


def test_json_lines_under_the_name_json_are_read(tmp_path: Path) -> None:
    assert len(read(write_rows(tmp_path / "rows.json", {"caption": "a"}, {"caption": "b"}))) == 2


def test_reading_twice_gives_the_same_rejections(tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "a.tar", {"0.jpg": b"no image", "0.txt": b"a", "1.txt": b"b"})
    assert read_all(tar) == read_all(tar)


def test_several_inputs_are_one_stream_with_a_source_each(tmp_path: Path) -> None:
    inputs = tuple(write_rows(tmp_path / f"{name}.jsonl", {"caption": "same"}) for name in "ab")
    assert [pair.source for pair in read(inputs)] == ["a", "b"]
    assert {pair.source for pair in read(inputs[:1], source="mine")} == {"mine"}


@pytest.mark.parametrize(
    ("boxes", "size", "unit", "expected"),
    [
        ([0.0, 0.1, 1.0, 0.9], (0, 0), "guess", (0.0, 0.1, 1.0, 0.9)),
        ([0.0, 0.1, 1.0005, 0.9], (0, 0), "guess", (0.0, 0.1, 1.0, 0.9)),
        ([50, 0, 100, 20], (200, 40), "guess", (0.25, 0.0, 0.5, 0.5)),
        ([-0.4, 0, 200.9, 40], (200, 40), "guess", (0.0, 0.0, 1.0, 1.0)),
        ([0, 0, 1, 1], (2, 4), "pixel", (0.0, 0.0, 0.5, 0.25)),
    ],
)
def test_boxes_in_fractions_or_pixels_become_fractions(
    tmp_path: Path, boxes: list[float], size: tuple[int, int], unit: Any, expected: tuple[float, ...]
) -> None:
    row = {"caption": "a", "width": size[0], "height": size[1], "instances": [{"category": "cat", "bbox": boxes}]}
    (pair,) = read(write_rows(tmp_path / "a.jsonl", row), box_unit=unit)
    assert pair.boxes == (Box("cat", *expected),)


def test_two_columns_that_could_be_the_caption_are_an_error_that_says_what_to_write(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", {"text": "a", "title": "b"})
    with pytest.raises(
        InputError, match=r"a\.jsonl:1: text and title could each be the caption.*--columns caption=text"
    ):
        read(file)
    assert read(file, columns={"caption": "title"})[0].meta == '{"text":"a"}'


def test_a_source_set_by_hand_goes_before_the_rows_own_which_is_kept_in_meta(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", {"caption": "a", "source": "cc12m"})
    assert [(pair.source, pair.meta) for pair in read(file)] == [("cc12m", "{}")]
    assert [(pair.source, pair.meta) for pair in read(file, source="mine")] == [("mine", '{"source":"cc12m"}')]


def test_image_bytes_inside_parquet_are_refused_not_lost(tmp_path: Path) -> None:
    pl.DataFrame({"caption": ["a"], "image": [{"bytes": b"123", "path": "a.jpg"}]}).write_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(InputError, match=r"row 1: bad_image: .*a\.parquet::image/row-00000001/a\.jpg: not an image"):
        read(tmp_path / "a.parquet")


def test_captions_of_images_inside_parquet_are_read_without_image_checks(tmp_path: Path) -> None:
    """Commands that work on texts alone take Hugging Face's tables as they are."""
    images = [{"bytes": picture(), "path": "a.jpg"}, {"bytes": picture(), "path": None}, None]
    table = {"caption": ["a", "b", "c"], "image": images, "thumb": [b"1", b"2", b"3"], "other": images}
    pl.DataFrame(table).write_parquet(tmp_path / "a.parquet")
    pairs = read(tmp_path / "a.parquet", verify_images="off")
    found = [f"{tmp_path}/a.parquet::image/{row}" for row in ("row-00000001/a.jpg", "row-00000002")]
    assert [(pair.caption, pair.image) for pair in pairs] == [("a", found[0]), ("b", found[1]), ("c", "")]
    assert [pair.key for pair in pairs] == [pair_key("a", *of) for of in (("a.jpg", "a"), ("", "b"), ("", "c"))]
    assert json.loads(pairs[0].meta) == {"other": "<bytes>", "thumb": "<bytes>"}
    pl.DataFrame({"caption": ["a"], "image": [b"1"]}).write_parquet(tmp_path / "b.parquet")
    (bare,) = read(tmp_path / "b.parquet", verify_images="off")
    assert (bare.image, bare.key) == (f"{tmp_path}/b.parquet::image/row-00000001", pair_key("b", "", "a"))


def test_batches_are_bounded_and_not_empty(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", *({"caption": str(number)} for number in range(5)))
    assert [batch.candidates for batch in read_pairs(ReadOptions(file, batch_size=2))] == [2, 2, 1]


def test_formats_without_pairs_are_recognised_and_refused(tmp_path: Path) -> None:
    kinds = {
        "llava": [{"id": "1", "conversations": []}],
        "sugarcrepe": {"0": {"filename": "1.jpg", "caption": "a", "negative_caption": "b"}},
        "coco-instances": {"images": [], "annotations": [{"image_id": 1, "bbox": [0, 0, 1, 1]}]},
    }
    for kind, data in kinds.items():
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(data))
        assert guess_format(path) == kind
        with pytest.raises(InputError, match="not a source of pairs"):
            read(path)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"captoin": "text"}},
        {"columns": {"caption": "a", "captions": "a"}},
        {"batch_size": 0},
        {"format": "xml"},
        {"on_error": "ignore"},
        {"instances": "b.json"},
    ],
)
def test_invalid_options_are_usage_errors_before_reading(tmp_path: Path, options: Any) -> None:
    file = write_rows(tmp_path / "a.jsonl", {"caption": "a"})
    with pytest.raises(UsageError):
        read_pairs(ReadOptions(file, **options))


def test_a_pattern_with_stars_is_an_error_that_shows_the_pattern_syntax(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not with \* or \?"):
        read_pairs(ReadOptions(str(tmp_path / "*.tar")))


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_gzipped_tables_are_read_by_their_names(tmp_path: Path, ending: str, mark: str) -> None:
    (tmp_path / f"a.{ending}.gz").write_bytes(gzip.compress(f"id{mark}caption\n1{mark}a dog\n".encode()))
    (batch,) = read_pairs(ReadOptions(str(tmp_path / f"a.{ending}.gz")))
    assert [(pair.source_id, pair.caption, pair.source) for pair in batch.pairs] == [("1", "a dog", "a")]
