"""Differences of two files of candidate rows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.flows.commands.candidate_diff import compare_candidates
from tests.example_counts import examples

Rows = Sequence[dict[str, Any]]
FIRST: Rows = [
    {"filename": f"{number}.jpg", "caption": f"a dog on bed {number}", "negative_caption": f"a cat on bed {number}"}
    for number in range(6)
]
COUNTS = ("a", "b", "added", "removed", "changed")


def save(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def counts(tmp_path: Path, a: Rows, b: Rows) -> tuple[int, ...]:
    result = compare_candidates(save(tmp_path / "a.jsonl", a), save(tmp_path / "b.jsonl", b)).as_json()
    return tuple(result["rows"][name] for name in COUNTS)


def test_a_row_that_was_edited_moved_or_repeated_is_matched_once(tmp_path: Path) -> None:
    edited = [{**FIRST[0], "negative_caption": "a cow on bed 0"}, FIRST[2], FIRST[1], FIRST[3], FIRST[3]]
    assert counts(tmp_path, FIRST, edited) == (6, 5, 1, 2, 1)
    assert counts(tmp_path, FIRST, FIRST[::-1]) == (6, 6, 0, 0, 0)


def test_positions_in_a_file_that_shift_are_no_changes(tmp_path: Path) -> None:
    numbered = [dict(enumerate(rows)) for rows in (FIRST, FIRST[1:])]
    paths = [tmp_path / "swap_att.json", tmp_path / "v2.json"]
    for path, rows in zip(paths, numbered, strict=True):
        path.write_text(json.dumps(rows))
    found = compare_candidates(paths[0], paths[1])
    assert (len(found.removed), found.added, found.changed) == (1, [], [])
    assert found.as_json()["types"] == {"row": {"a": 6, "b": 5, "added": 0, "removed": 1, "changed": 0}}


@settings(max_examples=examples(50))
@given(st.lists(st.sampled_from(range(6)), min_size=1), st.lists(st.sampled_from(range(6)), min_size=1))
def test_each_row_is_kept_removed_added_or_changed(
    tmp_path_factory: pytest.TempPathFactory, one: list[int], other: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    rows = [[{**FIRST[number], "id": str(at)} for at, number in enumerate(numbers)] for numbers in (one, other)]
    a, b, added, removed, _ = counts(folder, *rows)
    assert b - added == a - removed
