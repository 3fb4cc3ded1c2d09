"""Streaming reader of JSON lists."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers import json_list
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.json_list import read_json_list
from pairwright.datasets.rejects import Reject

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), VALUES, max_size=4), max_size=6)


@given(ROWS, st.integers(1, 40), st.sampled_from([None, 0, 2]), st.booleans())
def test_rows_come_back_however_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    chunk: int,
    indent: int | None,
    ascii_: bool,  # noqa: FBT001
) -> None:
    path = tmp_path_factory.mktemp("items") / "rows.json"
    path.write_text(json.dumps(rows, indent=indent, ensure_ascii=ascii_), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_list, "_CHUNK", chunk)
        found = list(read_json_list(path))
    assert [row.fields for row in found if isinstance(row, InputRow)] == rows
    assert [row.place for row in found] == [f"{path}:item {number}" for number in range(1, len(rows) + 1)]


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_an_item_that_is_not_an_object_is_rejected(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.json").write_text('[12345, {"a": 1}, "text", {"a": 1e400}, {"a": 2}]')
    monkeypatch.setattr(json_list, "_CHUNK", chunk)
    found = list(read_json_list(tmp_path / "rows.json"))
    assert [row.reason if isinstance(row, Reject) else row.fields for row in found] == [
        "wrong_type",
        {"a": 1},
        "wrong_type",
        "not_finite",
        {"a": 2},
    ]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "not a JSON list"),
        (b'{"a": 1}', "not a JSON list"),
        (b'[{"a": 1}', "ends before the list does at item 1|is not JSON at item 1"),
        (b'[{"a": 1},', "ends before the list does at item 2"),
        (b'[{"a": 1} {"a": 2}]', "is not JSON at item 1"),
        (b'[{"a": 1}, {"a": ]', "is not JSON at item 2"),
        (b'[{"a": 1}] more', "is not JSON at item 1"),
        (b'[{"a": "\xff"}]', "not_utf8"),
        (b"\xff\xfe[\x00]", "not_utf8|cannot be read"),
    ],
)
def test_a_broken_list_is_an_error_that_says_where(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "rows.json").write_bytes(data)
    with pytest.raises(InputError, match=what):
        list(read_json_list(tmp_path / "rows.json"))


def test_a_gzipped_list_is_read_and_a_truncated_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.json.gz"
    packed = gzip.compress(json.dumps([{"a": number} for number in range(5000)]).encode())
    path.write_bytes(packed)
    assert sum(1 for _ in read_json_list(path)) == 5000
    path.write_bytes(packed[:-100])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_json_list(path))


def test_a_row_larger_than_the_bound_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([{"a": "x" * 500_000}]))
    monkeypatch.setattr(json_list, "_CHUNK", 1000)
    monkeypatch.setattr(json_list, "MAX_LINE", 10_000)
    with pytest.raises(InputError, match="item 1"):
        list(read_json_list(tmp_path / "rows.json"))
