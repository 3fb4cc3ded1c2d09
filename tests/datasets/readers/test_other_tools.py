"""Inputs as other tools and people leave them: names in other cases, paths of other machines, files in other places."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.formats import guess_format
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.pieces import plan_pieces
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject


def picture() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (8, 6), (20, 90, 200)).save(data, "JPEG")
    return data.getvalue()


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(path: Path, **options: Any) -> tuple[list[Pair], list[Reject]]:
    batches = list(read_pairs(ReadOptions(str(path), **{"verify_images": "off", **options})))
    return [pair for b in batches for pair in b.pairs], [reject for b in batches for reject in b.rejects]


def shard(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            found = tarfile.TarInfo(name)
            found.size = len(data)
            tar.addfile(found, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["caption", "Caption", "CAPTION"])
def test_a_mapped_column_may_be_written_in_another_case(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.csv", "Caption,caption_2\na dog,a cat\n")
    assert [pair.caption for pair in read(path, columns={"caption": name})[0]] == ["a dog"]


def test_columns_that_differ_in_case_only_are_taken_as_written(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Text,TEXT\na dog,a cat\n")
    assert read(path, columns={"caption": "TEXT"})[0][0].caption == "a cat"
    with pytest.raises(InputError, match="no column 'text'; there are: Text, TEXT"):
        read(path, columns={"caption": "text"})


def test_captions_and_images_are_found_in_columns_of_any_case(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Image,Caption,ID\n1.jpg,a dog,7\n")
    (pair,) = read(path)[0]
    assert (pair.caption, Path(pair.image).name, pair.source_id) == ("a dog", "1.jpg", "")
    (pair,) = read(write(tmp_path / "b.csv", "Image,caption,url\n1.jpg,a dog,http://x.org/1.jpg\n"))[0]
    assert pair.image == "http://x.org/1.jpg"  # the exact name goes first


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ("img_url", "img_url"),
        ("photoPath", "photoPath"),
        ("image-path,page_url", "image-path"),
        ("img_url,image_url", "image_url"),  # a common name
        ("img_url,photo_url", ""),  # either could be it
        ("image_name", ""),  # a title, a page or a site as often
        ("photo_link", ""),
        ("picture_src", ""),
        ("image_id_url,image_id", ""),
    ],
)
def test_a_column_whose_name_says_image_and_place_is_the_image(tmp_path: Path, names: str, taken: str) -> None:
    """Commands but `init` read rows with `img_url` as texts alone, and equal captions as repeated rows."""
    columns = names.split(",")
    row = {**{name: f"https://x.org/{name}/1.jpg" for name in columns}, "caption": "a dog"}
    path = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    assert read(path)[0][0].image == (row[taken] if taken else "")


def test_a_table_with_images_of_its_own_is_not_read_by_the_name_of_another_column(tmp_path: Path) -> None:
    images = [{"bytes": picture(), "path": None}] * 2
    columns = {"caption": ["a dog", "a cat"], "picture": images, "picture_url": ["https://x.org/page"] * 2}
    pl.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    pairs, rejects = read(tmp_path / "a.parquet")
    assert [pair.image.rpartition("::")[2] for pair in pairs] == ["picture/row-00000001", "picture/row-00000002"]
    assert [pair.captions for pair in pairs] == [(), ()]
    assert rejects == []


@pytest.mark.parametrize(
    ("name", "pages", "columns"),
    [("jpg", 45, {}), ("image", 100, {}), ("photo", 100, {"image": "photo"}), ("photo", 1500, {"image": "photo"})],
)
def test_images_are_found_below_the_error_pages_of_failed_downloads(
    tmp_path: Path, name: str, pages: int, columns: dict[str, str]
) -> None:
    values = [b"<html>404 not found</html>"] * pages + [picture()] * 20
    captions = [f"dog {n}" for n in range(len(values))]
    frame = pl.DataFrame({"caption": captions, name: values})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=1000)
    pairs, rejects = read(tmp_path / "a.parquet", verify_images="header", columns=columns, on_error="skip")
    assert [pair.caption for pair in pairs if pair.image] == captions[pages:]
    assert {reject.reason for reject in rejects} == {"bad_image"}


def test_rows_are_selected_by_a_column_in_another_case(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "caption,Split\na dog,train\na cat,test\n")
    pairs, rejects = read(path, where={"split": ("test",)})
    assert ([pair.caption for pair in pairs], len(rejects)) == (["a cat"], 1)


def test_a_path_into_a_column_keeps_that_column_from_being_the_captions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({"captions": {"short": "a dog", "long": "a dog on a mat"}}) + "\n")
    assert read(path, columns={"caption": "captions.short"})[0][0].caption == "a dog"


def test_the_separator_that_a_csv_names_in_its_first_line_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\ufeffsep=;\nimage;caption\n1.jpg;a dog, a cat\n2.jpg\n")
    pairs, rejects = read(path, on_error="skip")
    assert [pair.caption for pair in pairs] == ["a dog, a cat"]
    assert [(reject.reason, reject.place) for reject in rejects] == [("ragged_row", f"{path}:4")]


def test_numbered_columns_are_the_captions_of_a_row_in_their_order(tmp_path: Path) -> None:
    rows = "image,caption_1,caption_10,caption_2,caption_x\n1.jpg,a dog,a pet,,other\n2.jpg,a cat,one cat,a big cat,\n"
    path = write(tmp_path / "a.csv", rows)
    pairs, _ = read(path, columns={"captions": "caption_*"})
    assert [(pair.caption, pair.captions) for pair in pairs] == [
        ("a dog", ("a pet",)),
        ("a cat", ("a big cat", "one cat")),
    ]
    assert json.loads(pairs[0].meta) == {"caption_x": "other"}
    with pytest.raises(InputError, match="no column 'text_\\*'; there are: image, caption_1"):
        read(path, columns={"captions": "text_*"})


def test_images_may_be_in_several_folders(tmp_path: Path) -> None:
    """Visual Genome's are in VG_100K and VG_100K_2."""
    rows = [{"id": n, "regions": [{"phrase": f"dog {n}"}]} for n in (1, 2, 3)]
    path = write(tmp_path / "regions.json", json.dumps(rows))
    for name in ("VG_100K/1.jpg", "VG_100K_2/2.jpg"):
        write(tmp_path / name, picture())
    options = {"image_root": f"{tmp_path}/{{VG_100K,VG_100K_2}}", "verify_images": "header", "on_error": "skip"}
    pairs, rejects = read(path, **options)
    assert [pair.image for pair in pairs] == [str(tmp_path / "VG_100K/1.jpg"), str(tmp_path / "VG_100K_2/2.jpg")]
    assert [reject.reason for reject in rejects] == ["missing_image"]
    outside = write(tmp_path / "o.jsonl", json.dumps({"image": "../regions.json", "caption": "a dog"}) + "\n")
    with pytest.raises(InputError, match="image_outside_root"):
        read(outside, image_root=options["image_root"])


@pytest.mark.parametrize("written", ["{name}", "/elsewhere/{name}"])
def test_a_name_too_long_for_a_file_is_a_rejected_row(tmp_path: Path, written: str) -> None:
    name = f"{'x' * 300}.jpg"
    rows = [{"image": image, "caption": "a dog"} for image in (written.format(name=name), "1.jpg")]
    path = write(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(tmp_path / "a/1.jpg", picture())
    pairs, rejects = read(path, image_root=f"{tmp_path}/{{a,b}}", verify_images="header", on_error="skip")
    assert (len(pairs), len(rejects)) == (1, 1)


def test_an_image_of_another_machine_is_found_below_the_named_folder(tmp_path: Path) -> None:
    rows = [{"image": f"/data/upload/1/{name}.jpg", "caption": f"a dog {name}"} for name in ("a", "b")]
    path = write(tmp_path / "rows.json", json.dumps(rows))
    write(tmp_path / "images" / "a.jpg", picture())
    pairs, rejects = read(path, image_root=str(tmp_path / "images"), verify_images="header", on_error="skip")
    assert [pair.image for pair in pairs] == [str(tmp_path / "images" / "a.jpg")]
    assert [reject.reason for reject in rejects] == ["image_outside_root"]


def test_an_export_of_label_studio_is_read(tmp_path: Path) -> None:
    result = {"value": {"text": ["a dog"]}, "from_name": "caption", "to_name": "image", "type": "textarea"}
    task = {"id": 1, "annotations": [{"id": 1, "result": [result]}], "predictions": []}
    path = write(tmp_path / "project.json", json.dumps([task | {"data": {"image": "1.jpg"}}]))
    (pair,) = read(path)[0]
    assert (pair.caption, pair.image, pair.source_id) == ("a dog", str(tmp_path / "1.jpg"), "1")


NESTED = {
    "the only image and text": ((".image.jpg", ".caption.txt"), ".image.jpg"),
    "a key with a dot": ((".5.jpg", ".5.txt"), ".5.jpg"),
    "an image beside a depth map": ((".image.jpg", ".depth.png", ".txt"), ".image.jpg"),
    "a plain image beside others": ((".jpg", ".mask.png", ".txt"), ".jpg"),
}


@pytest.mark.parametrize("case", NESTED)
def test_members_with_nested_names_are_image_and_caption(tmp_path: Path, case: str) -> None:
    endings, image = NESTED[case]
    members = [(f"0001{end}", b"a dog" if end.endswith("txt") else picture()) for end in endings]
    (pair,) = read(shard(tmp_path / "a.tar", *members))[0]
    assert (pair.caption, pair.image) == ("a dog", f"{tmp_path}/a.tar::0001{image}")


def test_of_several_nested_images_none_is_guessed(tmp_path: Path) -> None:
    members = [(f"0001{end}", picture()) for end in (".left.jpg", ".right.jpg")]
    (pair,) = read(shard(tmp_path / "a.tar", *members, ("0001.txt", b"a dog")))[0]
    assert (pair.image, json.loads(pair.meta)["other_files"]) == ("", [".left.jpg", ".right.jpg"])


def folder_with_captions(folder: Path, name: str, content: str) -> Path:
    for number in range(3):
        write(folder / "photos" / f"{number}.jpg", picture())
    write(folder / name, content)
    return folder


CAPTION_FILES = {
    "captions.txt": "image,caption\n0.jpg,a dog\n1.jpg,a cat\n",
    "results.csv": "image_name| comment_number| comment\n0.jpg| 0| a dog\n",
    "results.token": "0.jpg#0\ta dog\n0.jpg#1\ta cat\n",
    "annotations/c.json": json.dumps(
        {"images": [{"id": 1, "file_name": "0.jpg"}], "annotations": [{"image_id": 1, "caption": "a dog"}]}
    ),
    "text/n.jsonl": json.dumps({"image_id": "0", "caption": "a dog"}) + "\n",
    "train.csv": "Image Name;Image Caption\n0.jpg;a dog on a mat\n",
}


@pytest.mark.parametrize("name", CAPTION_FILES)
def test_a_folder_of_images_whose_captions_are_in_a_file_is_refused_with_the_file(tmp_path: Path, name: str) -> None:
    folder = folder_with_captions(tmp_path, name, CAPTION_FILES[name])
    options = ReadOptions(str(folder), on_error="skip")
    for start in (read_pairs, plan_pieces):
        with pytest.raises(InputError, match=f"the captions of its images are in {folder / name}"):
            start(options)
    without = ReadOptions(str(folder), without_caption=True, on_error="skip", verify_images="off")
    assert sum(len(batch.pairs) for batch in read_pairs(without)) == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("captions.csv", "image,caption\nother.jpg,a dog\n"),  # of other images
        ("credits.csv", "image,photographer\n0.jpg,A. B. Smith of London\n"),
        ("broken.json", '{"caption": '),
    ],
)
def test_other_files_in_a_folder_of_images_are_no_captions(tmp_path: Path, name: str, content: str) -> None:
    folder = folder_with_captions(tmp_path, name, content)
    for number in range(3):
        write(folder / "photos" / f"{number}.txt", f"a dog {number}")
    assert len(read(folder, on_error="skip")[0]) == 3
    (folder / "photos" / "0.txt").unlink()
    (folder / "photos" / "1.txt").unlink()
    assert len(read(folder, on_error="skip")[0]) == 1


def test_the_splits_of_a_saved_dataset_are_named(tmp_path: Path) -> None:
    write(tmp_path / "dataset_dict.json", json.dumps({"splits": ["test", "validation"]}))
    for split in ("test", "validation"):
        write(tmp_path / split / "state.json", "{}")
    with pytest.raises(InputError) as caught:
        guess_format(tmp_path)
    assert "with the splits test, validation" in caught.value.what
    assert "['test'].to_parquet('test.parquet')" in caught.value.fix
    assert "train" not in str(caught.value)


def test_captions_are_cleaned_when_asked_and_those_without_content_are_rejected(tmp_path: Path) -> None:
    texts = ["a dog &amp; a cat", "IMG_1.jpg", "a cat on a mat | Etsy"]
    pl.DataFrame({"caption": texts, "id": [1, 2, 3]}).write_parquet(tmp_path / "a.parquet")
    pairs, rejects = read(tmp_path / "a.parquet", clean_captions=True)
    assert [pair.caption for pair in pairs] == ["a dog & a cat", "a cat on a mat"]
    assert [(reject.reason, reject.place) for reject in rejects] == [("no_content", f"{tmp_path}/a.parquet:row 2")]
    assert [pair.caption for pair in read(tmp_path / "a.parquet")[0]] == texts


def test_a_tar_of_macos_has_a_file_of_attributes_before_each_file(tmp_path: Path) -> None:
    """They divided each sample: images were lost, and three rows were rejected for each."""
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for name in ("a/1.jpg", "a/1.txt", "a/2.jpg", "a/2.txt"):
            for path, data in ((f"a/._{name[2:]}", b"\0\5\x16\7"), (name, b"a dog " + name[2:3].encode())):
                member = tarfile.TarInfo(path)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    (batch,) = read_pairs(ReadOptions(str(tmp_path / "0.tar"), verify_images="off", on_error="skip"))
    assert [(pair.caption, pair.image[-7:]) for pair in batch.pairs] == [("a dog 1", "a/1.jpg"), ("a dog 2", "a/2.jpg")]
    assert batch.rejects == []


def test_joined_files_have_a_byte_order_mark_within(tmp_path: Path) -> None:
    """The first row of each joined file but the first was rejected."""
    row = b'\xef\xbb\xbf{"caption": "%s"}\n'
    (tmp_path / "rows.jsonl").write_bytes(row % b"a dog" + row % b"a cat")
    (batch,) = read_pairs(ReadOptions(str(tmp_path / "rows.jsonl")))
    assert [pair.caption for pair in batch.pairs] == ["a dog", "a cat"]


def test_empty_columns_of_a_spreadsheet_need_no_names(tmp_path: Path) -> None:
    """The error was: columns named twice."""
    (tmp_path / "rows.csv").write_text("id,caption,,\n1,a dog,,\n2,a cat,,note\n")
    (batch,) = read_pairs(ReadOptions(str(tmp_path / "rows.csv")))
    assert [pair.caption for pair in batch.pairs] == ["a dog", "a cat"]
    assert json.loads(batch.pairs[1].meta) == {"column 3": "", "column 4": "note"}


@pytest.mark.parametrize("names", [("12", "13"), ("1.jpg", "2.jpg")])
def test_numbered_texts_of_images_are_no_columns_of_pandas(tmp_path: Path, names: tuple[str, str]) -> None:
    """The images were read as columns."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({names[0]: {"0": "a dog", "1": "a hound"}, names[1]: {"0": "a cat", "1": "a kitten"}}))
    (batch,) = read_pairs(ReadOptions(str(path), columns={"caption": "0"}, verify_images="off"))
    assert [pair.caption for pair in batch.pairs] == ["a dog", "a cat"]


def test_a_column_of_objects_in_json_of_pandas_is_no_list_of_rows(tmp_path: Path) -> None:
    columns = {"image": {"0": {"path": "1.jpg"}, "1": {"path": "2.jpg"}}, "caption": {"0": "a dog", "1": "a cat"}}
    (tmp_path / "rows.json").write_text(json.dumps(columns))
    (batch,) = read_pairs(ReadOptions(str(tmp_path / "rows.json"), verify_images="off"))
    assert [(Path(pair.image).name, pair.caption) for pair in batch.pairs] == [("1.jpg", "a dog"), ("2.jpg", "a cat")]


def test_json_of_pandas_has_an_object_of_numbered_values_per_column(tmp_path: Path) -> None:
    """`DataFrame.to_json` writes it by default; each column was read as a row."""
    columns = {"id": {"0": 7, "2": 8}, "caption": {"0": "a dog", "2": "a cat"}}
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(columns))
    pairs = [pair for batch in read_pairs(ReadOptions(str(path))) for pair in batch.pairs]
    assert [(pair.source_id, pair.caption) for pair in pairs] == [("7", "a dog"), ("8", "a cat")]
    path.write_text(json.dumps({"1.jpg": {"caption": "a dog"}, "2.jpg": {"caption": "a cat"}}))  # a row per image
    pairs = [pair for batch in read_pairs(ReadOptions(str(path), verify_images="off")) for pair in batch.pairs]
    assert [pair.caption for pair in pairs] == ["a dog", "a cat"]


BESIDE = {
    "texts in a folder of their own": (
        ("images/1.jpg", "images/2.jpg", "captions/1.txt", "captions/2.txt"),
        [("images/1", "a dog"), ("images/2", "a dog")],
        [],
    ),
    "with the same subfolders": (
        ("images/a/1.jpg", "images/b/1.jpg", "texts/a/1.txt", "texts/b/1.txt"),
        [("images/a/1", "a dog"), ("images/b/1", "a dog")],
        [],
    ),
    "in each split": (
        ("train/images/1.jpg", "train/texts/1.txt", "val/images/1.jpg", "val/texts/1.txt"),
        [("train/images/1", "a dog"), ("val/images/1", "a dog")],
        [],
    ),
    "JSON of a photo (DCI)": (("annotations/1.json", "photos/1.jpg"), [("photos/1", "a dog")], []),
    "an image without a text there": (
        ("images/1.jpg", "images/2.jpg", "captions/1.txt"),
        [("images/1", "a dog")],
        ["missing_caption"],
    ),
    "two images of one name": (
        ("cats/1.jpg", "dogs/1.jpg", "texts/1.txt", "texts/2.txt", "dogs/2.jpg"),
        [("dogs/2", "a dog")],
        ["missing_caption", "missing_caption", "missing_image"],
    ),
    "two texts of one name": (
        ("images/1.jpg", "long/1.txt", "short/1.txt", "images/2.jpg", "images/2.txt"),
        [("images/2", "a dog")],
        ["missing_caption", "missing_image", "missing_image"],
    ),
    "texts that have their own image": (
        ("cats/1.jpg", "dogs/1.jpg", "dogs/1.txt"),
        [("dogs/1", "a dog")],
        ["missing_caption"],
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_images_and_texts_in_folders_side_by_side_are_joined(tmp_path: Path, name: str) -> None:
    files, wanted, reasons = BESIDE[name]
    content: dict[str, bytes | str] = {
        ".jpg": picture(),
        ".txt": "a dog",
        ".json": json.dumps({"caption": "a dog"}),
    }
    for file in files:
        write(tmp_path / file, content[Path(file).suffix])
    pairs, rejects = read(tmp_path, on_error="skip", verify_images="header")
    assert [(pair.source_id, pair.caption) for pair in pairs] == wanted
    assert [pair.image for pair in pairs] == [f"{tmp_path}/{id_}.jpg" for id_, _ in wanted]
    assert sorted(one.reason for one in rejects) == reasons


def test_a_sample_whose_json_has_no_text_has_no_caption_and_needs_no_column(tmp_path: Path) -> None:
    """Its message said to name a column."""
    of_img2dataset = {"key": "0", "url": "http://x.org/1.jpg", "exif": '{"Make": "a camera"}', "error_message": None}
    one, other = (("0.jpg", picture()), ("0.json", json.dumps(of_img2dataset).encode())), ("1.jpg", picture())
    path = shard(tmp_path / "a.tar", *one, other, ("2.jpg", picture()), ("2.txt", b"a dog"))
    pairs, rejects = read(path, on_error="skip")
    assert [one.reason for one in rejects] == ["missing_caption", "missing_caption"]
    assert len(pairs) == 1
    path = shard(tmp_path / "b.tar", ("0.jpg", picture()), ("0.json", b'{"alt_words": "a red dog"}'))
    with pytest.raises(InputError, match=r"no column 'caption'; there are: alt_words.*`pairwright init` proposes one"):
        read(path)
    assert [pair.caption for pair in read(path, columns={"caption": "alt_words"})[0]] == ["a red dog"]


UNREAD = {
    "00000.tar.gz": ("a compressed file", "Unpack it first"),
    "photos.zip": ("a compressed file", "Unpack it first"),
    "captions.xlsx": ("a spreadsheet", "Save it as CSV"),
    "rows.pkl": ("a pickle file", "pandas.read_pickle"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_files_that_are_not_read_say_what_they_are_and_how_to_convert_them(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"x")
    about, fix = UNREAD[name]
    with pytest.raises(InputError, match=f"{name}: {about}. .*{fix}"):
        guess_format(path)
    with pytest.raises(InputError, match=f"{name} is {about}: .*{fix}"):
        guess_format(tmp_path)
    write(tmp_path / "captions.json", "{}")
    with pytest.raises(InputError, match=f"Give the file that has the captions.*captions.json.* {name} is {about}"):
        guess_format(tmp_path)


def test_a_text_file_of_numbers_is_no_caption(tmp_path: Path) -> None:
    """The boxes of YOLO were captions."""
    for name, text in (("images/1", "0 0.5 0.5 0.1 0.2\n"), ("images/2", "a dog"), ("labels/3", "1 0.5 0.5 0.1 0.2")):
        write(tmp_path / f"{name}.txt", text)
        write(tmp_path / f"images/{Path(name).name}.jpg", picture())
    pairs, rejects = read(tmp_path, on_error="skip")
    assert [pair.caption for pair in pairs] == ["a dog"]
    assert [(one.reason, "no words" in one.detail) for one in rejects] == [("missing_caption", True)] * 2


def test_captions_that_are_objects_say_which_column_to_name(tmp_path: Path) -> None:
    captions = [{"caption": "a dog", "granularity": 0}, {"caption": "one dog", "granularity": 1}]
    path = write(tmp_path / "a.jsonl", json.dumps({"image": "1.jpg", "captions": captions}))
    with pytest.raises(InputError, match=r"to read one of them: --columns caption=captions.caption"):
        read(path)
    (pair,), _ = read(path, columns={"caption": "captions.caption"})
    assert (pair.caption, pair.captions) == ("a dog", ("one dog",))
