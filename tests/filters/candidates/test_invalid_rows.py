"""Invalid candidate rows: an error with the option to skip them, or skipped and counted by reason."""

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
    "NaN, as Python writes it": (
        lines(b'{"caption": "a", "negative": NaN, "similarity": NaN}'),
        {"empty_negative": 1},
    ),
    "an empty negative": (lines(b'{"caption": "a", "negative": " "}'), {"empty_negative": 1}),
    "no negative at all": (lines(b'{"caption": "a"}'), {"empty_negative": 1}),
    "no caption": (lines(b'{"negative": "a"}'), {"empty_caption": 1}),
    "a number": (lines(b'{"caption": "a", "negative": 7}'), {"wrong_type": 1}),
    "no object": (lines(b"5"), {"wrong_type": 1}),
    "an unknown status": (lines(b'{"caption": "a", "negative": "b", "status": "x"}'), {"wrong_type": 1}),
    "invalid JSON": (lines(b"{oops", b'{"caption": "\xff", "negative": "b"}'), {"broken_json": 2}),
    "an id twice": (
        lines(*[b'{"id": 1, "caption": "a", "negative": "b", "status": "rejected"}'] * 2),
        {"duplicate_key": 1},
    ),
    "an invalid list": (table("a\tx", "a\t"), {"wrong_type": 2}),
    "more fields": (table("a\t['b']\tc"), {"ragged_row": 1}),
    "invalid quotes": (table("\"a\"c\t['b']"), {"broken_csv": 1}),
    "rows of Parquet": (parquet, {"broken_json": 1, "empty_negative": 1}),
    "rows of SugarCrepe": (sugarcrepe, {"wrong_type": 1, "empty_negative": 1}),
}


@pytest.mark.parametrize("flaw", BROKEN)
def test_skip_counts_invalid_rows_and_reads_the_others(tmp_path: Path, flaw: str) -> None:
    make, reasons = BROKEN[flaw]
    screening = InvalidRowPolicy("skip")
    read = read_candidates(make(tmp_path), screening).filter(status="kept").select("caption", "negative")
    assert read.rows() == [("a dog", "a cat"), ("a bus", "a car")]
    assert screening.skipped.as_json() == {
        "broken": dict(sorted(reasons.items())),
        "broken_captions": {},
        "broken_boxes": {},
        "broken_fields": {},
    }


@pytest.mark.parametrize("flaw", BROKEN)
def test_stop_raises_the_first_error_with_the_option_to_skip(tmp_path: Path, flaw: str) -> None:
    path = BROKEN[flaw][0](tmp_path)
    with pytest.raises(InputError) as error:
        read_candidates(path, InvalidRowPolicy())
    assert str(error.value).endswith(" To skip such rows: --on-error skip.")
    with pytest.raises(InputError) as bare:  # without the policy
        read_candidates(path)
    assert str(error.value).startswith(str(bare.value))
    assert "--on-error" not in str(bare.value)


def test_invalid_rows_are_skipped_in_every_file_of_a_sugarcrepe_folder(tmp_path: Path) -> None:
    sugarcrepe(tmp_path)
    screening = InvalidRowPolicy("skip")
    assert read_candidates(tmp_path, screening)["id"].to_list() == [
        "add_obj-0",
        "add_obj-3",
        "swap_att-0",
        "swap_att-3",
    ]
    assert screening.skipped.as_json()["broken"] == {"empty_negative": 2, "wrong_type": 2}


def test_no_valid_row_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"caption": "a"}\n{\n{"caption": "b"}\n')
    with pytest.raises(
        InputError, match=r":1: all rows are invalid: 3 rows \(empty_negative 2, broken_json 1\); the first: no neg"
    ):
        read_candidates(path, InvalidRowPolicy("skip"))


def test_an_invalid_file_is_an_error_even_under_skip(tmp_path: Path) -> None:
    for name, data in (("a.json", b"{"), ("b.parquet", b"PAR1"), ("c.tsv", b"title\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError):
            read_candidates(tmp_path / name, InvalidRowPolicy("skip"))
