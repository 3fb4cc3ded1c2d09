"""Broken input: one clear line under ``stop``, a rejected row with its reason under ``skip``, never a silent loss."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.readers.normaliser import VerifyImages
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import EXCERPT_LENGTH, REASONS, Reject
from tests.datasets.compression import compress_zstd

GOOD = b'{"caption": "good"}\n'


def jsonl(line: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "pool.jsonl").write_bytes(GOOD + line + b'\n{"caption": "also good"}\n')
        return folder / "pool.jsonl"

    return make


def csv(line: bytes, header: bytes = b"id,caption", good: bytes = b"good") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "pool.csv").write_bytes(header + b"\n1," + good + b"\n" + line + b"\n9," + good + b"\n")
        return folder / "pool.csv"

    return make


def parquet(name: str, value: Any, other: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        columns: dict[str, Any] = {"caption": ["good", "bad", "also good"], "width": [1.0, 1.0, 1.0]}
        columns[name] = [other, value, other]
        pl.DataFrame({"id": [1, 2, 3], **columns}).write_parquet(folder / "pool.parquet")
        return folder / "pool.parquet"

    return make


def picture(kind: str = "JPEG", size: tuple[int, int] = (64, 64)) -> bytes:
    stream = io.BytesIO()
    noise = np.random.Generator(np.random.PCG64(0)).integers(0, 255, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).save(stream, kind)
    return stream.getvalue()


def images(**files: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for name in ("a", "z"):
            (folder / f"{name}.jpg").write_bytes(picture())
            (folder / f"{name}.txt").write_text(f"good {name}")
        for name, data in files.items():
            (folder / name.replace("_", ".")).write_bytes(data)
        return folder

    return make


def tar(name: str, data: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with tarfile.open(folder / "pool.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for member, content, type_ in (
                ("0.txt", b"good", tarfile.REGTYPE),
                (name, data, kind),
                ("9.txt", b"ok", b"0"),
            ):
                info = tarfile.TarInfo(member)
                info.type, info.size, info.linkname = type_, len(content), "/etc/passwd"
                archive.addfile(info, io.BytesIO(content))
        return folder / "pool.tar"

    return make


def cut_tar(blocks: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = tar("5.txt", b"x" * 2000)(folder)
        path.write_bytes(path.read_bytes()[: blocks * 512])
        return path

    return make


def damaged_tar(folder: Path) -> Path:
    path = tar("5.txt")(folder)
    data = bytearray(path.read_bytes())
    data[2 * 512 : 2 * 512 + 200] = b"\x99" * 200
    path.write_bytes(data)
    return path


def zeroed_tar(folder: Path) -> Path:
    """A header of zeros before further members: an end marker in the middle."""
    path = damaged_tar(folder)
    data = bytearray(path.read_bytes())
    data[2 * 512 : 3 * 512] = bytes(512)
    path.write_bytes(data)
    return path


def joined_tars(folder: Path) -> Path:
    path = tar("5.txt")(folder)
    path.write_bytes(path.read_bytes() * 2)
    return path


def cut_header(folder: Path) -> Path:
    path = tar("5.txt")(folder)
    path.write_bytes(path.read_bytes()[: 2 * 512 + 100])
    return path


def cut_first_header(length: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        whole = tar("5.txt", b"also good")(folder)
        shards = folder / "shards"
        shards.mkdir()
        (shards / "0.tar").write_bytes(whole.read_bytes()[:length])
        whole.rename(shards / "1.tar")
        return shards

    return make


def tables(cut: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        pool = folder / "pool"
        pool.mkdir()
        for name in "012":
            texts = [f"{'good' if name != '1' else 'maybe'} {name} {row}" for row in range(200)]
            pl.DataFrame({"caption": texts}).write_parquet(pool / f"{name}.parquet", row_group_size=50)
        torn = pool / "1.parquet"
        torn.write_bytes(cut(torn.read_bytes()))
        return pool

    return make


def missing_image(folder: Path) -> Path:
    (folder / "a.jpg").write_bytes(picture())
    rows = [{"image": name, "caption": name} for name in ("a.jpg", "b.jpg", "./a.jpg")]
    (folder / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "pool.jsonl"


def coco(annotation: dict[str, Any], image: dict[str, Any] | None = None) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        found = [{"id": 1}, *([image] if image else [])]
        good = {"id": 1, "image_id": 1, "caption": "good"}
        (folder / "c.json").write_text(json.dumps({"images": found, "annotations": [good, annotation]}))
        return folder / "c.json"

    return make


def tsv(folder: Path) -> Path:
    """A table that quotes nothing, in which a caption begins with a quote and a later one ends with one."""
    rows = ["1\tgood", '2\t"Hello to the cat.', "3\ta bird", '4\tA man says goodbye"', "5\talso good"]
    (folder / "pool.tsv").write_text("id\tcaption\n" + "".join(row + "\n" for row in rows))
    return folder / "pool.tsv"


FLAWS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "broken JSON": (jsonl(b'{"caption": "a'), "broken_json", "pool.jsonl:2"),
    "a line that is no object": (jsonl(b"[1]"), "wrong_type", "pool.jsonl:2"),
    "too deep JSON": (
        jsonl(b'{"caption": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
        "broken_json",
        "pool.jsonl:2",
    ),
    "deep meta": (jsonl(b'{"caption": "a", "x": ' + b"[" * 1000 + b"]" * 1000 + b"}"), "wrong_type", "pool.jsonl:2"),
    "bytes that are no UTF-8": (jsonl(b'{"caption": "caf\xe9"}'), "not_utf8", "pool.jsonl:2"),
    "half a surrogate pair": (jsonl(rb'{"caption": "a \ud800"}'), "not_unicode", "pool.jsonl:2"),
    "no caption in a row": (jsonl(b'{"id": 3}'), "missing_column", "pool.jsonl:2"),
    "an empty caption": (jsonl(b'{"caption": " \\n"}'), "empty_caption", "pool.jsonl:2"),
    "a caption with the mark of an image": (jsonl(b'{"caption": "<image> a dog"}'), "image_token", "pool.jsonl:2"),
    "a caption with a NUL": (jsonl(rb'{"caption": "a \u0000dog"}'), "control_character", "pool.jsonl:2"),
    "a caption with a delete": (jsonl(b'{"caption": "a \x7fdog"}'), "control_character", "pool.jsonl:2"),
    "no caption in a list": (jsonl(b'{"captions": []}'), "empty_caption", "pool.jsonl:2"),
    "a null caption": (jsonl(b'{"caption": null}'), "empty_caption", "pool.jsonl:2"),
    "a number as caption": (jsonl(b'{"caption": 5}'), "wrong_type", "pool.jsonl:2"),
    "a list of lists": (jsonl(b'{"captions": [["a"]]}'), "wrong_type", "pool.jsonl:2"),
    "a text as captions": (jsonl(b'{"captions": {"a": 1}}'), "wrong_type", "pool.jsonl:2"),
    "a huge caption": (jsonl(b'{"caption": "' + b"a" * 200_000 + b'"}'), "field_too_long", "pool.jsonl:2"),
    "a repeated row": (jsonl(GOOD.strip()), "duplicate_key", "pool.jsonl:2"),
    "an id of more than 64 bits": (
        jsonl(b'{"id": 123456789012345678901234, "caption": "a"}'),
        "wrong_type",
        "pool.jsonl:2",
    ),
    "a boolean id": (jsonl(b'{"id": true, "caption": "a"}'), "wrong_type", "pool.jsonl:2"),
    "an image in base64": (
        jsonl(b'{"image": "data:image/jpeg;base64,/9j/4AA", "caption": "a"}'),
        "image_in_table",
        "pool.jsonl:2",
    ),
    "a caption that is an object": (jsonl(b'{"captions": [{"raw": "a"}]}'), "wrong_type", "pool.jsonl:2"),
    "a caption that is an object in JSON": (
        jsonl(rb'{"text": "{\"question\": \"q\", \"chosen\": \"a\"}"}'),
        "wrong_type",
        "pool.jsonl:2",
    ),
    "a line with the comma of a list": (jsonl(b'{"caption": "a"},'), "broken_json", "pool.jsonl:2"),
    "an image that is an object": (jsonl(b'{"image": {"a": 3}, "caption": "a"}'), "wrong_type", "pool.jsonl:2"),
    "an image name with a zero byte": (
        jsonl(rb'{"image": "a\u0000.jpg", "caption": "a"}'),
        "missing_image",
        "pool.jsonl:2",
    ),
    "an endless image name": (
        jsonl(b'{"image": "' + b"a" * 9000 + b'.jpg", "caption": "a"}'),
        "missing_image",
        "pool.jsonl:2",
    ),
    "an image that is a folder": (jsonl(b'{"image": "/", "caption": "a"}'), "missing_image", "pool.jsonl:2"),
    "a missing image": (missing_image, "missing_image", "pool.jsonl:2"),
    "a member of an invalid tar": (
        jsonl(b'{"image": "/x.tar::a.jpg", "caption": "a"}'),
        "missing_image",
        "pool.jsonl:2",
    ),
    "a ragged CSV row": (csv(b"2,b,c"), "ragged_row", "pool.csv:3"),
    "a CSV quote in the wrong place": (csv(b'2,"b" c'), "broken_csv", "pool.csv:3"),
    "a CSV row that is no UTF-8": (csv(b"2,caf\xe9"), "not_utf8", "pool.csv:3"),
    "a huge CSV field": (csv(b"2," + b"a" * 200_000), "field_too_long", "pool.csv:3"),
    "rows of a TSV between quotes": (tsv, "broken_csv", "pool.tsv:3"),
    "an open CSV quote": (csv(b'2,"bad'), "broken_csv", "pool.csv:3"),
    "an empty CSV caption": (csv(b"2,"), "empty_caption", "pool.csv:3"),
    "CSV captions that are no list": (
        csv(b"2,[words", b"id,captions", b'"[""good""]"'),
        "broken_json",
        "pool.csv:3",
    ),
    "a null Parquet caption": (parquet("caption", None, "x"), "empty_caption", "pool.parquet:row 2"),
    "a huge number in JSON": (jsonl(b'{"caption": "a", "x": 1e400}'), "not_finite", "pool.jsonl:2"),
    "a whole number of 400 digits": (jsonl(b'{"x": 1' + b"0" * 400 + b"}"), "not_finite", "pool.jsonl:2"),
    "an image that is no image": (images(b_jpg=b"not an image", b_txt=b"bad"), "bad_image", "b.jpg"),
    "an image that breaks off": (images(b_jpg=picture()[:-900], b_txt=b"bad"), "bad_image", "b.jpg"),
    "a PNG that breaks off": (images(b_png=picture("PNG")[:-900], b_txt=b"bad"), "bad_image", "b.png"),
    "an empty image": (images(b_jpg=b"", b_txt=b"bad"), "bad_image", "b.jpg"),
    "an image without a caption": (images(b_jpg=picture()), "missing_caption", "b.jpg"),
    "a caption without an image": (images(b_txt=b"bad"), "missing_image", "b"),
    "a caption file that is no UTF-8": (images(b_jpg=picture(), b_txt=b"caf\xe9"), "not_utf8", "b.jpg"),
    "an empty caption file": (images(b_jpg=picture(), b_txt=b"\n"), "empty_caption", "b.jpg"),
    "a name that climbs out of the tar": (tar("../5.txt"), "unsafe_member_path", "pool.tar::../5.txt"),
    "an absolute name in a tar": (tar("/5.txt"), "unsafe_member_path", "pool.tar::/5.txt"),
    "a link in a tar": (tar("5.txt", b"", tarfile.SYMTYPE), "not_a_file", "pool.tar::5.txt"),
    "a hard link in a tar": (tar("5.txt", b"", tarfile.LNKTYPE), "not_a_file", "pool.tar::5.txt"),
    "a device in a tar": (tar("5.txt", b"", tarfile.CHRTYPE), "not_a_file", "pool.tar::5.txt"),
    "a name in a tar that is no UTF-8": (tar("5\udce9.txt"), "not_utf8", "pool.tar::5\\udce9.txt"),
    "a sample in a tar without a caption": (tar("5.jpg", picture()), "missing_caption", "pool.tar::5"),
    "an image in an invalid tar": (tar("0.jpg", b"no image"), "bad_image", "pool.tar::0"),
    "a second caption in a sample": (tar("0.txt"), "duplicate_member", "pool.tar::0.txt"),
    "a tar cut inside a member": (cut_tar(4), "truncated_tar", "pool.tar::5.txt"),
    "a tar cut after a member": (cut_tar(2), "truncated_tar", "pool.tar"),
    "a tar cut inside a header": (cut_header, "truncated_tar", "pool.tar"),
    "a shard cut inside its first header": (cut_first_header(100), "truncated_tar", "shards/0.tar"),
    "an empty shard": (cut_first_header(0), "truncated_tar", "shards/0.tar"),
    "a table whose end is missing": (tables(lambda data: data[:-50]), "broken_parquet", "pool/1.parquet"),
    "an empty table": (tables(lambda _: b""), "broken_parquet", "pool/1.parquet"),
    "a table of another kind": (tables(lambda _: b"id,caption\n1,a dog\n"), "broken_parquet", "pool/1.parquet"),
    "a damaged tar header": (damaged_tar, "broken_tar", "pool.tar"),
    "zeros in the middle of a tar": (zeroed_tar, "broken_tar", "pool.tar"),
    "a COCO caption of an unknown image": (
        coco({"id": 5, "image_id": 3, "caption": "bad"}),
        "unknown_image",
        "c.json:annotation 5",
    ),
    "a COCO annotation without caption": (coco({"id": 5, "image_id": 1}), "empty_caption", "c.json:annotation 5"),
    "a COCO image without captions": (
        coco({"id": 2, "image_id": 1, "caption": "fine"}, {"id": 4}),
        "empty_caption",
        "c.json:image 4",
    ),
    "a repeated COCO image": (
        coco({"id": 2, "image_id": 1, "caption": "fine"}, {"id": 1}),
        "duplicate_key",
        "c.json:image 1",
    ),
    "an empty COCO caption": (
        coco({"id": 2, "image_id": 1, "caption": ""}),
        "empty_caption",
        "c.json:image 1, caption 2",
    ),
}


def box(*corners: Any, **fields: Any) -> dict[str, Any]:
    good = {"category": "dog", "bbox": [0, 0, 0.5, 0.5]}
    return {"instances": [good, {"category": "cat", "bbox": list(corners)}], **fields}


BAD_BOXES: dict[str, dict[str, Any]] = {
    "an inverted box": box(0.5, 0, 0.4, 1),
    "a box outside": box(-0.5, 0, 0.4, 1),
    "a box of three numbers": box(0, 0, 1),
    "a box of words": box("0", 0, 1, 1),
    "a box without a label": {"instances": [{"bbox": [0, 0, 1, 1]}]},
    "pixels without a size": box(0, 0, 100, 100),
    "neither fraction nor pixel": box(0, 0, 1.2, 1, width=640, height=480),
    "a box beyond the image": box(0, 0, 700, 400, width=640, height=480),
    "a number of boxes": {"instances": 3},
    "boxes that are no JSON": {"instances": "none"},
}


@pytest.mark.parametrize("flaw", BAD_BOXES)
def test_a_row_with_a_bad_box_is_read_without_boxes(tmp_path: Path, flaw: str) -> None:
    """The other boxes would seem to be all there are. Images were rejected with all their captions."""
    row = {"captions": ["a dog", "a cat"], "crowd": [{"label": "bird"}], "x": 1, **BAD_BOXES[flaw]}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row))
    for explode, captions in ((False, ["a dog"]), (True, ["a dog", "a cat"])):
        pairs, (reject,) = read_all(tmp_path / "pool.jsonl", explode=explode)
        assert [pair.caption for pair in pairs] == captions
        assert [(pair.boxes, json.loads(pair.meta)) for pair in pairs] == [((), {"x": 1})] * len(pairs)
        assert (reject.reason, reject.place, reject.part) == ("bad_box", f"{tmp_path}/pool.jsonl:1, boxes", "boxes")
    with pytest.raises(
        InputError, match=r"pool\.jsonl:1, boxes: bad_box: .*To read such rows without boxes: --on-error skip"
    ):
        list(read_pairs(ReadOptions(str(tmp_path / "pool.jsonl"))))


def test_boxes_in_lists_of_coordinates_are_refused_with_the_reason(tmp_path: Path) -> None:
    row = {"caption": "a dog", "width": 9, "height": 9, "objects": {"bbox": [[1, 1, 2, 2]], "category": ["dog"]}}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row))
    with pytest.raises(InputError, match=r"bad_box: .* does not say whether bbox is corners or x, y, width, height\."):
        list(read_pairs(ReadOptions(str(tmp_path / "pool.jsonl"))))


BAD_FIELDS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "NaN in JSON": (jsonl(b'{"caption": "bad", "width": NaN}'), "not_finite", "pool.jsonl:2, width"),
    "a word": (jsonl(b'{"width": "n/a", "caption": "bad"}'), "wrong_type", "pool.jsonl:2, width"),
    "below zero": (jsonl(b'{"height": -1, "caption": "bad"}'), "wrong_type", "pool.jsonl:2, height"),
    "above 32 bits": (jsonl(b'{"width": 1e12, "caption": "bad"}'), "wrong_type", "pool.jsonl:2, width"),
    "a licence that is a list": (jsonl(b'{"license": [4], "caption": "bad"}'), "wrong_type", "pool.jsonl:2, license"),
    "NaN in Parquet": (parquet("width", float("nan"), 1.0), "not_finite", "pool.parquet:row 2, width"),
}


@pytest.mark.parametrize("flaw", BAD_FIELDS)
def test_an_optional_field_that_is_not_usable_does_not_cost_its_row(tmp_path: Path, flaw: str) -> None:
    """The whole row was rejected."""
    make, reason, place = BAD_FIELDS[flaw]
    path = make(tmp_path)
    pairs, (reject,) = read_all(path)
    assert [pair.caption for pair in pairs] == ["good", "bad", "also good"]
    assert (pairs[1].width, pairs[1].height, pairs[1].license) == (0, 0, "")
    assert (reject.reason, reject.part) == (reason, "field")
    assert reject.place.endswith(place)
    with pytest.raises(InputError, match=rf"{place}: {reason}: .*read such rows without the field: --on-error skip"):
        list(read_pairs(ReadOptions(str(path))))


def test_a_source_may_be_a_number_and_an_image_an_object_with_its_path(tmp_path: Path) -> None:
    """Both rows were rejected; `datasets` writes the second one as JSON."""
    rows = [{"caption": "a dog", "source": 7}, {"caption": "a cat", "image": {"bytes": None, "path": "cat.jpg"}}]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "cat.jpg").write_bytes(picture())
    pairs, rejects = read_all(tmp_path / "pool.jsonl")
    assert rejects == []
    assert [(pair.source, pair.image) for pair in pairs] == [("7", ""), ("pool", str(tmp_path / "cat.jpg"))]


@pytest.mark.parametrize("verify", ["header", "off"])
def test_paths_of_windows_and_file_urls_are_paths(tmp_path: Path, verify: VerifyImages) -> None:
    """The images were missing, or URLs that nothing fetches."""
    (tmp_path / "my img").mkdir()
    names = ["my img\\cat.jpg", f"file://{tmp_path}/my%20img/cat.jpg", "D:\\data\\my img\\cat.jpg", "a\\b.jpg"]
    (tmp_path / "my img" / "cat.jpg").write_bytes(picture())
    (tmp_path / "a\\b.jpg").write_bytes(picture())  # a name that exists is one
    rows = [{"caption": f"a cat {number}", "image": name} for number, name in enumerate(names)]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs, rejects = read_all(tmp_path / "pool.jsonl", image_root=str(tmp_path), verify_images=verify)
    assert rejects == []
    cat = str(tmp_path / "my img" / "cat.jpg")
    assert [pair.image for pair in pairs] == [cat, cat, cat, str(tmp_path / "a\\b.jpg")]


@pytest.mark.parametrize("image", ["https://example.org/a\\b.jpg", "s3://bucket/a\\b.jpg"])
def test_a_url_with_a_backslash_is_no_path_of_windows(tmp_path: Path, image: str) -> None:
    """It became a local path, `https:/example.org/a/b.jpg`."""
    (tmp_path / "pool.jsonl").write_text(json.dumps({"caption": "a cat", "image": image}))
    pairs, _ = read_all(tmp_path / "pool.jsonl", verify_images="off")
    assert [pair.image for pair in pairs] == [image]


def test_the_message_about_a_caption_that_is_an_object_names_its_parts(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text('{"captions": [{"raw": "a dog", "tokens": ["a", "dog"]}]}')
    with pytest.raises(InputError, match=r"an object with raw, tokens, not a text; .*--columns caption=captions\.raw"):
        list(read_pairs(ReadOptions(str(tmp_path / "pool.jsonl"))))
    pairs, _ = read_all(tmp_path / "pool.jsonl", columns={"captions": "captions.raw"})
    assert [pair.caption for pair in pairs] == ["a dog"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "pool.jsonl",
            b'{\n "caption": "a dog"\n}\n',
            r"pool\.jsonl:1: an object over several lines.* jq -c \. pool\.jsonl",
        ),
        (
            "pool.csv",
            b"id,caption\r1,a dog\r",
            r"pool\.csv:1: .*\(a CR without LF, outside of quotes\).* tr '\\r' '\\n'",
        ),
        ("pool.arrow", b"ARROW1\0\0", r"polars\.read_ipc\('[^']*pool\.arrow'\)\.write_parquet"),
        ("pool.feather", b"ARROW1\0\0", r"polars\.read_ipc\('[^']*pool\.feather'\)\.write_parquet"),
        ("pool.arrow", b"\xff\xff\xff\xff", r"Dataset\.from_file\('[^']*pool\.arrow'\)\.to_parquet"),
    ],
)
def test_files_of_another_form_are_named_with_a_command_that_converts_them(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    """The messages were those of the parsers, and the command for Arrow files read streams only."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told):
        list(read_pairs(ReadOptions(str(tmp_path / name))))


def test_a_row_without_a_box_needs_no_size_of_its_image(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text('{"caption": "a dog", "boxes": []}')
    ((pair,), rejects) = read_all(tmp_path / "pool.jsonl", box_unit="pixel")
    assert (pair.boxes, rejects) == ((), [])


def test_an_open_quote_is_reported_at_the_line_that_opens_it(tmp_path: Path) -> None:
    """The error named the last line of the file."""
    path = csv(b'2,"bad\n3,bad\n\n4,bad')(tmp_path)
    _, (flaw,) = read_all(path)
    assert flaw.place == f"{path}:3"
    assert flaw.detail.endswith("; a quote is open from this row to line 7")
    assert flaw.excerpt == '2,"bad\n'
    path.write_text('id,caption\n1,"two\nlines"\n1,"two\nlines"\n')
    assert [one.place for one in read_all(path)[1]] == [f"{path}:4"]


def test_whitespace_and_invisible_characters_stay_in_captions(tmp_path: Path) -> None:
    captions = ["a\tdog\r\non a\x0bmat", "\u202bכלב\u202c", "a\u200bdog\x85"]
    rows = "".join(json.dumps({"caption": caption}) + "\n" for caption in captions)
    (tmp_path / "pool.jsonl").write_text(rows)
    assert [pair.caption for pair in read_all(tmp_path / "pool.jsonl")[0]] == captions


def test_the_path_of_a_broken_image_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no image")
    (tmp_path / "a.txt").write_text("a dog")
    with pytest.raises(InputError) as caught:
        list(read_pairs(ReadOptions(str(tmp_path))))
    assert str(caught.value).count("a.jpg") == 1


def test_spaces_around_column_names_are_ignored(tmp_path: Path) -> None:
    """A header `id, caption` was one without a caption, and the list of its columns looked as if it had one."""
    path = tmp_path / "pool.csv"
    path.write_text("id, caption ,width\n7, a dog,8\n")
    (pair,) = (pair for batch in read_pairs(ReadOptions(str(path), verify_images="off")) for pair in batch.pairs)
    assert (pair.source_id, pair.caption, pair.width) == ("7", " a dog", 8)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_column_with_spaces_around_its_name_can_be_mapped(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pool.{ending}"
    frame = pl.DataFrame({"number ": ["7"], " caption": [" a dog"], " words ": ["a cat"]})
    frame.write_parquet(path) if ending == "parquet" else frame.write_ndjson(path)

    def read(**columns: str) -> Pair:
        (pair,) = (p for b in read_pairs(ReadOptions(str(path), columns=columns, verify_images="off")) for p in b.pairs)
        return pair

    assert (read().caption, json.loads(read().meta)) == (" a dog", {"number ": "7", " words ": "a cat"})
    named = read(key="number", caption="words")
    assert (named.source_id, named.caption, json.loads(named.meta)) == ("7", "a cat", {" caption": " a dog"})
    assert read(caption=" words ").caption == "a cat"  # the name in the file, from a config


def test_a_name_without_spaces_has_precedence(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    pl.DataFrame({" caption": ["a cat"], "caption": ["a dog"]}).write_parquet(path)
    for columns, said in (({}, "a dog"), ({"caption": "caption"}, "a dog"), ({"caption": " caption"}, "a cat")):
        assert [pair.caption for pair in read_all(path, columns=columns)[0]] == [said]


def test_a_quoted_field_of_a_tsv_may_hold_line_ends_and_tabs_that_make_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "pool.tsv"
    path.write_text('id\tcaption\turl\n1\t"a dog\non a bed"\tx\n2\t"a\tcat"\ty\n')
    pairs = [pair for batch in read_pairs(ReadOptions(str(path), verify_images="off")) for pair in batch.pairs]
    assert [pair.caption for pair in pairs] == ["a dog\non a bed", "a\tcat"]


@pytest.mark.parametrize("flaw", FLAWS)
def test_under_stop_a_flaw_is_one_line_with_place_and_fix(tmp_path: Path, flaw: str) -> None:
    make, reason, place = FLAWS[flaw]
    with pytest.raises(InputError) as caught:
        list(read_pairs(ReadOptions(str(make(tmp_path)))))
    assert caught.value.where == str(tmp_path / place)
    assert caught.value.what.startswith(f"{reason}: ")
    assert caught.value.fix.startswith(REASONS[reason])
    assert "\n" not in str(caught.value)


def test_a_damaged_first_table_does_not_determine_the_columns(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    (folder / "0.parquet").write_bytes(b"PAR1")
    pl.DataFrame({"words": ["a dog"], "number": [7]}).write_parquet(folder / "1.parquet")
    pairs, rejects = read_all(folder, columns={"caption": "words", "key": "number"})
    assert [(pair.caption, pair.source_id) for pair in pairs] == [("a dog", "7")]
    assert [reject.place for reject in rejects] == [f"{folder}/0.parquet"]
    with pytest.raises(InputError, match=r"0\.parquet: no valid row \(broken_parquet 1\)"):
        read_all(folder / "0.parquet", columns={"caption": "words"})


def test_a_table_damaged_in_its_middle_gives_the_rows_before_and_their_number(tmp_path: Path) -> None:
    from pyarrow import parquet as files

    path = tmp_path / "a.parquet"
    pl.DataFrame({"caption": [f"good {row}" for row in range(10_000)]}).write_parquet(path, row_group_size=5000)
    second = files.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    start = second.dictionary_page_offset or second.data_page_offset
    data[start : start + second.total_compressed_size] = b"\x99" * second.total_compressed_size
    path.write_bytes(data)
    pairs, (flaw,) = read_all(path)
    assert (flaw.reason, flaw.place) == ("broken_parquet", f"{path}:row {len(pairs) + 1}")
    assert flaw.detail.endswith(f"; {len(pairs):,} of 10,000 rows were read")
    assert 0 < len(pairs) <= 5000


def test_a_tar_appended_to_another_is_rejected(tmp_path: Path) -> None:
    pairs, rejects = read_all(joined_tars(tmp_path))
    assert [reject.reason for reject in rejects] == ["broken_tar"]
    assert "two tars joined" in rejects[0].detail
    assert pairs


@pytest.mark.parametrize("flaw", FLAWS)
def test_under_skip_a_flaw_is_one_rejected_row_and_the_others_are_kept(tmp_path: Path, flaw: str) -> None:
    make, reason, place = FLAWS[flaw]
    pairs, rejects = read_all(make(tmp_path))
    assert [(reject.reason, reject.place) for reject in rejects] == [(reason, str(tmp_path / place))]
    assert pairs
    assert "bad" not in {pair.caption for pair in pairs}
    PAIRS.write(pairs, tmp_path / "out" / "pairs.parquet")
    REJECTS.write(rejects, tmp_path / "out" / "rejected.parquet")
    assert REJECTS.read(tmp_path / "out" / "rejected.parquet") == rejects
    assert len(rejects[0].excerpt) <= EXCERPT_LENGTH


def read_all(path: Path, **options: Any) -> tuple[list[Pair], list[Reject]]:
    batches = list(read_pairs(ReadOptions(str(path), on_error="skip", **options)))
    return [pair for b in batches for pair in b.pairs], [reject for b in batches for reject in b.rejects]


def write(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def torn_parquet(folder: Path) -> Path:
    path = parquet("caption", "b", "a")(folder)
    path.write_bytes(path.read_bytes()[:-50])
    return path


WHOLE_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "an empty JSON Lines file": (write("a.jsonl", b""), "there are no rows"),
    "an empty CSV": (write("a.csv", b""), "the file is empty"),
    "a CSV of a header": (write("a.csv", b"caption\n"), "there are no rows"),
    "a CSV with a column twice": (write("a.csv", b"caption,caption\na,b\n"), "columns named twice: caption"),
    "a CSV whose header is no UTF-8": (write("a.csv", b"caf\xe9,caption\na,b\n"), "header is not UTF-8"),
    "a CSV without a caption": (write("a.csv", b"id,words\n1,b\n"), "no column 'caption'; there are: id, words"),
    "JSON Lines without any caption": (write("a.jsonl", b'{"a": 1}\n{"a": 2}\n'), "no column 'caption'"),
    "UTF-16 that breaks off": (write("a.jsonl", '{"caption": "a"}'.encode("utf-16")[:-1]), "cannot be read .*utf-16"),
    "gzip that breaks off": (write("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00"), "cannot be read"),
    "a zip under the name .jsonl": (write("a.jsonl", b"PK\x03\x04" + b"\0" * 50), "a zip file. Unpack it first"),
    "7z under the name .csv": (write("a.csv", b"7z\xbc\xaf\x27\x1c" + b"\0" * 50), "a 7z file. Unpack it first"),
    "zstd that is damaged": (write("a.csv.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 50), "cannot be read"),
    "zstd that breaks off": (
        write("a.jsonl.zst", compress_zstd(b'{"caption": "a dog"}\n' * 999)[:-9]),
        "cannot be read",
    ),
    "bzip2 that breaks off": (write("a.jsonl.bz2", bz2.compress(b'{"caption": "a"}\n')[:-9]), "cannot be read"),
    "xz that is damaged": (
        write("a.jsonl.xz", lzma.compress(b'{"caption": "a"}\n')[:12] + b"\0" * 50),
        "cannot be read",
    ),
    "gzipped Parquet": (write("a.parquet.gz", gzip.compress(b"PAR1")), "a compressed file. Unpack it first"),
    "Parquet that breaks off": (torn_parquet, "not a whole Parquet file"),
    "an empty Parquet file": (write("a.parquet", b""), "not a whole Parquet file"),
    "no tar": (write("a.tar", b"x" * 2000), "not an uncompressed tar"),
    "a gzipped tar": (write("a.tar", b"\x1f\x8b\x08" + b"\0" * 2000), "not an uncompressed tar"),
    "broken COCO": (write("a.json", b'{"images": ['), "broken_json"),
    "a JSON list as JSON Lines": (
        write("a.jsonl", b'[\n{"caption": "a"},\n]'),
        "a JSON list, .* Name it .json, or give",
    ),
    "a JSON list on one line": (write("a.jsonl", b'\n[{"caption": "a"}]'), "a JSON list, expected one object per line"),
    "a packed JSON list": (write("a.jsonl.gz", gzip.compress(b'[{"caption": "a"}]')), "Name it .json"),
    "lines of text": (
        write("a.txt", b"a dog\na cat\n"),
        r"lines of text .* header line \(caption\) and rename the file to .tsv",
    ),
    "lines of text with a comma": (write("a.txt", b"a red dog, text\n"), "lines of text without column names"),
    "numbers and captions": (write("a.txt", b"1\ta dog\n"), r"header line \(image, a tab, and caption\) and rename"),
    "a pointer of Git LFS": (write("a.parquet", b"version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"),
    "a web page": (write("a.jsonl", b"\n<!DOCTYPE html><title>404</title>"), "a web page, not data"),
    "a compressed file": (write("a.txt.zst", b"x"), "compressed file. Unpack it first"),
    "commas in a TSV": (
        write("a.tsv", b"image,caption\nb,c\n"),
        r"a\.tsv:1: the header is one column, 'image,caption'. Separate",
    ),
    "three columns without a header": (
        write("a.csv", b"7,0.jpg,a dog\n"),
        r"a\.csv:1: the first line is a row, not a header: 0\.jpg is an image\. Add a header line",
    ),
    "numbers without a header": (
        write("a.tsv", b"7\t2393834300\t000102030405060708090a0b0c0d0e0f\n"),
        r"a\.tsv:1: the first line is a row, not a header: it has numbers only",
    ),
    "JSON with two lists of rows": (
        write("a.json", b'{"cats": [{"caption": "a"}], "dogs": [{"caption": "b"}]}'),
        r"several lists of rows \(cats, dogs\)\. Extract one of them: jq \.cats a\.json > rows\.json",
    ),
    "conversations": (
        write("a.json", b'[{"conversations": [{"from": "human", "value": "b"}]}]'),
        "not a source of pairs: LLaVA conversations",
    ),
    "an Arrow file": (
        write("a.arrow", b"x"),
        r"an Arrow file\. Convert it: python -c .*\.to_parquet\('rows\.parquet'\)",
    ),
    "another ending": (write("a.xml", b"<a/>"), "unknown file ending"),
    "an empty folder": (lambda folder: folder, "no tars, Parquet or"),
    "nothing": (lambda folder: folder / "a.jsonl", "no such file"),
}


@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize("flaw", WHOLE_FILES)
def test_a_flaw_of_the_whole_file_is_an_error_under_both_policies(tmp_path: Path, flaw: str, policy: Any) -> None:
    make, message = WHOLE_FILES[flaw]
    with pytest.raises(InputError, match=message) as caught:
        list(read_pairs(ReadOptions(str(make(tmp_path)), on_error=policy)))
    assert str(tmp_path) in caught.value.where


@pytest.mark.parametrize("flaw", [*FLAWS, *WHOLE_FILES])
def test_a_flaw_under_a_config_names_no_option_and_survives_pickling(tmp_path: Path, flaw: str) -> None:
    make = (FLAWS.get(flaw) or WHOLE_FILES[flaw])[0]
    with pytest.raises(InputError) as caught:
        list(read_pairs(ReadOptions(str(make(tmp_path)), option_names=OptionNames("under input"))))
    assert not re.search(r"(^|\s)--[a-z]", str(caught.value))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.fix) == (InputError, str(caught.value), caught.value.fix)


def test_a_folder_of_other_files_is_refused_with_their_kinds_and_those_that_are_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(it is empty\).*Images that are read: JPEG"):
        read_all(tmp_path)
    for name in ("a.tga", "b.xcf", "c.jp2", "d.raw", "e.tga", ".hidden"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"in the folder \(\.tga 2, \.jp2 1, \.raw 1\)"):
        read_all(tmp_path)


def test_a_folder_where_a_file_is_expected_and_the_reverse_are_errors(tmp_path: Path) -> None:
    path = jsonl(b"")(tmp_path)
    with pytest.raises(InputError, match="a file, where images is a folder"):
        read_pairs(ReadOptions(str(path), format="images"))
    with pytest.raises(InputError, match="a folder without csv files"):
        read_pairs(ReadOptions(str(tmp_path), format="csv"))


def test_a_mapped_column_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    path = jsonl(b"")(tmp_path)
    with pytest.raises(InputError, match="no row has a column lisense"):
        read_all(path, columns={"license": "lisense"})
    with pytest.raises(InputError, match="no row has a column lisense"):
        read_all(csv(b"2,b")(tmp_path), columns={"license": "lisense"})


def test_a_parquet_text_that_is_no_utf8_costs_its_row_only(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet as files

    raw = pa.array([b"good", b"caf\xe9", b"also good"], pa.binary())
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:])
    files.write_table(pa.table({"caption": text}), tmp_path / "a.parquet")
    pairs, rejects = read_all(tmp_path / "a.parquet")
    assert [pair.caption for pair in pairs] == ["good", "also good"]
    assert [(reject.reason, reject.place) for reject in rejects] == [("not_utf8", f"{tmp_path}/a.parquet:row 2")]


def test_a_bad_caption_is_rejected_alone_and_the_row_is_kept(tmp_path: Path) -> None:
    pairs, rejects = read_all(jsonl(b'{"captions": ["a", "", "b", 5]}')(tmp_path))
    assert (pairs[1].caption, pairs[1].captions) == ("a", ("b",))
    assert [(reject.reason, reject.place) for reject in rejects] == [
        ("empty_caption", f"{tmp_path}/pool.jsonl:2, caption 2"),
        ("wrong_type", f"{tmp_path}/pool.jsonl:2, caption 4"),
    ]


def test_a_python_list_of_captions_is_read_as_a_literal_and_never_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "coco_retrieval.csv"
    path.write_text('captions,filepath\n"[\'a dog\', ""a dog\'s cat""]",2.jpg\n[str(5)],3.jpg\n')
    (pair,), (flaw,) = read_all(path, verify_images="off")
    assert (pair.caption, pair.captions) == ("a dog", ("a dog's cat",))
    assert flaw.reason == "broken_json"


def test_a_list_that_is_no_json_names_its_column_and_what_one_caption_is_called(tmp_path: Path) -> None:
    path = csv(b"2,\"['a', b]\"", b"id,texts", b"good")(tmp_path)
    _, (flaw,) = read_all(path, columns={"captions": "texts"})
    assert flaw.detail.startswith("texts begins with [ and is no JSON list (")
    assert flaw.detail.endswith("--columns caption=texts")


def test_an_input_without_valid_rows_is_an_error_with_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'broken\n{"caption": ""}\n{"caption": " "}\n')
    with pytest.raises(InputError, match=r"a\.jsonl:1: no valid row \(empty_caption 2, broken_json 1\)"):
        list(read_pairs(ReadOptions(str(path), on_error="skip", batch_size=1)))


def test_a_full_check_finds_damage_that_a_header_check_misses(tmp_path: Path) -> None:
    data = bytearray(picture("PNG"))
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    folder = images(b_png=bytes(data), b_txt=b"good b")(tmp_path)
    assert not read_all(folder)[1]
    assert [reject.reason for reject in read_all(folder, verify_images="full")[1]] == ["bad_image"]


HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"


@pytest.mark.parametrize(
    ("name", "data", "kind"), [("m.heic", HEIC, "HEIC"), ("m.avif", HEIC.replace(b"heic", b"avif"), "AVIF")]
)
def test_an_image_of_an_unsupported_format_is_rejected_as_such(
    tmp_path: Path, name: str, data: bytes, kind: str
) -> None:
    """In a folder, in a shard, and by its path; where only texts are wanted, its caption is read."""
    (tmp_path / "folder").mkdir()
    for file, content in ((name, data), ("m.txt", b"bad"), ("g.jpg", picture()), ("g.heic", HEIC), ("g.txt", b"good")):
        (tmp_path / "folder" / file).write_bytes(content)
    with tarfile.open(tmp_path / "pool.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for file in ("g.jpg", "g.txt", name, "m.txt"):
            archive.add(tmp_path / "folder" / file, file)
    rows = ({"image": f"folder/{file}", "caption": "a"} for file in ("g.jpg", name))
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in ("folder", "pool.tar", "pool.jsonl"):
        pairs, rejects = read_all(tmp_path / path)
        assert [Path(pair.image).name[-5:] for pair in pairs] == ["g.jpg"]
        assert [one.reason for one in rejects] == ["bad_image"]
        assert f"{kind}, an unsupported format: convert it to JPEG" in rejects[0].detail
        assert len(read_all(tmp_path / path, verify_images="off")[0]) == 2
    (tmp_path / "folder" / "g.jpg").unlink()
    with pytest.raises(InputError, match="HEIC, an unsupported format"):
        read_all(tmp_path / "folder")


def test_a_caption_beside_an_image_of_an_unread_format_names_that_file(tmp_path: Path) -> None:
    """It was reported as a caption without an image of that name."""
    folder = images(b_jp2=b"1", b_txt=b"bad", c_txt=b"bad")(tmp_path)
    details = [one.detail for one in read_all(folder)[1]]
    assert details[0].startswith("b.txt without an image of that name; b.jp2 is not read: convert it")
    assert details[1] == "c.txt without an image of that name"
    for name in ("a.jpg", "z.jpg"):
        (folder / name).unlink()
    with pytest.raises(InputError, match=r"images in the folder \(\.txt 4, \.jp2 1\).*Images that are read: JPEG, PNG"):
        read_all(folder)


def test_images_are_not_checked_for_texts_only(tmp_path: Path) -> None:
    assert len(read_all(missing_image(tmp_path), verify_images="off")[0]) == 3


def test_the_first_flaw_in_row_order_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + GOOD + b"broken\n")
    with pytest.raises(InputError, match=r"a\.jsonl:2: duplicate_key"):
        list(read_pairs(ReadOptions(str(path))))


def test_a_repeated_key_is_found_across_batches_and_inputs(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(GOOD + b'{"caption": "a"}\n{"caption": "b"}\n')
    inputs = (str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    batches = list(read_pairs(ReadOptions(inputs, source="one", on_error="skip", batch_size=2)))
    assert sum(len(batch.pairs) for batch in batches) == 3
    assert [reject.reason for batch in batches for reject in batch.rejects] == ["duplicate_key"] * 3
    assert {reject.source for batch in batches for reject in batch.rejects} == {"one"}


def test_a_caption_over_the_limit_is_rejected_and_the_others_of_its_row_are_kept(tmp_path: Path) -> None:
    """It is counted as `caption_too_long` under either policy."""
    rows = [{"caption": "a dog"}, {"caption": "a dog on a bed"}, {"captions": ["a dog on a bed", "a cat"]}]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for policy in ("stop", "skip"):
        options = ReadOptions(str(tmp_path / "pool.jsonl"), on_error=policy, max_caption=5)
        batches = list(read_pairs(options))
        assert [pair.caption for batch in batches for pair in batch.pairs] == ["a dog", "a cat"]
        found = [(flaw.reason, flaw.part) for batch in batches for flaw in batch.rejects]
        assert found == [("caption_too_long", "row"), ("caption_too_long", "caption")]


def test_a_repeated_sample_of_a_tar_is_one_rejected_row(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "pool.tar", "w") as archive:
        for _ in range(3):
            for suffix, data in ((".txt", b"a dog"), (".json", b"{}")):
                member = tarfile.TarInfo(f"1{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    pairs, rejects = read_all(tmp_path / "pool.tar")
    assert [pair.caption for pair in pairs] == ["a dog"]
    assert [(reject.reason, reject.detail) for reject in rejects] == [
        ("duplicate_member", "a second .txt, .json in the sample 1")
    ] * 2


def test_a_sample_of_several_images_in_a_tar_is_no_pair(tmp_path: Path) -> None:
    """Its first image was read as the image of the caption."""
    names = ("1.jpg", "1.1.jpg", "1.txt", "2.jpg", "2.txt")
    with tarfile.open(tmp_path / "pool.tar", "w") as archive:
        for name in names:
            data = b"a dog" if name.endswith("txt") else picture()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    pairs, rejects = read_all(tmp_path / "pool.tar")
    assert [pair.source_id for pair in pairs] == ["2"]
    assert [(reject.reason, reject.detail) for reject in rejects] == [
        ("several_images", "2 images, where a pair has one")
    ]


def test_nan_in_json_is_a_missing_value(tmp_path: Path) -> None:
    """As pandas and img2dataset write it; in columns of no part it becomes null, as from Parquet."""
    rows = [
        '{"caption": "a \\ud83d\\ude00 dog", "similarity": NaN, "x": [-Infinity, 1], "id": 18446744073709551615}',
        '{"caption": NaN, "id": 2}',
        '{"captions": ["a cat", NaN], "image": NaN, "id": 3}',
        '{"caption": "a \\ud83d dog", "similarity": NaN}',
    ]
    (tmp_path / "pool.jsonl").write_text("\n".join(rows))
    pairs, rejects = read_all(tmp_path / "pool.jsonl")
    assert [(pair.caption, pair.source_id, json.loads(pair.meta)) for pair in pairs] == [
        ("a \U0001f600 dog", "18446744073709551615", {"similarity": None, "x": [None, 1]}),
        ("a cat", "3", {}),
    ]
    assert [(reject.reason, reject.part) for reject in rejects] == [
        ("empty_caption", "row"),
        ("empty_caption", "caption"),
        ("not_unicode", "row"),
    ]


@pytest.mark.parametrize("explode", [False, True])
def test_a_row_of_which_all_captions_are_rejected_is_one_rejected_row(tmp_path: Path, explode: bool) -> None:  # noqa: FBT001
    row = {"captions": ["a" * 30, "<image>", ""]}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + '\n{"captions": ["a dog", ""]}\n')
    _, rejects = read_all(tmp_path / "pool.jsonl", explode=explode, max_caption=20)
    assert [(reject.reason, reject.part) for reject in rejects] == (
        [(reason, "row") for reason in ("caption_too_long", "image_token", "empty_caption", "empty_caption")]
        if explode
        else [("image_token", "row"), ("empty_caption", "caption")]
    )
    if not explode:
        assert rejects[0].detail == "all 3 captions are rejected; the caption holds <image>"
