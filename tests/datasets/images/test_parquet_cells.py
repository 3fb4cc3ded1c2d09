"""Images inside Parquet tables, as written by Hugging Face's `datasets` and others."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from pairwright.datasets.errors import InputError
from pairwright.datasets.images import parquet_cells
from pairwright.datasets.images.loading import (
    UnusableImageError,
    check_image_at,
    open_image,
    read_stored_size,
    split_locator,
)
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair, pair_key
from pairwright.datasets.rejects import Reject

HF = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

MORE = pa.struct([("bytes", pa.binary()), ("size", pa.int64())])


def picture(number: int = 0, kind: str = "JPEG") -> bytes:
    """Return a different image for each number, which is its width."""
    out = io.BytesIO()
    Image.new("RGB", (number + 1, 3), (number % 256, 0, 0)).save(out, kind)
    return out.getvalue()


def write(path: Path, rows: int = 1000, **columns: Sequence[Any] | pa.Array) -> Path:
    """Write a table in row groups of ``rows``; pictures of `HF` are given as (bytes, path)."""
    arrays = {
        name: values
        if isinstance(values, pa.Array)
        else pa.array([value and dict(zip(("bytes", "path"), value, strict=True)) for value in values], HF)
        if any(isinstance(value, tuple) for value in values)
        else pa.array(values)
        for name, values in columns.items()
    }
    parquet.write_table(pa.table(arrays), path, row_group_size=rows)
    return path


def read(written: Path | str, **options: Any) -> tuple[list[Pair], list[Reject]]:
    batches = list(read_pairs(ReadOptions(str(written), on_error="skip", **options)))
    return [pair for b in batches for pair in b.pairs], [one for b in batches for one in b.rejects]


def damaged(path: Path, group: int, *columns: str) -> None:
    """Overwrite the pages of columns in a row group with zeros."""
    footer = parquet.read_metadata(path).row_group(group)
    data = bytearray(path.read_bytes())
    for column in map(footer.column, range(footer.num_columns)):
        if column.path_in_schema in columns:
            start, size = column.data_page_offset, column.total_compressed_size
            data[start : start + size] = bytes(size)
    path.write_bytes(data)


def test_pictures_of_hugging_faces_tables_are_read_row_by_row_over_row_groups(tmp_path: Path) -> None:
    pictures = [picture(number) for number in range(7)]
    table = write(tmp_path / "train.parquet", 3, image=[(one, None) for one in pictures], text=list("abcdefg"))
    pairs, rejects = read(table)
    assert not rejects
    assert [open_image(pair.image) for pair in pairs] == pictures
    assert [(pair.width, pair.height) for pair in pairs] == [(number + 1, 3) for number in range(7)]
    assert pairs[6].image == f"{table}::image/row-00000007"
    assert split_locator(pairs[6].image) == (str(table), "image/row-00000007")
    assert check_image_at(pairs[6].image, "full") == (7, 3, "jpeg")


def test_a_list_of_one_picture_is_read_as_that_picture_and_one_of_several_is_not(tmp_path: Path) -> None:
    pictures = [picture(number) for number in range(6)]
    of_row: list[list[int] | None] = [[0], [], [1], [2, 3], None, [4]]
    lists = [row if row is None else [{"bytes": pictures[at], "path": None} for at in row] for row in of_row]
    table = write(tmp_path / "t.parquet", 2, images=pa.array(lists, pa.list_(HF)), text=list("abcdef"))
    pairs, rejects = read(table)
    assert [open_image(pair.image) if pair.image else b"" for pair in pairs] == [
        pictures[0],
        b"",
        pictures[1],
        b"",
        pictures[4],
    ]
    assert [(reject.place, reject.reason) for reject in rejects] == [(f"{table}:row 4", "several_images")]


def test_rows_can_be_read_in_any_order_and_only_a_window_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_cells, "WINDOW_BYTES", 2_000)  # some three pictures
    pictures = [picture(number) for number in range(20)]
    table = write(tmp_path / "t.parquet", 10, image=pictures, text=["a"] * 20)
    for row in (20, 1, 12, 2, 11, 11, 19, 3, 10, 9, 8):
        assert open_image(f"{table}::image/row-{row}") == pictures[row - 1]


def test_threads_that_read_one_table_get_the_right_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_cells, "WINDOW_BYTES", 2_000)
    pictures = [picture(number) for number in range(60)]
    table = write(tmp_path / "t.parquet", 25, image=pictures, text=["a"] * 60)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda row: open_image(f"{table}::image/row-{row + 1}"), range(60)))
    assert found == pictures


def test_image_columns_are_not_read_without_image_checks(tmp_path: Path) -> None:
    """Of bytes that cannot be unpacked nothing is noticed, and keys are the same."""
    path = tmp_path / "t.parquet"
    images = pa.array([{"bytes": picture(), "path": "a.jpg"}, {"bytes": picture(), "path": "b.jpg"}], HF)
    columns = {"image": images, "thumb": pa.array([b"1", b"2"]), "text": ["a cat", "a dog"]}
    parquet.write_table(pa.table(columns), path, row_group_size=1, compression="snappy", use_dictionary=False)
    before, _ = read(path, verify_images="off")
    damaged(path, 1, "image.bytes", "thumb")
    after, _ = read(path, verify_images="off")
    assert after == before
    assert after[0].meta == '{"thumb":"<bytes>"}'
    _, (reject,) = read(path)
    assert (reject.reason, "the table is damaged here" in reject.detail) == ("bad_image", True)


def test_keys_do_not_depend_on_image_checks(tmp_path: Path) -> None:
    rows = [(picture(1), "birds/a.jpg"), (picture(2), None)]
    table = write(tmp_path / "t.parquet", image=rows, text=["a red bird", "a cat"])
    for how in ("off", "header", "full"):
        pairs, _ = read(table, verify_images=how)
        assert [pair.key for pair in pairs] == [
            pair_key("t", "birds/a.jpg", "a red bird"),
            pair_key("t", "", "a cat"),
        ]
        assert [pair.image.partition("::")[2] for pair in pairs] == ["image/row-00000001/a.jpg", "image/row-00000002"]
    with_ids = write(tmp_path / "t.parquet", image=rows, text=["a red bird", "a cat"], id=[7, 8])
    pairs, _ = read(with_ids)
    assert [(pair.key, pair.source_id) for pair in pairs] == [
        (pair_key("t", "7", "a red bird"), "7"),
        (pair_key("t", "8", "a cat"), "8"),
    ]


def test_unnamed_images_with_equal_captions_have_different_keys(tmp_path: Path) -> None:
    nameless = [(picture(number), None) for number in range(3)]
    for part in ("train-00000-of-00002", "train-00001-of-00002"):
        write(tmp_path / f"{part}.parquet", 2, image=nameless, text=["a photo of a dog"] * 3)
    pairs, rejects = read(tmp_path)
    assert not rejects
    assert len({pair.key for pair in pairs}) == len({pair.image for pair in pairs}) == 6
    assert pairs[0].key == pair_key(tmp_path.name, "", "a photo of a dog")
    assert [pair.key for pair in read(tmp_path, verify_images="off", batch_size=1)[0]] == [pair.key for pair in pairs]


def test_rows_with_equal_name_or_id_and_caption_are_repeated(tmp_path: Path) -> None:
    named = write(tmp_path / "a.parquet", image=[(picture(), "a.jpg")] * 2, text=["a dog"] * 2)
    ids = write(tmp_path / "b.parquet", image=[(picture(), None)] * 2, text=["a dog"] * 2, id=[1, 1])
    for table in (named, ids):
        pairs, rejects = read(table)
        assert (len(pairs), [one.reason for one in rejects]) == (1, ["duplicate_key"])


@pytest.mark.parametrize("column", ["image", "jpg", "png", "webp", "image_bytes"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), HF, MORE])
def test_image_columns_are_found_by_common_names(tmp_path: Path, column: str, kind: pa.DataType) -> None:
    data = [picture(1), picture(2)]
    values = pa.array([{"bytes": one} for one in data] if kind in (HF, MORE) else data, kind)
    pairs, rejects = read(write(tmp_path / "t.parquet", 1, **{column: values, "caption": ["a", "b"]}))
    assert not rejects
    assert [open_image(pair.image) for pair in pairs] == data
    assert pairs[0].meta == "{}"


def test_a_column_of_pictures_by_any_name_can_be_named(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", image=["https://x.org/1.jpg"], scan=[picture(5)], caption=["a"])
    assert [pair.image for pair in read(table)[0]] == ["https://x.org/1.jpg"]
    (pair,), _ = read(table, columns={"image": "scan"})
    assert (pair.image, pair.width, pair.meta) == (f"{table}::scan/row-00000001", 6, '{"image":"https://x.org/1.jpg"}')


def test_an_image_in_a_table_has_precedence_over_a_url_which_still_determines_the_key(
    tmp_path: Path,
) -> None:
    """As img2dataset writes Parquet; a row whose download failed is a missing picture."""
    urls = ["https://x.org/1.jpg", "https://x.org/2.jpg"]
    table = write(tmp_path / "00000.parquet", url=urls, jpg=[picture(5), None], caption=["a", "b"], width=[None, 9])
    (pair,), (reject,) = read(table)
    assert (pair.image, pair.width, pair.meta) == (f"{table}::jpg/row-00000001", 6, '{"url":"https://x.org/1.jpg"}')
    assert pair.key == pair_key("00000", "https://x.org/1.jpg", "a")
    assert (reject.place, reject.reason) == (f"{table}:row 2", "missing_image")


def test_a_table_of_pictures_alone_lacks_a_caption(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing_column: no column 'caption'; there are: image"):
        read(write(tmp_path / "t.parquet", image=[picture()]))


def test_a_text_column_with_an_image_column_name_is_not_an_image_column(tmp_path: Path) -> None:
    (pair,), _ = read(write(tmp_path / "t.parquet", jpg=["yes"], caption=["a"]))
    assert (pair.image, pair.meta) == ("", '{"jpg":"yes"}')


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "missing_image"),
        (b"", "missing_image"),
        (b"no picture", "bad_image"),
        (picture()[:80], "bad_image"),
        (b"\0\0\0\x20ftypheic" + bytes(60), "bad_image"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_row_with_a_broken_image_is_rejected(tmp_path: Path, data: bytes | None, reason: str, *, named: bool) -> None:
    values = [picture(1), data, picture(2)]
    column: Sequence[Any] = [(one, f"{at}.jpg") for at, one in enumerate(values)] if named else values
    table = write(tmp_path / "t.parquet", image=column, text=["a", "b", "c"])
    pairs, (reject,) = read(table)
    assert [pair.caption for pair in pairs] == ["a", "c"]
    assert (reject.place, reject.reason) == (f"{table}:row 2", reason)
    assert f"{table}::image/row-00000002{'/1.jpg' if named else ''}: " in reject.detail
    with pytest.raises(InputError, match=rf"row 2: {reason}"):
        list(read_pairs(ReadOptions(str(table))))


def test_a_null_in_the_place_of_a_picture_and_its_name_is_a_row_without_an_image(tmp_path: Path) -> None:
    pairs, rejects = read(write(tmp_path / "t.parquet", image=[(picture(), None), None], text=["a", "b"]))
    assert ([bool(pair.image) for pair in pairs], rejects) == ([True, False], [])


def test_a_row_group_of_paths_without_bytes_names_files(tmp_path: Path) -> None:
    """As `datasets` writes tables of pictures with embedding turned off."""
    (tmp_path / "a.jpg").write_bytes(picture(9))
    rows = [(None, "a.jpg"), (None, "gone.jpg"), (picture(1), "b.jpg")]
    table = write(tmp_path / "t.parquet", 2, image=rows, text=["a", "b", "c"])
    pairs, (reject,) = read(table)
    assert [(pair.image, pair.width) for pair in pairs] == [
        (str(tmp_path / "a.jpg"), 10),
        (f"{table}::image/row-00000003/b.jpg", 2),
    ]
    assert (reject.reason, reject.place) == ("missing_image", f"{table}:row 2")


def test_a_row_without_bytes_among_rows_with_bytes_names_a_file(tmp_path: Path) -> None:
    """It was a missing image."""
    (tmp_path / "a.jpg").write_bytes(picture(9))
    table = write(tmp_path / "t.parquet", image=[(picture(1), "b.jpg"), (None, "a.jpg")], text=["b", "a"])
    pairs, rejects = read(table)
    assert rejects == []
    assert [(pair.image, pair.width) for pair in pairs] == [
        (f"{table}::image/row-00000001/b.jpg", 2),
        (str(tmp_path / "a.jpg"), 10),
    ]


@pytest.mark.parametrize(
    "member", ["image/row-0", "image/row-3", "image/1", "image", "text/row-1", "other/row-1", "/row-1"]
)
def test_a_locator_of_no_picture_in_the_table_is_a_missing_image(tmp_path: Path, member: str) -> None:
    table = write(tmp_path / "t.parquet", image=[picture(), picture()], text=["a", "b"])
    with pytest.raises(UnusableImageError) as caught:
        open_image(f"{table}::{member}")
    assert caught.value.reason == "missing_image"


def test_a_missing_or_invalid_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none.parquet").write_bytes(b"no table")
    for name, reason in (("gone", "missing_image"), ("none", "bad_image")):
        with pytest.raises(UnusableImageError) as caught:
            open_image(f"{tmp_path}/{name}.parquet::image/row-1")
        assert caught.value.reason == reason
        assert read_stored_size(f"{tmp_path}/{name}.parquet::image/row-1") == 0


def test_a_rewritten_table_is_read_again(tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    for number in (1, 20):
        write(table, image=[picture(number)], text=["a"])
        assert check_image_at(f"{table}::image/row-1")[0] == number + 1


def test_of_a_damaged_row_group_the_others_are_read(tmp_path: Path) -> None:
    pictures = [bytes([number]) * 300 for number in range(6)]
    path = tmp_path / "t.parquet"
    columns = {"image": pa.array(pictures), "text": list("abcdef")}
    parquet.write_table(pa.table(columns), path, row_group_size=2, compression="snappy", use_dictionary=False)
    damaged(path, 1, "image")
    for row in (1, 2, 5, 6, 1):
        assert open_image(f"{path}::image/row-{row}") == pictures[row - 1]
    for row in (3, 4, 3):
        with pytest.raises(UnusableImageError, match="the table is damaged here"):
            open_image(f"{path}::image/row-{row}")


def test_an_image_without_a_locator_is_rejected_and_its_texts_can_be_read(tmp_path: Path) -> None:
    """Lists of pictures, and a table under another name."""
    lists = write(tmp_path / "t.parquet", image=pa.array([[picture()]], pa.list_(pa.binary())), text=["a"])
    other = write(tmp_path / "t.pq", image=[(picture(), "a.jpg")], text=["a"])
    for path in (lists, other):
        with pytest.raises(InputError, match=r"image_in_table.*Name the table"):
            list(read_pairs(ReadOptions(str(path), format="parquet")))
        (pair,), _ = read(path, format="parquet", verify_images="off")
        assert (pair.caption, "::" in pair.image) == ("a", False)


def test_several_captions_of_a_picture_are_pairs_of_it(tmp_path: Path) -> None:
    captions = pa.array([["a dog", "a cat"]], pa.list_(pa.string()))
    table = write(tmp_path / "t.parquet", image=[(picture(), None)], captions=captions)
    (pair,), _ = read(table)
    assert (pair.caption, pair.captions) == ("a dog", ("a cat",))
    pairs, _ = read(table, explode=True)
    assert [pair.image for pair in pairs] == [f"{table}::image/row-00000001"] * 2


def test_the_size_of_an_image_is_estimated_without_reading_it(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", 2, image=[bytes(range(100)) * 10] * 2 + [b"1234567890"] * 2)
    assert read_stored_size(f"{table}::image/row-1") > 400
    assert 5 < read_stored_size(f"{table}::image/row-4") < 200
