"""From Parquet tables with the pictures inside to shards with the same pictures, and on from there."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.formats import export
from pairwright.datasets.exports.writing import ExportOptions
from pairwright.datasets.images.loading import open_image
from pairwright.datasets.reports.contact_sheet import draw_contact_sheet, read_first_samples
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.commands.plan import estimate_build
from tests.datasets.images.test_parquet_cells import picture, write
from tests.flows.conftest import checked

build = partial(build_with_prefect, prefect=False)

CAPTIONS = ["a red dog on a bed", "two cats near a blue car", "a dog under a table", "a red dog on a bed"]


def tables(folder: Path, count: int = 2, kind: str = "JPEG") -> dict[str, Any]:
    """Write tables of four rows in row groups of two, no picture with a name; return the input."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        rows = [(picture(4 * number + row, kind), None) for row in range(4)]
        write(folder / f"train-{number:05}-of-00002.parquet", 2, image=rows, text=CAPTIONS)
    return {"path": str(folder)}


def config(given: dict[str, Any], **more: Any) -> Any:
    given = {"source": "t", **given}
    return checked({"name": "t", "input": given, "shards": {"samples": 3}, "part_size": 3, "workers": 1, **more})


def manifest_of(out: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return summary


def packed(out: Path) -> dict[str, bytes | None]:
    """Return the bytes of each picture in the shards by the name that its sample tells."""
    return {
        sample.stored_image_name: sample.image
        for tar in sorted((out / "shards").glob("*.tar"))
        for sample in read_shard(tar)
    }


def test_a_build_packs_the_very_bytes_that_the_tables_hold(tmp_path: Path) -> None:
    given, out = tables(tmp_path / "data"), tmp_path / "build"
    work = estimate_build(config(given, negatives={}), out)
    assert (work.pairs, work.shards) == (8, 3)
    build(config(given, negatives={}), out)
    assert packed(out) == {
        f"train-{number:05}-of-00002.parquet::image/row-{row + 1:08}": picture(4 * number + row)
        for number in range(2)
        for row in range(4)
    }
    assert verify(out) == []
    assert len(draw_contact_sheet(read_first_samples(out, 8))) > 1000


def test_exports_of_a_build_write_the_pictures_or_name_where_they_lie(tmp_path: Path) -> None:
    given, out = tables(tmp_path / "data"), tmp_path / "build"
    build(config(given, negatives={}), out)
    source = open_sample_source(out)
    export(source, "sugarcrepe", tmp_path / "named.json", ExportOptions(image_root=tmp_path))
    rows = json.loads((tmp_path / "named.json").read_text()).values()
    assert rows
    for row in rows:
        assert row["filename"].startswith("data/train-0000")
        assert open_image(str(tmp_path / row["filename"]))
    export(source, "sugarcrepe", tmp_path / "written.json", ExportOptions(images=tmp_path / "pictures"))
    names = {row["filename"] for row in json.loads((tmp_path / "written.json").read_text()).values()}
    assert {(tmp_path / "pictures" / name).read_bytes() for name in names} <= {picture(number) for number in range(8)}


def test_pictures_of_several_formats_in_a_table_stop_a_build_before_all_work(tmp_path: Path) -> None:
    given, out = tables(tmp_path / "data"), tmp_path / "build"
    write(tmp_path / "data" / "z.parquet", image=[(picture(9, "PNG"), None)], text=["a cat"])
    with pytest.raises(InputError, match=r"\(jpg 8, png 1\).*`image_format: jpg`"):
        build(config(given, negatives={}), out)
    assert not (out / "annotations").exists()
    build(config(given, shards={"image_format": "jpg"}), out)
    assert manifest_of(out)["contents"]["image_exts"] == {"jpg": 9}


def test_broken_pictures_in_a_table_are_rejected_rows(tmp_path: Path) -> None:
    rows = [(picture(1), None), (None, None), (b"", None), (b"junk", None), (picture(2)[:90], None)]
    table = write(tmp_path / "t.parquet", 2, image=rows, text=list("abcde"))
    build(config({"path": str(table), "on_error": "skip"}), tmp_path / "build")
    summary = manifest_of(tmp_path / "build")["stages"]["pairs"]
    assert (summary["kept"], summary["rejected"]) == (1, {"bad_image": 2, "missing_image": 2})
    unseen = {"path": str(table), "on_error": "skip", "verify_images": "off"}
    build(config(unseen, shards={"image_format": "png"}), tmp_path / "unseen")
    summary = manifest_of(tmp_path / "unseen")["stages"]["shards"]
    assert (summary["kept"], summary["rejected"]) == (1, {"bad_image": 2, "missing_image": 2})


def test_a_table_that_is_added_is_what_an_increment_adds(tmp_path: Path) -> None:
    given, out = tables(tmp_path / "data", 1), tmp_path / "build"
    build(config(given, incremental=True), out)
    before = packed(out)
    write(tmp_path / "data" / "train-00001.parquet", image=[(picture(row), None) for row in range(4)], text=CAPTIONS)
    build(config(given, incremental=True), out)
    assert manifest_of(out)["build"]["kind"] == "incremental"
    assert len(before) == 4
    assert len(packed(out)) == 8
    assert before.items() <= packed(out).items()


def test_images_that_changed_in_a_table_are_packed_again(tmp_path: Path) -> None:
    given, out = tables(tmp_path / "data", 1), tmp_path / "build"
    build(config(given), out)
    tables(tmp_path / "data", 1, "PNG")
    build(config(given), out)
    assert manifest_of(out)["contents"]["image_exts"] == {"png": 4}


def test_rows_of_pictures_in_tables_name_no_files_and_those_of_the_shards_do(tmp_path: Path) -> None:
    objects = [[{"category": "dog", "bbox": [0.1, 0.1, 0.5, 0.5]}]] * 4
    rows = [(picture(row), None) for row in range(4)]
    table = write(tmp_path / "t.parquet", 2, image=rows, text=CAPTIONS, instances=objects)
    build(config({"path": str(table)}, conversations={}), tmp_path / "build")
    summary = export(tmp_path / "build", "llava", tmp_path / "build.json").details
    names = [row["image"] for row in json.loads((tmp_path / "build.json").read_text())]
    assert summary["packed_images"] == len(set(names)) == 4
    assert summary["missing_images"] == 0
    export(tmp_path / "build" / "shards", "llava", tmp_path / "shards.json")
    packed_names = {f"{sample.pair.key}.jpg" for sample in open_sample_source(tmp_path / "build" / "shards").samples()}
    assert {row["image"] for row in json.loads((tmp_path / "shards.json").read_text())} == packed_names
