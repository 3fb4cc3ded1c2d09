"""Stage ``pairs``: parts of the same content for any division of the input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers import pieces
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.pieces import plan_pieces
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.flows.stage_selection import StageSelection
from pairwright.flows.stages import scan
from pairwright.flows.stages.scan import default_part_size
from tests.datasets.compression import COMPRESSORS

CAPTIONS = [f"A dog sees {number} cats." for number in range(60)]


def write_rows(path: Path, captions: list[str]) -> Path:
    lines = [json.dumps({"caption": caption}) for caption in captions]
    lines[7:7] = ["{broken", '{"caption": ""}']
    path.write_text("\n".join([*lines, lines[3], "", lines[20], '{"caption": ""}']) + "\n")
    return path


def read(path: Path, out: Path, **changes: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Run the stage; return its entry and the files of its parts."""
    section = {"path": str(path), "on_error": "skip", **changes.pop("input", {})}
    config = {"name": "t", "input": section, "part_size": 10, "workers": 1, **changes}
    done = build(parse_config(config, where="test"), out, prefect=False, selection=StageSelection(only="pairs"))
    files = [*sorted((out / "pairs").glob("*")), *sorted((out / "rejected").glob("pairs-*"))]
    return done["stages"]["pairs"], {path.name: path.read_bytes() for path in files}


def in_small_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pieces, "MIN_PIECE", size)
    monkeypatch.setattr(pieces, "MAX_PIECE", size)


@pytest.mark.parametrize("size", [40, 100, 555])
def test_parts_have_the_same_bytes_for_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = write_rows(tmp_path / "in.jsonl", CAPTIONS)
    whole, files = read(path, tmp_path / "whole")
    assert (whole["candidates"], whole["kept"]) == (65, 60)
    assert whole["rejected"] == {"broken_json": 1, "duplicate_key": 2, "empty_caption": 2}
    assert len(files) == 12
    in_small_pieces(monkeypatch, size)
    assert len(plan_pieces(ReadOptions(str(path)))) > 2
    divided, same = read(path, tmp_path / "divided")
    assert {name: divided[name] for name in ("candidates", "kept", "rejected")} == {
        name: whole[name] for name in ("candidates", "kept", "rejected")
    }
    assert same == files


def test_captions_that_are_equal_after_cleaning_have_one_reason_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"image": f"{number % 30}.jpg", "caption": f"a dog{' #cute' * (number < 30)}"} for number in range(60)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    clean = {"clean_captions": True, "on_error": "stop", "verify_images": "off"}
    whole, files = read(tmp_path / "in.jsonl", tmp_path / "whole", input=clean)
    assert (whole["kept"], whole["rejected"]) == (30, {"duplicate_caption": 30})
    in_small_pieces(monkeypatch, 200)
    assert read(tmp_path / "in.jsonl", tmp_path / "divided", input=clean)[1] == files


def test_parts_hold_the_pairs_of_the_reader_in_order_and_each_reject_lies_beside_its_neighbours(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in.jsonl", CAPTIONS)
    read(path, tmp_path / "out")
    parts = [pl.read_parquet(each) for each in sorted((tmp_path / "out" / "pairs").glob("*"))]
    batches = list(read_pairs(ReadOptions(str(path), on_error="skip")))
    assert [key for part in parts for key in part["key"]] == [pair.key for batch in batches for pair in batch.pairs]
    assert {part.height for part in parts} == {10}
    rejected = [pl.read_parquet(each) for each in sorted((tmp_path / "out" / "rejected").glob("*"))]
    assert [part.height for part in rejected] == [2, 0, 0, 0, 0, 3]
    assert pl.concat(rejected)["place"].to_list() == [f"{path}:{line}" for line in (8, 9, 63, 65, 66)]


def test_row_groups_of_a_large_table_and_several_files_are_read_as_one_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"caption": [*CAPTIONS, CAPTIONS[5]]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    parquet.write_table(table.slice(3, 9), tmp_path / "b.parquet")
    pattern = tmp_path / "{a,b}.parquet"
    whole, files = read(pattern, tmp_path / "whole")
    assert (whole["kept"], whole["rejected"]) == (60, {"duplicate_key": 10})
    in_small_pieces(monkeypatch, 100)
    assert len(plan_pieces(ReadOptions(str(pattern)))) > 5
    assert read(pattern, tmp_path / "divided")[1] == files


@pytest.mark.parametrize("size", [70, 555, 3000])
@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_rows_of_an_image_know_each_other_across_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, size: int
) -> None:
    images = [f"{number}.jpg" for number, times in enumerate([1, 5, 2, 64, 3, 65, 5, 5]) for _ in range(times)]
    rows = [{"image": image, "caption": f"caption {at} of it"} for at, image in enumerate(images)]
    path = tmp_path / f"in.{format_}"
    if format_ == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    unseen = {"verify_images": "off"}
    _, files = read(path, tmp_path / "whole", input=unseen)
    pairs = pl.concat(map(pl.read_parquet, sorted((tmp_path / "whole" / "pairs").glob("*"))))
    known = dict(zip(images, pairs["captions"].list.len(), strict=True))
    assert list(known.values()) == [0, 4, 1, 63, 2, 0, 4, 4]
    in_small_pieces(monkeypatch, size)
    assert len(plan_pieces(ReadOptions(str(path)))) > 1
    assert read(path, tmp_path / "divided", input=unseen)[1] == files


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_compressed_file_is_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    path = write_rows(tmp_path / "in.jsonl", CAPTIONS)
    packed = tmp_path / f"in.jsonl{ending}"
    packed.write_bytes(COMPRESSORS[ending](path.read_bytes() * 9))  # so that its size asks for several pieces
    in_small_pieces(monkeypatch, 20)
    assert len(plan_pieces(ReadOptions(str(path)))) > 1
    assert len(plan_pieces(ReadOptions(str(packed)))) == 1


def test_a_part_that_is_missing_is_read_again_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path / "in.jsonl", CAPTIONS)
    in_small_pieces(monkeypatch, 300)
    _, files = read(path, tmp_path / "out")
    (tmp_path / "out" / "pairs" / "00003.parquet").unlink()
    assert read(path, tmp_path / "out")[1] == files


def test_repeated_keys_are_found_with_few_keys_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path / "in.jsonl", CAPTIONS)
    _, files = read(path, tmp_path / "whole")
    in_small_pieces(monkeypatch, 100)
    monkeypatch.setattr(scan, "_KEYS_AT_ONCE", 8)
    assert read(path, tmp_path / "buckets")[1] == files


@pytest.mark.parametrize(
    ("rows", "change", "message"),
    [
        (['{"text_": "a"}'] * 9, {}, "no caption column|missing_column|caption"),
        (['{"caption": ""}'] * 9, {}, "no valid row"),
        (['{"caption": "a dog"}', *['{"caption": "a cat"}'] * 8], {"on_error": "stop"}, "came before"),
        (
            [f'{{"caption": "dog {n}"}}' for n in range(9)],
            {"columns": {"license": "terms"}},
            "no row has a column terms",
        ),
    ],
)
def test_flaws_of_the_whole_input_are_errors_for_pieces_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], change: dict[str, Any], message: str
) -> None:
    in_small_pieces(monkeypatch, 20)
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "in.jsonl", tmp_path / "out", input=change)


def test_a_part_is_eight_times_the_root_of_all_pairs_within_limits() -> None:
    sizes = [default_part_size(pairs) for pairs in (0, 100, 4_000, 100_000, 10_000_000, 400_000_000)]
    assert sizes == [250, 250, 510, 2_530, 25_300, 50_000]
    assert np.all(np.diff(sizes) >= 0)
