"""Rows under review, their captions and images, and the order of review."""

import gzip
import io
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Edit, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import write_shard
from pairwright.filters.review.images import FolderImages, ShardImages, load_browser_image
from pairwright.filters.review.rows import order_for_review, read_rows

MAKER = Origin("rules-negatives", 1)


def made(key: str, kind: str, text: str, *, status: str = "kept", positive_id: str = "") -> Annotation:
    caption, words = "a red bus", (Edit("red", "blue", (2, 5), (2, 6)),)
    return Annotation(
        id=annotation_id(key, kind, MAKER, text, text),
        key=key,
        kind=kind,
        origin=MAKER,
        form="replace",
        target="attribute",
        text=text,
        source_text=caption,
        edits=words if text == "a blue bus" else (),
        positive_id=positive_id,
        status="kept" if status == "kept" else "rejected",
        reason="" if status == "kept" else status,
    )


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build of one pair with a picture outside of it: two negatives, one with a positive, and a rejected one."""
    Image.new("RGB", (8, 8), "red").save(tmp_path / "outside.png")
    key = pair_key("s", "1", "a red bus")
    pair = Pair(key, "a red bus", image=str(tmp_path / "outside.png"), captions=("a bus in town",), source="s")
    positive = made(key, "hard_positive", "a scarlet bus")
    negatives = [
        made(key, "hard_negative", "a blue bus"),
        made(key, "hard_negative", "a green bus", positive_id=positive.id),
        made(key, "hard_negative", "a car", status="true_of_image"),
    ]
    root = tmp_path / "build"
    PAIRS.write([pair], root / "pairs" / "00000.parquet")
    ANNOTATIONS.write([positive, *negatives], root / "annotations" / "negatives-00000.parquet")
    return root


def test_of_a_file_all_rows_that_are_not_rejected_are_reviewed(rows_file: Path) -> None:
    rows = read_rows(rows_file)
    assert rows.entering()["id"].to_list() == list("abcdef")
    assert rows.entering()["type"].to_list()[:2] == ["replace-attribute", "replace-object"]
    assert rows.decisions == rows_file.with_name("rows.jsonl.decisions.jsonl")


def test_captions_of_other_rows_of_the_image_are_shown(rows_file: Path) -> None:
    others = read_rows(rows_file).others
    assert others["a"] == ("a bus by a tree",)
    assert others["f"] == ()


def test_captions_in_a_row_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"id": "a", "caption": "a red bus", "negative": "a blue bus", "captions": ["a bus", "a red bus", 3]}
    path.write_text(json.dumps(row))
    assert read_rows(path).others["a"] == ("a bus",)


@pytest.mark.parametrize("ending", ["json", "tsv", "parquet"])
def test_the_other_layouts_are_read_too(rows_file: Path, ending: str) -> None:
    from pairwright.filters.candidates.files import read_candidates, write_candidates

    path = rows_file.with_suffix(f".{ending}")
    write_candidates(read_candidates(rows_file), path)
    assert read_rows(path).entering()["negative"].to_list() == read_rows(rows_file).entering()["negative"].to_list()


def test_a_folder_of_sugarcrepe_files_is_reviewed_with_its_images_and_decisions(tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    Image.new("RGB", (8, 8), "red").save(folder / "7.png")
    row = {"filename": "7.png", "caption": "a red bus", "negative_caption": "a blue bus"}
    (folder / "replace_att.json").write_text(json.dumps({"0": row}))
    rows = read_rows(folder)
    assert rows.entering()["type"].to_list() == ["replace-attribute"]
    assert load_browser_image(rows.images.locate("", "7.png")).media_type == "image/png"
    assert rows.decisions == tmp_path / "bench.decisions.jsonl"


def test_of_a_build_the_kept_negatives_are_reviewed_with_their_positives(build: Path) -> None:
    rows = read_rows(build)
    assert rows.frame["negative"].to_list() == ["a blue bus", "a green bus"]
    assert rows.frame["positive"].to_list() == ["", "a scarlet bus"]
    assert set(rows.others.values()) == {("a bus in town",)}
    assert rows.decisions == build / "review" / "decisions.jsonl"


def test_a_build_shows_the_images_that_its_pairs_name(build: Path) -> None:
    rows = read_rows(build)
    key, image = rows.frame.row(0, named=True)["key"], rows.frame["image"][0]
    assert load_browser_image(rows.images.locate(key, image)).media_type == "image/png"


def test_a_build_shows_the_images_of_its_shards_first(build: Path, tmp_path: Path) -> None:
    rows = read_rows(build)
    key = rows.frame["key"][0]
    packed = (tmp_path / "outside.png").read_bytes()
    sample = Sample(PAIRS.read(build / "pairs" / "00000.parquet")[0], image=packed, image_ext="png")
    write_shard([sample], build / "shards" / "00000.tar")
    (tmp_path / "outside.png").unlink()
    found = read_rows(build).images.locate(key, str(tmp_path / "outside.png"))
    assert found == f"{build / 'shards' / '00000.tar'}::{key}.png"
    assert load_browser_image(found).data == packed


def test_shards_are_reviewed_with_their_images(build: Path, tmp_path: Path) -> None:
    pair = PAIRS.read(build / "pairs" / "00000.parquet")[0]
    annotations = tuple(
        row for row in ANNOTATIONS.read(build / "annotations" / "negatives-00000.parquet") if row.status == "kept"
    )
    shards = tmp_path / "shards"
    sample = Sample(pair, annotations, image=(tmp_path / "outside.png").read_bytes(), image_ext="png")
    write_shard([sample], shards / "00000.tar")
    for source in (shards, shards / "00000.tar"):
        rows = read_rows(source)
        assert rows.frame["negative"].to_list() == ["a blue bus", "a green bus"]
        assert rows.frame["caption"].to_list() == ["a red bus", "a red bus"]
        assert rows.images.locate(pair.key, rows.frame["image"][0]).endswith(f"00000.tar::{pair.key}.png")
        assert rows.decisions == shards / "review" / "decisions.jsonl"


def test_relative_image_names_are_resolved_in_the_folder_of_the_file_or_the_image_root(rows_file: Path) -> None:
    assert read_rows(rows_file).images.locate("", "1.png") == str(rows_file.parent / "1.png")
    elsewhere = rows_file.parent / "elsewhere"
    elsewhere.mkdir()
    assert read_rows(rows_file, str(elsewhere)).images.locate("", "1.png") == ""


@pytest.mark.parametrize("name", ["../secret.png", "sub/../../secret.png", "https://example.org/1.png", "", "a\0b.png"])
def test_image_names_outside_the_folder_or_the_machine_have_no_image(tmp_path: Path, name: str) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    assert FolderImages([tmp_path / "in"]).locate("", name) == ""


def test_a_link_out_of_the_folder_has_no_image(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    (tmp_path / "in" / "link.png").symlink_to(tmp_path / "secret.png")
    assert FolderImages([tmp_path / "in"]).locate("", "link.png") == ""


def test_an_image_in_a_table_is_found_in_the_folder_and_shown(tmp_path: Path) -> None:
    data = io.BytesIO()
    Image.new("RGB", (8, 8)).save(data, "PNG")
    pl.DataFrame({"image": [data.getvalue()]}).write_parquet(tmp_path / "t.parquet")
    found = FolderImages([tmp_path]).locate("", "t.parquet::image/row-00000001")
    assert found == f"{tmp_path}/t.parquet::image/row-00000001"
    assert load_browser_image(found).data == data.getvalue()
    assert FolderImages([tmp_path / "in"]).locate("", "../t.parquet::image/row-00000001") == ""


def test_files_that_are_no_images_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "passwd.png").write_text("root:x:0:0")
    with pytest.raises(InputError, match="not an image"):
        load_browser_image(str(tmp_path / "passwd.png"))


def test_formats_that_browsers_do_not_show_are_converted(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8)).save(tmp_path / "old.tiff")
    shown = load_browser_image(str(tmp_path / "old.tiff"))
    assert shown.media_type == "image/png"
    assert shown.data.startswith(b"\x89PNG")
    (tmp_path / "torn.tiff").write_bytes((tmp_path / "old.tiff").read_bytes()[:-60])
    with pytest.raises(InputError, match=r"does not decode|not an image"):
        load_browser_image(str(tmp_path / "torn.tiff"))


def test_a_key_that_no_shard_has_is_located_by_its_file_or_not_at_all(tmp_path: Path) -> None:
    assert ShardImages([]).locate("k", "/a/b.png") == "/a/b.png"
    assert ShardImages([]).locate("k", "https://example.org/b.png") == ""
    assert ShardImages([], images=False).locate("k", "/a/b.png") == ""


def test_a_compressed_file_of_candidate_rows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"caption": "a dog", "negatives": ["a cat", "a cow"]}\n'))
    assert read_rows(path).frame["negative"].to_list() == ["a cat", "a cow"]


def test_an_input_of_unknown_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    with pytest.raises(UsageError, match="not a build directory, shards"):
        read_rows(tmp_path / "rows.xlsx")
    for name in ("build", "rows.xls"):
        with pytest.raises(InputError, match="no such file or folder"):
            read_rows(tmp_path / name)


rows = st.lists(st.sampled_from(["replace-object", "swap-object", "add-attribute"]), max_size=60)


@given(rows, st.integers(0, 5))
def test_the_order_has_every_row_once(types: list[str], seed: int) -> None:
    order = order_for_review([str(n) for n in range(len(types))], types, seed)
    assert sorted(order) == list(range(len(types)))


@given(rows, st.integers(0, 5), st.integers(0, 60))
def test_any_prefix_of_the_order_has_each_type_in_its_proportion(types: list[str], seed: int, first: int) -> None:
    first = min(first, len(types))
    order = order_for_review([str(n) for n in range(len(types))], types, seed)
    found = Counter(types[row] for row in order[:first])
    for kind, count in Counter(types).items():
        assert abs(found[kind] - first * count / len(types)) <= len(set(types))


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(types: list[str], shuffler: object) -> None:
    ids = [f"row {n}" for n in range(len(types))]
    places = list(range(len(types)))
    shuffler.shuffle(places)  # type: ignore[attr-defined]
    one = [ids[row] for row in order_for_review(ids, types, 3)]
    turned = order_for_review([ids[at] for at in places], [types[at] for at in places], 3)
    assert [ids[places[row]] for row in turned] == one


def test_another_seed_gives_another_order() -> None:
    ids = [str(n) for n in range(50)]
    assert order_for_review(ids, ["a"] * 50, 0) != order_for_review(ids, ["a"] * 50, 1)


def test_every_row_is_equally_likely_in_a_sample() -> None:
    """90 rows of one type and 10 of another, ten drawn, 600 seeds: each row is in a tenth of the samples."""
    types = ["common"] * 90 + ["rare"] * 10
    ids = [str(n) for n in range(100)]
    found = Counter(row for seed in range(600) for row in order_for_review(ids, types, seed)[:10])
    # Standard deviation 7.3 of 60; four and a half of them either side.
    assert all(27 < found[row] < 93 for row in range(100))
