"""Candidate rows that are none: each stops the reading with how to skip it, or is counted by reason and left out."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pairwright.datasets.errors import InputError
from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy

GOOD = {"caption": "a dog", "negative": "a cat"}
LAST = {"caption": "a bus", "negative": "a car"}


def lines(*broken: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        rows = [json.dumps(GOOD).encode(), *broken, json.dumps(LAST).encode()]
        (folder / "rows.jsonl").write_bytes(b"\n".join(rows))
        return folder / "rows.jsonl"

    return make


def table(*broken: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        rows = ["title\tneg_caption", "a dog\t['a cat']", *broken, "a bus\t['a car']"]
        (folder / "rows.tsv").write_text("\n".join(rows) + "\n")
        return folder / "rows.tsv"

    return make


def parquet(folder: Path) -> Path:
    extra = ["{}", "{", "{}", "{}"]
    texts = {"caption": ["a dog", "x", "x", "a bus"], "negative": ["a cat", "y", None, "a car"]}
    pl.DataFrame({**texts, "extra": extra}).write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def sugarcrepe(folder: Path) -> Path:
    rows = {"0": {"caption": "a dog", "negative_caption": "a cat"}, "1": 5, "2": {"caption": "x"}}
    rows["3"] = {"caption": "a bus", "negative_caption": "a car"}
    for name in ("swap_att", "add_obj"):
        (folder / f"{name}.json").write_text(json.dumps(rows))
    return folder / "swap_att.json"


BROKEN: dict[str, tuple[Callable[[Path], Path], dict[str, int]]] = {
    "a null": (lines(b'{"caption": "a", "negative": null}'), {"empty_negative": 1}),
    "an empty negative": (lines(b'{"caption": "a", "negative": " "}'), {"empty_negative": 1}),
    "no negative at all": (lines(b'{"caption": "a"}'), {"empty_negative": 1}),
    "no caption": (lines(b'{"negative": "a"}'), {"empty_caption": 1}),
    "a number": (lines(b'{"caption": "a", "negative": 7}'), {"wrong_type": 1}),
    "no object": (lines(b"5"), {"wrong_type": 1}),
    "an unknown status": (lines(b'{"caption": "a", "negative": "b", "status": "x"}'), {"wrong_type": 1}),
    "broken JSON": (lines(b"{oops", b'{"caption": "\xff", "negative": "b"}'), {"broken_json": 2}),
    "an id twice": (
        lines(*[b'{"id": 1, "caption": "a", "negative": "b", "status": "rejected"}'] * 2),
        {"duplicate_key": 1},
    ),
    "a list that is none": (table("a\tx", "a\t"), {"wrong_type": 2}),
    "more fields": (table("a\t['b']\tc"), {"ragged_row": 1}),
    "broken quotes": (table("\"a\"c\t['b']"), {"broken_csv": 1}),
    "rows of Parquet": (parquet, {"broken_json": 1, "empty_negative": 1}),
    "rows of SugarCrepe": (sugarcrepe, {"wrong_type": 1, "empty_negative": 1}),
}


@pytest.mark.parametrize("flaw", BROKEN)
def test_under_skip_rows_that_are_none_are_counted_and_the_others_read(tmp_path: Path, flaw: str) -> None:
    make, reasons = BROKEN[flaw]
    screening = InvalidRowPolicy("skip")
    read = read_candidates(make(tmp_path), screening).filter(status="kept").select("caption", "negative")
    assert read.rows() == [("a dog", "a cat"), ("a bus", "a car")]
    assert screening.skipped.as_json() == {"broken": dict(sorted(reasons.items())), "broken_captions": {}}


@pytest.mark.parametrize("flaw", BROKEN)
def test_under_stop_the_first_is_told_with_how_to_skip_it(tmp_path: Path, flaw: str) -> None:
    path = BROKEN[flaw][0](tmp_path)
    with pytest.raises(InputError) as told:
        read_candidates(path, InvalidRowPolicy())
    assert str(told.value).endswith(" To skip such rows: --on-error skip.")
    with pytest.raises(InputError) as bare:  # for whoever has no such option
        read_candidates(path)
    assert str(told.value).startswith(str(bare.value))
    assert "--on-error" not in str(bare.value)


def test_of_a_folder_of_sugarcrepe_every_file_is_screened(tmp_path: Path) -> None:
    sugarcrepe(tmp_path)
    screening = InvalidRowPolicy("skip")
    assert read_candidates(tmp_path, screening)["id"].to_list() == [
        "add_obj-0",
        "add_obj-3",
        "swap_att-0",
        "swap_att-3",
    ]
    assert screening.skipped.as_json()["broken"] == {"empty_negative": 2, "wrong_type": 2}


def test_where_none_is_left_the_reasons_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"caption": "a"}\n{\n{"caption": "b"}\n')
    with pytest.raises(
        InputError, match=r":1: all rows are invalid: 3 rows \(empty_negative 2, broken_json 1\); the first: no neg"
    ):
        read_candidates(path, InvalidRowPolicy("skip"))


def test_what_is_broken_as_a_whole_ends_the_reading_all_the_same(tmp_path: Path) -> None:
    for name, data in (("a.json", b"{"), ("b.parquet", b"PAR1"), ("c.tsv", b"title\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError):
            read_candidates(tmp_path / name, InvalidRowPolicy("skip"))
