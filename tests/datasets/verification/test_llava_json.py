"""Checks of LLaVA JSON files."""

import json
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.verification.llava_json import check_llava


def row(image: Any, *questions: str, answer: str = "A dog.") -> dict[str, Any]:
    turns = [{"from": who, "value": text} for each in questions for who, text in (("human", each), ("gpt", answer))]
    return {"id": "1", "conversations": turns} | ({} if image is None else {"image": image})


def check(tmp_path: Path, *rows: object, root: Path | None = None) -> list[str]:
    (tmp_path / "l.json").write_text(json.dumps(rows))
    return check_llava(tmp_path / "l.json", root)


@pytest.mark.parametrize(
    "good",
    [
        row(None, "What?"),
        row("1.jpg", "<image>\nWhat?", "And?"),
        row(["1.jpg"], "What?\n<image>"),
        row(["1.jpg", "2.jpg"], "<image>\nand <image>\nWhat?"),
        row(["1.jpg", "2.jpg"], "<image>\nWhat?", "And <image>?"),
    ],
)
def test_as_many_image_tokens_as_images_are_no_problem(tmp_path: Path, good: dict[str, Any]) -> None:
    assert check(tmp_path, good) == []


@pytest.mark.parametrize(
    ("bad", "images"),
    [
        (row(None, "<image>\nWhat?"), "0 images"),
        (row("1.jpg", "What?"), "1 image"),
        (row("1.jpg", "What?", "<image>\nAnd?"), "1 image"),
        (row(["1.jpg", "2.jpg"], "<image>\nWhat?"), "2 images"),
        (row(["1.jpg", "2.jpg"], "<image>\nWhat?", answer="<image> A dog."), "2 images"),
        (row(["1.jpg", "2.jpg"], "<image><image><image>\nWhat?"), "2 images"),
    ],
)
def test_another_number_of_image_tokens_is_a_problem(tmp_path: Path, bad: dict[str, Any], images: str) -> None:
    (problem,) = check(tmp_path, bad)
    assert problem.startswith("row '1': <image> occurs [")
    assert problem.endswith(f"times in its turns, for {images}")


def test_each_missing_image_of_a_row_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").touch()
    rows = row(["1.jpg", "2.jpg", "3.jpg"], "<image><image><image>\nWhat?")
    problems = check(tmp_path, rows, root=tmp_path)
    assert problems == [f"row '1': no image {name} in {tmp_path}" for name in ("2.jpg", "3.jpg")]


def test_rows_of_another_layout_are_named(tmp_path: Path) -> None:
    assert check(tmp_path, {"id": "1", "messages": [], "images": []}) == [
        "row '1': no conversations; it has: id, messages, images"
    ]


def test_ids_of_other_tools_count_and_rows_need_none(tmp_path: Path) -> None:
    """LLaVA-Interleave calls it `sample_id`, and many files have no ids, which no trainer reads."""
    rows = [row(None, "What?") for _ in range(2)]
    for each in rows:
        del each["id"]
    assert check(tmp_path, *rows) == []
    assert check(tmp_path, *(each | {"sample_id": n} for n, each in enumerate(rows))) == []
    assert check(tmp_path, *(each | {"sample_id": 7} for each in rows)) == ["row '7': the id is empty or repeated"]
    assert check(tmp_path, rows[0] | {"id": "1"}, rows[1]) == ["row 1: the id is empty or repeated"]
